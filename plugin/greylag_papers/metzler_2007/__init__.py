"""Metzler (2007): automatic feature selection in the Markov random field model for information retrieval."""
