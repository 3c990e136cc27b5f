from . import baselines as baselines
from .baselines import Baseline as Baseline
from .committee import GreedyCommittee as GreedyCommittee
from .coordinate_ascent import CoordinateAscent as CoordinateAscent
from .counted import CountedRankings as CountedRankings
from .cross_validation import CrossValidation as CrossValidation
from .cross_validation import cross_validate as cross_validate
from .cross_validation import rerank_by_fold as rerank_by_fold
from .cross_validation import split_folds as split_folds
from .data import RankingData as RankingData
from .data import distinct_features as distinct_features
from .explanation import CliqueShare as CliqueShare
from .explanation import Explanation as Explanation
from .explanation import FeatureShare as FeatureShare
from .explanation import explain as explain
from .explanation import explain_documents as explain_documents
from .greedy import GreedySelection as GreedySelection
from .induction import add_products as add_products
from .learner import Learner as Learner
from .learner import Selection as Selection
from .letor import read_features as read_features
from .letor import write_features as write_features
from .linear import LinearModel as LinearModel
from .objectives import Objective as Objective
from .preselect import MMRPreselection as MMRPreselection
from .rankers import EstimatorRanker as EstimatorRanker
from .rankers import MRFRanker as MRFRanker
from .rm3 import RM3 as RM3
from .stack import StackRecipe as StackRecipe
from .stack import train_stack as train_stack
from .training import selected_model as selected_model
from .training import train as train
from .training import training_data as training_data
from .training import useful_features as useful_features
from .tuned_baselines import BaselineTuning as BaselineTuning
from .tuning import Choice as Choice
from .tuning import Grid as Grid
from .tuning import Tuned as Tuned
from .tuning import after_each_round as after_each_round
from .tuning import choose_learner as choose_learner
from .tuning import parameter_grid as parameter_grid
from .tuning import tune_on_data as tune_on_data

__all__ = [
    "RM3",
    "Baseline",
    "BaselineTuning",
    "Choice",
    "CliqueShare",
    "CoordinateAscent",
    "CountedRankings",
    "CrossValidation",
    "EstimatorRanker",
    "Explanation",
    "FeatureShare",
    "GreedyCommittee",
    "GreedySelection",
    "Grid",
    "Learner",
    "LinearModel",
    "MMRPreselection",
    "MRFRanker",
    "Objective",
    "RankingData",
    "Selection",
    "StackRecipe",
    "Tuned",
    "add_products",
    "after_each_round",
    "baselines",
    "choose_learner",
    "cross_validate",
    "distinct_features",
    "explain",
    "explain_documents",
    "parameter_grid",
    "read_features",
    "rerank_by_fold",
    "selected_model",
    "split_folds",
    "train",
    "train_stack",
    "training_data",
    "tune_on_data",
    "useful_features",
    "write_features",
]
