from .diversity.fusion import reciprocal_rank_fusion as reciprocal_rank_fusion
from .diversity.mmr import MMR as MMR
from .diversity.model import DiversityModel as DiversityModel
from .diversity.stage import CSSVM as CSSVM
from .diversity.stage import Coverage as Coverage
from .diversity.stage import EssentialPages as EssentialPages
from .diversity.stage import Random as Random
from .diversity.stage import SVMDiv as SVMDiv
from .errors import CollectionError as CollectionError
from .errors import DependencyError as DependencyError
from .errors import FormatError as FormatError
from .errors import GreylagError as GreylagError
from .errors import ModelError as ModelError
from .errors import ParameterError as ParameterError
from .evaluation import Measure as Measure
from .evaluation import Scores as Scores
from .evaluation import compare as compare
from .evaluation import evaluate_by_subtopic as evaluate_by_subtopic
from .evaluation import parse_measure as parse_measure
from .evaluation import pick_best_runs as pick_best_runs
from .evaluation.measures import evaluate as evaluate
from .features.extract import FeatureExtractor as FeatureExtractor
from .features.spec import FeatureSpec as FeatureSpec
from .features.spec import candidate_pool as candidate_pool
from .features.weighting import FeatureParameters as FeatureParameters
from .index.positional import PositionalIndex as PositionalIndex
from .ltr.data import RankingData as RankingData
from .ltr.estimator import EstimatorRanker as EstimatorRanker
from .ltr.explain import explain as explain
from .ltr.greedy import CoordinateAscent as CoordinateAscent
from .ltr.greedy import GreedySelection as GreedySelection
from .ltr.letor import read_features as read_features
from .ltr.letor import write_features as write_features
from .ltr.linear import LinearModel as LinearModel
from .ltr.linear import MRFRanker as MRFRanker
from .ltr.objectives import Objective as Objective
from .ltr.training import train as train
from .ltr.training import training_data as training_data
from .lucene.build import build_index as build_index
from .lucene.jvm import start_jvm as start_jvm
from .lucene.lucene_index import BM25 as BM25
from .lucene.lucene_index import LuceneIndex as LuceneIndex
from .lucene.lucene_index import QueryLikelihood as QueryLikelihood
from .manifold import manifold_ranking as manifold_ranking
from .manifold.stage import ManifoldRanker as ManifoldRanker
from .ranking import Composable as Composable
from .ranking import Pipeline as Pipeline
from .ranking import Query as Query
from .ranking import Ranking as Ranking
from .ranking import Run as Run
from .structured.coulomb import Coulomb as Coulomb
from .structured.cutting_plane import CuttingPlane as CuttingPlane
from .trec import read_qrels as read_qrels
from .trec import read_run as read_run
from .trec import read_subtopic_qrels as read_subtopic_qrels
from .trec import read_topics as read_topics
from .trec import write_run as write_run

__version__: str

__all__ = [
    "BM25",
    "CSSVM",
    "MMR",
    "CollectionError",
    "Composable",
    "CoordinateAscent",
    "Coulomb",
    "Coverage",
    "CuttingPlane",
    "DependencyError",
    "DiversityModel",
    "EssentialPages",
    "EstimatorRanker",
    "FeatureExtractor",
    "FeatureParameters",
    "FeatureSpec",
    "FormatError",
    "GreedySelection",
    "GreylagError",
    "LinearModel",
    "LuceneIndex",
    "MRFRanker",
    "ManifoldRanker",
    "Measure",
    "ModelError",
    "Objective",
    "ParameterError",
    "Pipeline",
    "PositionalIndex",
    "Query",
    "QueryLikelihood",
    "Random",
    "Ranking",
    "RankingData",
    "Run",
    "SVMDiv",
    "Scores",
    "build_index",
    "candidate_pool",
    "compare",
    "evaluate",
    "evaluate_by_subtopic",
    "explain",
    "manifold_ranking",
    "parse_measure",
    "pick_best_runs",
    "read_features",
    "read_qrels",
    "read_run",
    "read_subtopic_qrels",
    "read_topics",
    "reciprocal_rank_fusion",
    "start_jvm",
    "train",
    "training_data",
    "write_features",
    "write_run",
]
