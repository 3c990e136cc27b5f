from .judged import Feedback as Feedback
from .judged import Judged as Judged
from .judged import judged_documents as judged_documents
from .relevance_model import RelevanceModelRanker as RelevanceModelRanker
from .rocchio import Rocchio as Rocchio
from .sessions import MakeStage as MakeStage
from .sessions import Session as Session
from .sessions import given_session as given_session
from .sessions import interactive_session as interactive_session
from .sessions import residual_qrels as residual_qrels
from .sessions import residual_run as residual_run

__all__ = [
    "Feedback",
    "Judged",
    "MakeStage",
    "RelevanceModelRanker",
    "Rocchio",
    "Session",
    "given_session",
    "interactive_session",
    "judged_documents",
    "residual_qrels",
    "residual_run",
]
