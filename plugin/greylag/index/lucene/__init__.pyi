from .build import build_index as build_index
from .doctor import Check as Check
from .jvm import start_jvm as start_jvm
from .lucene_index import BM25 as BM25
from .lucene_index import LuceneIndex as LuceneIndex
from .lucene_index import QueryLikelihood as QueryLikelihood
