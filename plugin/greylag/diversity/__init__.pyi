from .candidates import CandidateMaker as CandidateMaker
from .candidates import candidates_from_counts as candidates_from_counts
from .coverage import Coverage as Coverage
from .coverage import subtopic_gain as subtopic_gain
from .coverage import unweighted_coverage as unweighted_coverage
from .coverage_model import PRESETS as PRESETS
from .coverage_model import Candidates as Candidates
from .coverage_model import CoverageModel as CoverageModel
from .dpp import DPP as DPP
from .essential_pages import EssentialPages as EssentialPages
from .essential_pages import EssentialPagesGain as EssentialPagesGain
from .group_limit import GroupLimit as GroupLimit
from .learner import DiversityLearner as DiversityLearner
from .mmr import MMR as MMR
from .mmr import MarginalRelevance as MarginalRelevance
from .model import DiversityModel as DiversityModel
from .msd import MSD as MSD
from .near_duplicates import NearDuplicates as NearDuplicates
from .pm2 import PM2 as PM2
from .random_order import RandomOrder as RandomOrder
from .stage import DiversityStage as DiversityStage
from .svmdiv import CSSVM as CSSVM
from .svmdiv import SVMDiv as SVMDiv
from .vector_gain import CosineGain as CosineGain
from .vector_gain import VectorGain as VectorGain
from .vector_gain import VectorStage as VectorStage
from .xquad import XQuAD as XQuAD

# isort: split
# Between wings, not public:
from .coverage_model import CoverageFeatures as CoverageFeatures
from .coverage_model import Criterion as Criterion
from .learner import Example as Example
