"""Zhou et al., Ranking on data manifolds, NIPS 2003: the three experiments of section 5."""
