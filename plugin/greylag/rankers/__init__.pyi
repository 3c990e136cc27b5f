from .explanation import explain as explain
from .export import engine_model as engine_model
from .manifold.graph import AffinityGraph as AffinityGraph
from .manifold.graph import Graph as Graph
from .manifold.graph import affinity_graph as affinity_graph
from .manifold.ranking import graph_degrees as graph_degrees
from .manifold.ranking import manifold_ranking as manifold_ranking
from .manifold.ranking import query_vector as query_vector
from .manifold.ranking import spread_iterates as spread_iterates
from .manifold.ranking import spread_scores as spread_scores
from .manifold.stage import ManifoldRanker as ManifoldRanker
from .model import LengthSlopes as LengthSlopes
from .model import RankingModel as RankingModel
from .stages import EstimatorRanker as EstimatorRanker
from .stages import FusionRanker as FusionRanker
from .stages import LeaveOutSelf as LeaveOutSelf
from .stages import MaxPassage as MaxPassage
from .stages import ModelRanker as ModelRanker
from .stages import RM3Stage as RM3Stage

# isort: split
# Between wings, not public:
from .explanation import Explanation as Explanation
from .explanation import explain_documents as explain_documents
from .explanation import reasons as reasons
from .explanation_tables import comparison_of_documents as comparison_of_documents
from .explanation_tables import explanation_dict as explanation_dict
from .explanation_tables import explanation_result as explanation_result
from .explanation_tables import explanation_table as explanation_table
from .export import ENGINES as ENGINES
from .export import LIGHTGBM as LIGHTGBM
from .model import span as span
from .stages import RM3_PARTS as RM3_PARTS
