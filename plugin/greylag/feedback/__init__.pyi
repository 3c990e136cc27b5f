from .sessions import MakeStage as MakeStage
from .sessions import Session as Session
from .sessions import feedback_session as feedback_session
from .sessions import residual_qrels as residual_qrels
from .sessions import residual_run as residual_run
from .stages import Feedback as Feedback
from .stages import RelevanceModelRanker as RelevanceModelRanker
from .stages import Rocchio as Rocchio
