from .frames import qrels_from_frame as qrels_from_frame
from .frames import qrels_to_frame as qrels_to_frame
from .frames import run_from_frame as run_from_frame
from .frames import run_to_frame as run_to_frame
from .frames import topics_from_frame as topics_from_frame
from .frames import topics_to_frame as topics_to_frame
from .ir_datasets import qrels_from_ir_datasets as qrels_from_ir_datasets
from .ir_datasets import run_from_ir_datasets as run_from_ir_datasets
from .ir_datasets import texts_from_ir_datasets as texts_from_ir_datasets
from .ir_datasets import topics_from_ir_datasets as topics_from_ir_datasets
from .langchain import langchain_compressor as langchain_compressor
from .llama_index import llama_index_postprocessor as llama_index_postprocessor
from .named import named_qrels as named_qrels
from .named import named_topics as named_topics
from .passages import RankedPassage as RankedPassage
from .passages import rerank as rerank
from .pyserini import Hit as Hit
from .pyserini import PyseriniSource as PyseriniSource
from .pyserini import qrels_from_pyserini as qrels_from_pyserini
from .pyserini import run_from_pyserini as run_from_pyserini
from .pyserini import run_to_pyserini as run_to_pyserini
from .pyserini import topics_from_pyserini as topics_from_pyserini
from .pyterrier import PyTerrierSource as PyTerrierSource
from .pyterrier import PyTerrierStage as PyTerrierStage
from .pyterrier import from_pyterrier as from_pyterrier
from .pyterrier import to_pyterrier as to_pyterrier
from .ranx import qrels_from_ranx as qrels_from_ranx
from .ranx import qrels_to_ranx as qrels_to_ranx
from .ranx import run_from_ranx as run_from_ranx
from .ranx import run_to_ranx as run_to_ranx
from .rerankers import rerank_results as rerank_results

__all__ = [
    "Hit",
    "PyTerrierSource",
    "PyTerrierStage",
    "PyseriniSource",
    "RankedPassage",
    "from_pyterrier",
    "langchain_compressor",
    "llama_index_postprocessor",
    "named_qrels",
    "named_topics",
    "qrels_from_frame",
    "qrels_from_ir_datasets",
    "qrels_from_pyserini",
    "qrels_from_ranx",
    "qrels_to_frame",
    "qrels_to_ranx",
    "rerank",
    "rerank_results",
    "run_from_frame",
    "run_from_ir_datasets",
    "run_from_pyserini",
    "run_from_ranx",
    "run_to_frame",
    "run_to_pyserini",
    "run_to_ranx",
    "texts_from_ir_datasets",
    "to_pyterrier",
    "topics_from_frame",
    "topics_from_ir_datasets",
    "topics_from_pyserini",
    "topics_to_frame",
]
