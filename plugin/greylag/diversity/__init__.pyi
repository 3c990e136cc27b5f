from .aspects import Aspects as Aspects
from .aspects import aspect_relevance as aspect_relevance
from .aspects import read_aspects as read_aspects
from .candidates import CandidateMaker as CandidateMaker
from .candidates import candidates_from_counts as candidates_from_counts
from .coverage import Coverage as Coverage
from .coverage import CoverageGain as CoverageGain
from .coverage import unweighted_coverage as unweighted_coverage
from .coverage_model import PRESETS as PRESETS
from .coverage_model import Candidates as Candidates
from .coverage_model import CoverageFeatures as CoverageFeatures
from .coverage_model import CoverageModel as CoverageModel
from .coverage_model import Criterion as Criterion
from .coverage_model import word_coverage as word_coverage
from .cssvm import CSSVM as CSSVM
from .essential_pages import EssentialPages as EssentialPages
from .essential_pages import EssentialPagesGain as EssentialPagesGain
from .member_choice import ChosenMember as ChosenMember
from .member_choice import MemberChooser as MemberChooser
from .member_choice import member_features as member_features
from .member_choice import train_chooser as train_chooser
from .mmr import MMR as MMR
from .mmr import MarginalRelevance as MarginalRelevance
from .model import DiversityModel as DiversityModel
from .oracle import SubtopicOracle as SubtopicOracle
from .oracle import subtopic_gain as subtopic_gain
from .pm2 import PM2 as PM2
from .pm2 import PM2Gain as PM2Gain
from .random_order import RandomOrder as RandomOrder
from .random_order import random_gain as random_gain
from .registry import DIVERSIFIERS as DIVERSIFIERS
from .registry import diversifier as diversifier
from .stage import DiversityStage as DiversityStage
from .stage import GreedyStage as GreedyStage
from .svmdiv import SVMDiv as SVMDiv
from .titles import read_titles as read_titles
from .training import C_GRID as C_GRID
from .training import choose_cost as choose_cost
from .training import fit_grid as fit_grid
from .training import mean_loss as mean_loss
from .training import train as train
from .training import training_examples as training_examples
from .xquad import XQuAD as XQuAD
from .xquad import XQuADGain as XQuADGain

__all__ = [
    "CSSVM",
    "C_GRID",
    "DIVERSIFIERS",
    "MMR",
    "PM2",
    "PRESETS",
    "Aspects",
    "CandidateMaker",
    "Candidates",
    "ChosenMember",
    "Coverage",
    "CoverageFeatures",
    "CoverageGain",
    "CoverageModel",
    "Criterion",
    "DiversityModel",
    "DiversityStage",
    "EssentialPages",
    "EssentialPagesGain",
    "GreedyStage",
    "MarginalRelevance",
    "MemberChooser",
    "PM2Gain",
    "RandomOrder",
    "SVMDiv",
    "SubtopicOracle",
    "XQuAD",
    "XQuADGain",
    "aspect_relevance",
    "candidates_from_counts",
    "choose_cost",
    "diversifier",
    "fit_grid",
    "mean_loss",
    "member_features",
    "random_gain",
    "read_aspects",
    "read_titles",
    "subtopic_gain",
    "train",
    "train_chooser",
    "training_examples",
    "unweighted_coverage",
    "word_coverage",
]
