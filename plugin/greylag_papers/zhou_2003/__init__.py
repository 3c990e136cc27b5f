"""Zhou et al. (2003): ranking on data manifolds."""
