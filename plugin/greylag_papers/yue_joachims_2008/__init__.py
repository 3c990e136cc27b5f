"""Yue & Joachims (2008): predicting diverse subsets using structural SVMs."""
