from .choices import Confidence as Confidence
from .choices import Graph as Graph
from .graph import Affinity as Affinity
from .graph import AffinityGraph as AffinityGraph
from .graph import InnerProductGraph as InnerProductGraph
from .graph import affinity_graph as affinity_graph
from .random_walks import generalised_pagerank as generalised_pagerank
from .random_walks import pagerank as pagerank
from .random_walks import personalised_pagerank as personalised_pagerank
from .random_walks import transition_matrix as transition_matrix
from .ranking import Solver as Solver
from .ranking import degrees as degrees
from .ranking import iterates as iterates
from .ranking import manifold_ranking as manifold_ranking
from .ranking import normalised_rank as normalised_rank
from .ranking import query_vector as query_vector
from .ranking import rank as rank
from .stage import ManifoldRanker as ManifoldRanker
from .validation import Choice as Choice
from .validation import choose_parameters as choose_parameters
from .validation import leave_one_query_out as leave_one_query_out
from .validation import scores_by_exponent as scores_by_exponent

__all__ = [
    "Affinity",
    "AffinityGraph",
    "Choice",
    "Confidence",
    "Graph",
    "InnerProductGraph",
    "ManifoldRanker",
    "Solver",
    "affinity_graph",
    "choose_parameters",
    "degrees",
    "generalised_pagerank",
    "iterates",
    "leave_one_query_out",
    "manifold_ranking",
    "normalised_rank",
    "pagerank",
    "personalised_pagerank",
    "query_vector",
    "rank",
    "scores_by_exponent",
    "transition_matrix",
]
