from .diversity import CSSVM as CSSVM
from .diversity import MMR as MMR
from .diversity import CandidateMaker as CandidateMaker
from .diversity import Coverage as Coverage
from .diversity import DiversityModel as DiversityModel
from .diversity import EssentialPages as EssentialPages
from .diversity import RandomOrder as RandomOrder
from .diversity import SubtopicOracle as SubtopicOracle
from .diversity import SVMDiv as SVMDiv
from .diversity import training_examples as training_examples
from .errors import CollectionError as CollectionError
from .errors import DependencyError as DependencyError
from .errors import FormatError as FormatError
from .errors import GreylagError as GreylagError
from .errors import ModelError as ModelError
from .errors import ParameterError as ParameterError
from .evaluation import Measure as Measure
from .evaluation import Scores as Scores
from .evaluation import compare as compare
from .evaluation import evaluate as evaluate
from .evaluation import evaluate_by_subtopic as evaluate_by_subtopic
from .evaluation import parse_measure as parse_measure
from .evaluation import pick_best_runs as pick_best_runs
from .features import FeatureExtractor as FeatureExtractor
from .features import FeatureParameters as FeatureParameters
from .features import FeatureSpec as FeatureSpec
from .features import Normalised as Normalised
from .features import Prior as Prior
from .features import ReciprocalRank as ReciprocalRank
from .features import RunScore as RunScore
from .features import Score as Score
from .features import StageScore as StageScore
from .features import Supplied as Supplied
from .features import VectorCosine as VectorCosine
from .features import candidate_pool as candidate_pool
from .features import parse_features as parse_features
from .fusion import GivenRun as GivenRun
from .fusion import Union as Union
from .fusion import comb_mnz as comb_mnz
from .fusion import comb_sum as comb_sum
from .fusion import fuse_runs as fuse_runs
from .fusion import reciprocal_rank_fusion as reciprocal_rank_fusion
from .greedy import Gain as Gain
from .greedy import ModularGain as ModularGain
from .greedy import greedy_picks as greedy_picks
from .index import PositionalIndex as PositionalIndex
from .interop import RankedPassage as RankedPassage
from .interop import rerank as rerank
from .ltr import RM3 as RM3
from .ltr import BaselineTuning as BaselineTuning
from .ltr import CoordinateAscent as CoordinateAscent
from .ltr import CrossValidation as CrossValidation
from .ltr import EstimatorRanker as EstimatorRanker
from .ltr import GreedyCommittee as GreedyCommittee
from .ltr import GreedySelection as GreedySelection
from .ltr import LinearModel as LinearModel
from .ltr import MMRPreselection as MMRPreselection
from .ltr import MRFRanker as MRFRanker
from .ltr import Objective as Objective
from .ltr import RankingData as RankingData
from .ltr import StackRecipe as StackRecipe
from .ltr import baselines as baselines
from .ltr import cross_validate as cross_validate
from .ltr import explain as explain
from .ltr import read_features as read_features
from .ltr import train as train
from .ltr import train_stack as train_stack
from .ltr import training_data as training_data
from .ltr import write_features as write_features
from .lucene import LuceneIndex as LuceneIndex
from .lucene import build_index as build_index
from .lucene import start_jvm as start_jvm
from .manifold import ManifoldRanker as ManifoldRanker
from .manifold import manifold_ranking as manifold_ranking
from .pipeline import Pipeline as Pipeline
from .pipeline import Source as Source
from .pipeline import Stage as Stage
from .ranking import FloatArray as FloatArray
from .ranking import IntArray as IntArray
from .ranking import Query as Query
from .ranking import Ranking as Ranking
from .ranking import Run as Run
from .ranking import unit_range as unit_range
from .runtime.compilation import compiled as compiled
from .runtime.json_files import read_json_lines as read_json_lines
from .runtime.parallel import parallel_map as parallel_map
from .runtime.progress import Steps as Steps
from .selection import InformationGainSelection as InformationGainSelection
from .selection import KollerSahamiSelection as KollerSahamiSelection
from .selection import MMRFeatureSelection as MMRFeatureSelection
from .structured import Coulomb as Coulomb
from .structured import CuttingPlane as CuttingPlane
from .structured import MultipleChoice as MultipleChoice
from .trec import open_run as open_run
from .trec import read_qrels as read_qrels
from .trec import read_run as read_run
from .trec import read_subtopic_qrels as read_subtopic_qrels
from .trec import read_topics as read_topics
from .trec import write_qrels as write_qrels
from .trec import write_rankings as write_rankings
from .trec import write_run as write_run
from .vectors import ArrayVectors as ArrayVectors
from .vectors import FaissVectors as FaissVectors
from .vectors import FunctionVectors as FunctionVectors
from .vectors import Vectors as Vectors

__version__: str

__all__ = [
    "CSSVM",
    "MMR",
    "RM3",
    "ArrayVectors",
    "BaselineTuning",
    "CandidateMaker",
    "CollectionError",
    "CoordinateAscent",
    "Coulomb",
    "Coverage",
    "CrossValidation",
    "CuttingPlane",
    "DependencyError",
    "DiversityModel",
    "EssentialPages",
    "EstimatorRanker",
    "FaissVectors",
    "FeatureExtractor",
    "FeatureParameters",
    "FeatureSpec",
    "FloatArray",
    "FormatError",
    "FunctionVectors",
    "Gain",
    "GivenRun",
    "GreedyCommittee",
    "GreedySelection",
    "GreylagError",
    "InformationGainSelection",
    "IntArray",
    "KollerSahamiSelection",
    "LinearModel",
    "LuceneIndex",
    "MMRFeatureSelection",
    "MMRPreselection",
    "MRFRanker",
    "ManifoldRanker",
    "Measure",
    "ModelError",
    "ModularGain",
    "MultipleChoice",
    "Normalised",
    "Objective",
    "ParameterError",
    "Pipeline",
    "PositionalIndex",
    "Prior",
    "Query",
    "RandomOrder",
    "RankedPassage",
    "Ranking",
    "RankingData",
    "ReciprocalRank",
    "Run",
    "RunScore",
    "SVMDiv",
    "Score",
    "Scores",
    "Source",
    "StackRecipe",
    "Stage",
    "StageScore",
    "Steps",
    "SubtopicOracle",
    "Supplied",
    "Union",
    "VectorCosine",
    "Vectors",
    "baselines",
    "build_index",
    "candidate_pool",
    "comb_mnz",
    "comb_sum",
    "compare",
    "compiled",
    "cross_validate",
    "evaluate",
    "evaluate_by_subtopic",
    "explain",
    "fuse_runs",
    "greedy_picks",
    "manifold_ranking",
    "open_run",
    "parallel_map",
    "parse_features",
    "parse_measure",
    "pick_best_runs",
    "read_features",
    "read_json_lines",
    "read_qrels",
    "read_run",
    "read_subtopic_qrels",
    "read_topics",
    "reciprocal_rank_fusion",
    "rerank",
    "start_jvm",
    "train",
    "train_stack",
    "training_data",
    "training_examples",
    "unit_range",
    "write_features",
    "write_qrels",
    "write_rankings",
    "write_run",
]
