"""Diversity stages: one greedy loop, and a gain for each method."""
