from .build import build_index as build_index
from .doctor import Check as Check
from .doctor import diagnose as diagnose
from .jvm import start_jvm as start_jvm
from .lucene_index import BM25 as BM25
from .lucene_index import LuceneIndex as LuceneIndex
from .lucene_index import QueryLikelihood as QueryLikelihood
from .lucene_index import RM3Search as RM3Search
from .opening import Statistics as Statistics
from .prebuilt import prebuilt_index as prebuilt_index

__all__ = [
    "BM25",
    "Check",
    "LuceneIndex",
    "QueryLikelihood",
    "RM3Search",
    "Statistics",
    "build_index",
    "diagnose",
    "prebuilt_index",
    "start_jvm",
]
