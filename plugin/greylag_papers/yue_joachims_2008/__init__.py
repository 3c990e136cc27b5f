"""Yue & Joachims, Predicting diverse subsets using structural SVMs, ICML 2008."""
