from .sessions import feedback_session as feedback_session
from .stages import RelevanceModelRanker as RelevanceModelRanker
from .stages import Rocchio as Rocchio
