"""Learning to rank: objectives, exact line search, greedy feature selection, the linear model."""
