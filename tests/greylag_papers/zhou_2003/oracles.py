"""Slow and obvious versions of what the studies compute."""

from itertools import product


def roc_area(scores, relevant):
    """Share of pairs of a relevant and another point that are in the right order; a tie counts one half."""
    pairs = list(product(scores[relevant], scores[~relevant]))
    return sum((high > low) + (high == low) / 2 for high, low in pairs) / len(pairs)
