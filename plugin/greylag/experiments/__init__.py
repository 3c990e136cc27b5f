"""Whole studies, from a YAML file to runs, models and scores."""
