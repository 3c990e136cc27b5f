"""Ranking on data manifolds: the affinity graph of a set of points (`graph`), and rankings on it (`ranking`)."""

from greylag.manifold.graph import AffinityGraph, InnerProductGraph, affinity_graph
from greylag.manifold.ranking import iterates, manifold_ranking, personalised_pagerank, query_vector, rank

__all__ = [
    "AffinityGraph",
    "InnerProductGraph",
    "affinity_graph",
    "iterates",
    "manifold_ranking",
    "personalised_pagerank",
    "query_vector",
    "rank",
]
