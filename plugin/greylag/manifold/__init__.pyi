from .graph import Affinity as Affinity
from .graph import AffinityGraph as AffinityGraph
from .graph import Graph as Graph
from .graph import InnerProductGraph as InnerProductGraph
from .graph import affinity_graph as affinity_graph
from .ranking import Solver as Solver
from .ranking import iterates as iterates
from .ranking import manifold_ranking as manifold_ranking
from .ranking import personalised_pagerank as personalised_pagerank
from .ranking import query_vector as query_vector
from .ranking import rank as rank
from .stage import Confidence as Confidence
from .stage import ManifoldRanker as ManifoldRanker

__all__ = [
    "Affinity",
    "AffinityGraph",
    "Confidence",
    "Graph",
    "InnerProductGraph",
    "ManifoldRanker",
    "Solver",
    "affinity_graph",
    "iterates",
    "manifold_ranking",
    "personalised_pagerank",
    "query_vector",
    "rank",
]
