from .explanation import explain as explain
from .export import engine_model as engine_model
from .model import RankingModel as RankingModel
from .stages import EstimatorRanker as EstimatorRanker
from .stages import FusionRanker as FusionRanker
from .stages import LeaveOutSelf as LeaveOutSelf
from .stages import ModelRanker as ModelRanker
from .stages import RM3Stage as RM3Stage
