from .adapters.frames import qrels_to_frame as qrels_to_frame
from .adapters.frames import run_to_frame as run_to_frame
from .adapters.frames import topics_to_frame as topics_to_frame
from .adapters.ir_datasets import qrels_from_ir_datasets as qrels_from_ir_datasets
from .adapters.ir_datasets import run_from_ir_datasets as run_from_ir_datasets
from .adapters.ir_datasets import subtopic_qrels_from_ir_datasets as subtopic_qrels_from_ir_datasets
from .adapters.ir_datasets import texts_from_ir_datasets as texts_from_ir_datasets
from .adapters.ir_datasets import topics_from_ir_datasets as topics_from_ir_datasets
from .adapters.named import named_qrels as named_qrels
from .adapters.named import named_topics as named_topics
from .adapters.pyserini import PyseriniSource as PyseriniSource
from .adapters.pyserini import qrels_from_pyserini as qrels_from_pyserini
from .adapters.pyserini import run_from_pyserini as run_from_pyserini
from .adapters.pyserini import run_to_pyserini as run_to_pyserini
from .adapters.pyserini import topics_from_pyserini as topics_from_pyserini
from .adapters.pyterrier import PyTerrierSource as PyTerrierSource
from .adapters.pyterrier import PyTerrierStage as PyTerrierStage
from .adapters.pyterrier import from_pyterrier as from_pyterrier
from .adapters.pyterrier import to_pyterrier as to_pyterrier
from .adapters.ranx import qrels_to_ranx as qrels_to_ranx
from .adapters.ranx import run_to_ranx as run_to_ranx
from .adapters.retrievers import langchain_retriever as langchain_retriever
from .adapters.retrievers import llama_index_retriever as llama_index_retriever
from .reranking import RankedPassage as RankedPassage
from .reranking import Reranker as Reranker
from .reranking import langchain_compressor as langchain_compressor
from .reranking import llama_index_postprocessor as llama_index_postprocessor
from .reranking import rerank as rerank
from .retriever import HybridRetriever as HybridRetriever
from .retriever import RetrievedPassage as RetrievedPassage

# isort: split
# Between wings, not public:
from .adapters.ir_datasets import write_documents as write_documents
