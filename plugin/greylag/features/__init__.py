"""Features of the Markov random field model: specifications, cliques, windows, weightings."""
