"""Reranking and diversifying passages that have no index, by themselves and in LangChain and LlamaIndex."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from greylag.base import (
    GroupsLike,
    ParameterError,
    PassagesLike,
    Pipeline,
    Ranking,
    Series,
    Stage,
    VectorsLike,
    as_passages,
    as_vectors,
    check_counts,
    check_number,
    group_name,
    guided,
    imported,
    meant,
    naming,
    nearest,
    one_each,
    parameters,
    read_call,
    read_options,
    shown,
)
from greylag.features import find_stage, registered_stages, stage_parameters
from greylag.index import ENGLISH, ArrayVectors, analysis_of, language_code, unit_rows

if TYPE_CHECKING:
    from greylag.index import PositionalIndex

Method = str | Callable[["PositionalIndex"], Callable[[Ranking], Ranking]]
Encoder = Callable[[list[str]], Any]
"""From texts to their vectors, shape (n, m), as ``encode`` of sentence-transformers."""
_CALL_PARAMETERS = "method", "k", "language", "background", "scores", "vectors", "query_vector", "aspects", "groups"
_QID = "rerank"  # of the one query of a call, by which stages look up its aspects and vector
DATA = "vectors", "aspects", "groups"
"""The parameters of stages that are of one query."""
_RETRIEVAL_SCORE = "retrieval_score"
"""The retriever's score in a node's metadata, as LlamaIndex's own rerankers name it."""
_OTHERS = 10
"""Empty documents that are added for each passage, where statistics come from the candidates alone.

All candidates have the query's words, whose idf is then near 0. 2, 30 and 100 do about as well.
"""


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage at its new rank."""

    text: str
    doc_id: Any  # the key of a mapping of passages, or else the position
    score: float  # by the method; not above the score before it
    rank: int  # from 1
    position: int  # in the input, from 0
    original_score: float  # the input score; without scores, BM25's or the cosine


@guided
class Reranker:
    """Reranks or diversifies passages that have no index, one query after another.

    Parameters
    ----------
    method : str or callable, default "mmr"
        A stage as in ``greylag rerank --stage``, be it of another package: "general", "mmr", "msd", "dpp",
        "essential-pages", "coverage", "manifold", "rm3", "xquad", "pm2", "group-limit", "near-duplicates" or, with the
        option `model`, "svmdiv", "cssvm" and "mrf". Several are joined, each with its own options:
        "mmr(relevance_weight=0.5)>>group-limit(max_per_group=2)". Or a function from a `PositionalIndex` of the
        passages to a stage. Docids are the passages' positions, and with a background "passage " and the position.
    background : PositionalIndex, optional
        A collection like the passages', whose statistics, such as idf, count with theirs. Without it, "general" and
        BM25 suppose ten documents more for each passage that have none of their words.
    language : str, optional
        See `greylag.PositionalIndex.from_texts`. By default the background's, or else English.
    **options
        Parameters of the method's stage, such as ``relevance_weight=0.5`` of `greylag.MMR`. All passages are reranked
        unless `depth` says otherwise.

    Raises
    ------
    ParameterError
        If there is no such stage or language, the background has another one, or an option is unknown or missing.

    Examples
    --------
    >>> reranker = Reranker("mmr", relevance_weight=0.3)
    >>> texts = ["the cat sat", "the cat sat down", "a dog ran"]
    >>> [passage.position for passage in reranker.rank("cat", texts, [0.9, 0.8, 0.3])]
    [0, 2, 1]
    """

    def __init__(
        self,
        method: Method = "mmr",
        *,
        background: PositionalIndex | None = None,
        language: str | None = None,
        **options: Any,
    ) -> None:
        self._method, self._background = method, background
        # With a background, docids that no document of it has.
        self._name: Callable[[int], str] = str if background is None else "passage {}".format
        if background is not None and not hasattr(background, "parts"):
            raise ParameterError(
                f"background is {shown(background)}: give a PositionalIndex, by PositionalIndex.from_texts(texts) or "
                "PositionalIndex.from_lucene(folder)"
            )
        self._language = _language(language, background)
        self._steps: list[tuple[str, type[Stage], dict[str, Any]]] = []
        if callable(method):
            if options:
                raise ParameterError(f"{', '.join(options)}: a function of the index sets its stage's options itself")
            self._needs = frozenset[str]()
            return
        calls = [read_call(part) for part in method.split(">>")]
        if "k" in options and len(calls) == 1:  # picks of a stage; elsewhere, the passages to return
            raise ParameterError(
                f"k has two meanings: rank(query, passages, k={options['k']!r:.20}) returns as many passages, and the "
                f"method '{calls[0][0]}(k={options['k']!r:.20})' picks as many and keeps all others behind them"
            )
        if calls[0][0] == "bm25":
            raise ParameterError(
                "method 'bm25' ranks an index: use 'general', which begins with BM25, or .bm25(k) of a PositionalIndex"
            )
        if len(calls) > 1 and options:
            name, value = next(iter(options.items()))
            first = f"{calls[0][0]}({name}={value})" if isinstance(value, int | float | str) else f"{calls[0][0]}(...)"
            raise ParameterError(f"which stage of {method!r} takes {name}? Write {first!r}")
        for name, spelt in calls:
            self._steps.append((name, find_stage(name), _read_options(name, spelt, options)))
        self._needs = frozenset[str]().union(*(stage.needs for _, stage, _ in self._steps))
        trial = {"aspects": {}, "groups": {}, "depth": 1, "k": 1, "transfer": True}
        for _, stage, stage_options in self._steps:  # whatever is wrong with an option is found here
            known, vectors = stage_parameters(stage), "vectors" in stage.needs
            given = {name: value for name, value in trial.items() if name in known} | stage_options
            if vectors:
                given["vectors"] = ArrayVectors(["0"], [[1.0]])
                for option in ("latent", "containment"):  # which need an index
                    given.pop(option, None)
            elif "index" in known:
                given["index"] = self._index({"passage 0": ""})
            stage(**given)

    def __repr__(self) -> str:
        return f"Reranker({self._method!r})"

    @guided
    def rank(
        self,
        query: str,
        passages: PassagesLike,
        scores: Sequence[float] | Mapping[Any, float] | Series | None = None,
        *,
        vectors: VectorsLike | Encoder | None = None,
        query_vector: Any = None,
        aspects: Any = None,
        groups: Sequence[Any] | GroupsLike | None = None,
        k: int | None = None,
    ) -> list[RankedPassage]:
        """Rank the passages of one query, best first.

        Parameters
        ----------
        query : str
        passages : PassagesLike, of length n
            Texts in a sequence, or by identifiers of any kind, which are returned; see `greylag.base.PassagesLike`.
        scores : sequence of float, length n, or mapping or Series of float, optional
            Higher is better, in any order; equal scores keep the order of the passages. Without scores, those of BM25,
            or the cosines with `query_vector`. What has labels, here and below, is taken by the identifiers of the
            passages; those of passages without any are their positions.
        vectors : VectorsLike, or callable, optional
            Embeddings of the passages, or a function from a list of texts to them, for methods that compare passages,
            such as "mmr", instead of TF-IDF.
        query_vector : array-like of float, shape (m,), or callable, optional
            The query's embedding, or a function from its text. Without scores, its cosines with `vectors` are the
            scores, unscaled for "mmr", "msd" and "dpp". "manifold" needs it with `vectors`.
        aspects : sequence of str, array-like of float, or callable, optional
            For "xquad" and "pm2": texts, such as sub-questions; the passages' scores for them, shape (n, aspects); or a
            function from the query and passages to these. Scores are probabilities, unless `scale` says otherwise.
        groups : sequence, length n, or GroupsLike, optional
            For "group-limit": the group of each passage, such as its document or site; None is a group of its own.
        k : int >= 1, optional
            Return only the best ones.
        """
        if isinstance(passages, str) or not isinstance(query, str):
            raise ParameterError("rank takes one query, a sequence of passages and a sequence of scores")
        listed = as_passages(passages)
        keys = [passage.key for passage in listed]
        texts = {self._name(place): passage.text for place, passage in enumerate(listed)}
        if not (vectors is None or callable(vectors)):
            vectors = as_vectors(vectors, keys)
        scores = None if scores is None else one_each(scores, keys, "scores")
        groups = None if groups is None else one_each(groups, keys, "groups")
        self._check(vectors=vectors, aspects=aspects, groups=groups)
        if query_vector is not None and vectors is None:
            raise ParameterError("query_vector is given without vectors: give the passages' vectors=, too")
        if query_vector is not None and scores is not None and not any(kind.reads_query for _, kind, _ in self._steps):
            raise ParameterError(
                f"method {self._method!r} takes relevance from scores and does not read query_vector: leave out one"
            )
        if k is not None:
            check_counts(k=k)
        # After the checks: a wrong argument is wrong without passages, too.
        if not texts:
            return []
        every, docids = len(texts), tuple(texts)
        known: dict[str, Any] = {"depth": every, "k": every, "transfer": True}
        if aspects is not None:
            known["aspects"] = _aspects(aspects, texts)
        if groups is not None:
            known["groups"] = dict(zip(texts, _groups(groups, keys), strict=True))
        if vectors is not None:
            rows = vectors(list(texts.values())) if callable(vectors) else vectors
            known["vectors"] = ArrayVectors(docids, rows, self._query_vector(query, query_vector))

        @cache  # for BM25 and several stages; with vectors and scores it is never made
        def index(others: int) -> PositionalIndex:
            return self._index(texts, others)

        if scores is None and query_vector is not None:
            own = known["vectors"]
            rows = unit_rows(np.concatenate([own.query(_QID, query), own.documents(docids)]))
            ranking = Ranking.sort(_QID, query or " ", docids, np.einsum("ij,j->i", rows[1:], rows[0]))
            # Cosines with the query are on the scale of those among passages.
            known["scale"] = "none"
        elif scores is None:
            ranking = _by_bm25(query, docids, index(_OTHERS))
        else:
            values = [*map(_finite, scores, keys)]
            ranking = Ranking.sort(_QID, query or " ", docids, values)  # "" would be a query whose text is unknown
        picks = min(k or every, every)
        ranked = self._stage(known, picks, index)(ranking).head(picks)
        positions = {name: n for n, name in enumerate(texts)}
        before = dict(zip(ranking.docids, ranking.scores.tolist(), strict=True))
        return [
            RankedPassage(listed[n := positions[name]].text, keys[n], score, rank, n, before[name])
            for rank, (name, score) in enumerate(zip(ranked.docids, ranked.scores.tolist(), strict=True), 1)
        ]

    def _check(self, **data: Any) -> None:
        """Raise `ParameterError` if the method does not take one of `DATA` that is given, or needs one that is not."""
        for name, value in data.items():
            if value is None:
                if name in self._needs and name != "vectors":  # for which there is TF-IDF
                    raise ParameterError(f"method {self._method!r} needs {name}: give {name}=")
            elif callable(self._method):
                raise ParameterError(
                    f"method {self._method!r} takes no {name}: a function of the index sets them itself"
                )
            elif name not in self._needs:
                others = ", ".join(other for other in registered_stages() if name in find_stage(other).needs)
                joined = f", as in {f'{self._method}>>group-limit'!r}" if name == "groups" else ""
                raise ParameterError(f"method {self._method!r} takes no {name}: use {others}{joined}")

    def _query_vector(self, query: str, vector: Any) -> Mapping[str, Any] | Callable[[str], Any]:
        """Return the query's vector, or a function that reports that it is missing."""
        if vector is None:

            def missing(text: str) -> Any:
                raise ParameterError(
                    f"method {self._method!r} compares passages with the query: give query_vector=, too"
                )

            return missing
        return vector if callable(vector) else {_QID: vector}

    def _stage(
        self, known: Mapping[str, Any], k: int, index: Callable[[int], PositionalIndex]
    ) -> Callable[[Ranking], Ranking]:
        """Make the stages, with their options and as much of what is `known` as each takes; the last one picks k."""
        if callable(self._method):
            return self._method(index(0))
        stages: list[Callable[[Any], Ranking]] = []
        for number, (name, stage, options) in enumerate(self._steps, 1):
            parameters = stage_parameters(stage)
            last = {"k": k} if number == len(self._steps) else {}
            values = {name: value for name, value in {**known, **last}.items() if name in parameters} | options
            if "vectors" in values and "vectors" not in stage.needs:
                del values["vectors"]
            if number > 1 or "vectors" not in values:  # scores of a stage are ranks; aspects have a scale of their own
                values = {name: value for name, value in values.items() if name != "scale" or name in options}
            if "index" in parameters and "vectors" not in values:
                values["index"] = index(_OTHERS if name == "general" else 0)
            stages.append(stage(**values))
        pipeline: Pipeline[Ranking] = Pipeline(tuple(stages))
        return pipeline

    def _index(self, texts: Mapping[str, str], others: int = 0) -> PositionalIndex:
        """Make the index of texts, beside the background, or else `others` empty documents for each."""
        from greylag.index import (
            PositionalIndex,
            index_beside,  # imports Numba, which embeddings do not need
        )

        if self._background is not None:
            return index_beside(self._background, texts)
        padded = {**texts, **{f"other {n}": "" for n in range(others * len(texts))}}
        return PositionalIndex.from_texts(padded, language=self._language)


@guided
def rerank(
    query: str,
    passages: PassagesLike,
    scores: Sequence[float] | Mapping[Any, float] | Series | None = None,
    *,
    method: Method | None = None,
    k: int | None = None,
    vectors: VectorsLike | Encoder | None = None,
    **options: Any,
) -> list[RankedPassage]:
    """Rerank passages of one query: by default, those with scores by MMR, those without by the general model.

    MMR diversifies what a retriever, such as a vector store, has scored, and does not read the query. This is a
    `Reranker`, used once.

    Parameters
    ----------
    query, passages, scores, k, vectors
        See `Reranker.rank`.
    method : str or callable, optional
        See `Reranker`. By default "mmr", and without scores "general", which ranks by the query's words.
    **options
        Those of `Reranker`, such as `language`, and `query_vector`, `aspects` and `groups` of `Reranker.rank`.

    Returns
    -------
    list of RankedPassage
        Best first.

    Examples
    --------
    >>> texts = ["the cat sat", "the cat sat down", "a dog ran"]
    >>> [passage.position for passage in rerank("cat", texts, [0.9, 0.8, 0.3], relevance_weight=0.3)]
    [0, 2, 1]
    """
    call_data = {name: options.pop(name) for name in ("query_vector", "aspects", "groups") if name in options}
    reranker = Reranker(method or ("general" if scores is None else "mmr"), **options)
    return reranker.rank(query, passages, scores, vectors=vectors, k=k, **call_data)


@guided
def langchain_compressor(
    method: Method = "mmr",
    *,
    k: int | None = None,
    score: str | None = "score",
    group: str | None = None,
    vectors: Encoder | str | None = None,
    query_vector: Callable[[str], Any] | None = None,
    aspects: Callable[[str, list[str]], Any] | None = None,
    **options: Any,
) -> Any:
    """Return a ``BaseDocumentCompressor`` that reranks or diversifies retrieved documents.

    A document's new score is in its metadata, as ``greylag_score``. In a chain, it takes a query and documents:
    ``{"query": RunnablePassthrough(), "documents": retriever} | compressor``. It is pickled if its functions are.

    Parameters
    ----------
    method, **options
        See `greylag.Reranker`, which checks them at once.
    k : int >= 1, optional
        Return only the best ones.
    score : str or None, default "score"
        The metadata field with the retriever's score, higher being better. If this is None, or no document has a score,
        as from LangChain's own retrievers, their order counts. A field of another name has to be there.
    group : str, optional
        The metadata field that is a document's group, such as "source", for "mmr>>group-limit".
    vectors : callable or str, optional
        A function such as ``embeddings.embed_documents``, or the metadata field that is a document's embedding.
    query_vector, aspects : callable, optional
        See `Reranker.rank`; such as ``embeddings.embed_query``.

    Returns
    -------
    langchain_core.documents.BaseDocumentCompressor, which is a langchain_core.runnables.Runnable
    """
    documents = imported("langchain_core.documents", "langchain-core")
    runnables = imported("langchain_core.runnables", "langchain-core")
    query_inputs: dict[str, Any] = {
        "group": group,
        "vectors": vectors,
        "query_vector": query_vector,
        "aspects": aspects,
    }
    base = _adapter(langchain_compressor, method, k, options, query_inputs, score=score)

    class GreylagCompressor(base, documents.BaseDocumentCompressor, runnables.RunnableSerializable):  # type: ignore[misc, name-defined, valid-type, unused-ignore]
        """Reranks by `greylag.Reranker`."""

        def invoke(self, input: Any, config: Any = None, **_: Any) -> list[Any]:
            """Rerank the documents of a mapping with the keys "query" and "documents"."""
            if not (isinstance(input, Mapping) and input.keys() >= {"query", "documents"}):
                raise ParameterError(
                    f"a compressor in a chain was given {shown(input)}: give a query and documents, as in "
                    "{'query': RunnablePassthrough(), 'documents': retriever} | compressor"
                )
            return self.compress_documents(input["documents"], input["query"])

        def compress_documents(self, documents: Sequence[Any], query: str, callbacks: Any = None) -> list[Any]:
            """Return the documents in their new order."""
            ranked = self._ranked(
                query,
                documents,
                text=_page_content,
                score=lambda document: document.metadata.get(score),
                vector=lambda document: document.metadata.get(vectors),
                metadata=lambda document: document.metadata,
            )
            return [old.model_copy(update={"metadata": old.metadata | {"greylag_score": new}}) for old, new in ranked]

    return GreylagCompressor()


@guided
def llama_index_postprocessor(
    method: Method = "mmr",
    *,
    k: int | None = None,
    group: str | None = None,
    vectors: Encoder | Literal["embedding"] | None = None,
    query_vector: Callable[[str], Any] | None = None,
    aspects: Callable[[str, list[str]], Any] | None = None,
    **options: Any,
) -> Any:
    """Return a ``BaseNodePostprocessor`` that reranks or diversifies retrieved nodes.

    The retriever's score stays in a node's metadata, as ``retrieval_score``, hidden from language models and
    embeddings. If no node has a score, their order counts. It is pickled if its functions are.

    Parameters
    ----------
    method, k, query_vector, aspects, **options
        See `langchain_compressor`.
    group : str, optional
        The metadata field that is a node's group, such as "file_name", for "mmr>>group-limit".
    vectors : callable or "embedding", optional
        A function such as ``embed_model.get_text_embedding_batch``, or "embedding" for the nodes' own.

    Returns
    -------
    llama_index.core.postprocessor.types.BaseNodePostprocessor
    """
    types = imported("llama_index.core.postprocessor.types", "llama-index-core")
    schema = imported("llama_index.core.schema", "llama-index-core")
    if isinstance(vectors, str) and vectors != "embedding":
        raise ParameterError(f"vectors is {vectors!r}: give 'embedding' or a function of texts")
    query_inputs: dict[str, Any] = {
        "group": group,
        "vectors": vectors,
        "query_vector": query_vector,
        "aspects": aspects,
    }
    base = _adapter(llama_index_postprocessor, method, k, options, query_inputs)

    class GreylagPostprocessor(base, types.BaseNodePostprocessor):  # type: ignore[misc, name-defined, valid-type, unused-ignore]
        """Reranks by `greylag.Reranker`."""

        @classmethod
        def class_name(cls) -> str:
            """Return the name under which LlamaIndex serialises it."""
            return "GreylagPostprocessor"

        def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
            if query_bundle is None:
                raise ParameterError("reranking needs the query: give query_str= or query_bundle=")
            ranked = self._ranked(
                query_bundle.query_str,
                nodes,
                text=lambda scored: scored.node.get_content(schema.MetadataMode.NONE),
                score=lambda scored: scored.score,
                vector=lambda scored: scored.node.embedding,
                metadata=lambda scored: scored.metadata,
            )
            return [schema.NodeWithScore(node=_with_score(scored), score=new) for scored, new in ranked]

    return GreylagPostprocessor()


def _adapter(
    make: Callable[..., Any],
    method: Method,
    k: int | None,
    options: Mapping[str, Any],
    query_inputs: Mapping[str, Any],
    **others: Any,
) -> Any:
    """Return the base of a class of another package, whose documents it ranks by one reranker for all queries."""
    # Here, so that a mistake is found before the first query.
    shared = {name: given for name, given in query_inputs.items() if name != "group"}
    for name, given in shared.items():
        if not (given is None or callable(given) or (name == "vectors" and isinstance(given, str))):
            raise ParameterError(
                f"{name}, a {type(given).__name__}, would serve every query: give a function, as documented"
            )
    if k is not None:
        check_counts(k=k)
    reranker, group = Reranker(method, **options), query_inputs["group"]
    reranker._check(vectors=shared["vectors"], aspects=shared["aspects"], groups=group)

    class Adapter:
        def __reduce__(self) -> tuple[Callable[[], Any], tuple[()]]:
            return partial(make, method, k=k, **query_inputs, **others, **options), ()

        def _ranked(
            self, query: str, documents: Sequence[Any], **read: Callable[[Any], Any]
        ) -> list[tuple[Any, float]]:
            """Return documents with new scores, best first; `read` has functions from a document to its parts."""
            texts, scores = list(map(read["text"], documents)), list(map(read["score"], documents))
            missing = [number for number, score in enumerate(scores) if score is None]
            is_expected = others.get("score") not in {None, "score"}  # a field that is expected
            if missing and (is_expected or len(missing) < len(scores)):
                what = others["score"] if is_expected else "score"
                raise ParameterError(
                    f"passage {missing[0]} has no {what}: give all one, or none to go by their order (score=None)"
                )
            inputs = {**shared, "scores": range(len(scores), 0, -1) if missing else scores}
            if isinstance(name := inputs["vectors"], str):
                inputs["vectors"] = list(map(read["vector"], documents))
                if any(vector is None for vector in inputs["vectors"]):
                    raise ParameterError(f"a passage has no {name!r}: give vectors=, a function of texts")
            if group is not None:
                metadata = [read["metadata"](document) for document in documents]
                if documents:
                    check_field(group, [*{name for fields in metadata for name in fields}], "group")
                inputs["groups"] = [fields.get(group) for fields in metadata]
            return [(documents[new.position], new.score) for new in reranker.rank(query, texts, k=k, **inputs)]

    return Adapter


def check_field(name: Any, fields: Sequence[Any], what: str) -> None:
    """Raise `ParameterError` unless passages have a field of this name."""
    if name not in fields:  # no set, which would hash a name of any type
        known = sorted(map(str, fields))
        raise ParameterError(f"{what}: no passage has a field {name!r}: {nearest(str(name), known)}")


def _groups(groups: Sequence[Any], keys: Sequence[Any]) -> list[str | None]:
    """Name the group of each passage, which some passage has: else no limit would apply."""
    names = [group_name(group, f"the group of passage {keys[n]}") for n, group in enumerate(groups)]
    if not any(names):
        raise ParameterError("groups: no passage has one, so that no limit would apply")
    return names


def _with_score(scored: Any) -> Any:
    """Return a copy of a node of LlamaIndex with the retriever's score in its metadata, unseen by models."""
    kinds = "excluded_llm_metadata_keys", "excluded_embed_metadata_keys"
    changed = {kind: [*getattr(scored.node, kind), _RETRIEVAL_SCORE] for kind in kinds}
    changed["metadata"] = scored.node.metadata | {_RETRIEVAL_SCORE: scored.score}
    return scored.node if scored.score is None else scored.node.model_copy(update=changed)


def _page_content(document: Any) -> Any:
    """Return the text of a document of LangChain."""
    if not hasattr(document, "page_content"):
        raise ParameterError(f"{shown(document)} is no document of LangChain: greylag.rerank(query, texts) takes texts")
    return document.page_content


def _read_options(name: str, parsed: Mapping[str, Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """Merge a stage's options from its spelling and from Python; raise if one is unknown or missing."""
    stage, call_inputs = find_stage(name), ("index", *DATA)
    # Values that can be spelt are checked as if they were; contents of files cannot.
    known = parameters(stage, *call_inputs)
    spelt = {key: value for key, value in named.items() if key in known and not known[key].open}
    others = {key: value for key, value in named.items() if key not in spelt}
    with naming(f"method {name!r}"):
        every = [key for key in stage_parameters(stage) if key not in call_inputs]
        for key in [key for key in others if key not in every]:
            raise ParameterError(
                f"{name} has no option {key!r}: {_instead(key, [*dict.fromkeys([*_CALL_PARAMETERS, *every])])}"
            )
        options = {key: value.item() if isinstance(value, np.generic) else value for key, value in spelt.items()}
        return others | read_options(name, {**parsed, **options}, parameters(stage, *call_inputs, *others))


def _instead(key: str, known: Sequence[str]) -> str:
    """Return the end of the error of an unknown option: what may be meant, also of the methods that have the option."""
    hint = nearest(key, known)
    if hint.startswith("use "):
        for method in registered_stages():
            options = parameters(find_stage(method), "index", *DATA)
            if ours := key if key in options else meant(key, options):
                return f"it is {ours} of method {method!r}"
    return hint


def _language(language: str | None, background: PositionalIndex | None) -> str:
    """Return the code of a language, by default the background's; raise if the two differ."""
    if language is None:
        return ENGLISH if background is None else background.language
    code = language_code(language)
    if background is not None and background.language != code:
        raise ParameterError(
            f"language is {language!r}, but the background is analysed as {background.language!r}: make it by "
            f"PositionalIndex.from_texts(texts, language={language!r})"
        )
    analysis_of(code)
    return code


# The messages' names of passages are made for what is wrong alone: they take longer than reranking.
def _finite(score: Any, key: Any) -> float:
    if type(score) is float and math.isfinite(score):
        return score
    return check_number(score, f"the score of passage {key}")


def _by_bm25(query: str, docids: tuple[str, ...], index: PositionalIndex) -> Ranking:
    """Rank passages by the sum of BM25 over the query's terms."""
    from greylag.features import (
        FeatureExtractor,  # slow to import
        FeatureSpec,
    )

    as_given = Ranking(_QID, query or " ", docids, np.zeros(len(docids)))
    return as_given.rescore(FeatureExtractor(index, (FeatureSpec("FI", "term", "BM25"),))(as_given)[:, 0])


def _aspects(given: Any, texts: Mapping[str, str]) -> Any:
    """Convert aspects to the form that a stage takes."""
    if callable(given):
        return lambda candidates: given(candidates.query, [texts[docid] for docid in candidates.docids])
    if isinstance(given, Sequence) and not isinstance(given, str) and all(isinstance(text, str) for text in given):
        return {_QID: tuple(given)}
    scores, rows = np.asarray(given), {docid: place for place, docid in enumerate(texts)}
    if scores.ndim != 2 or len(scores) != len(texts) or scores.dtype.kind not in "fiu":
        raise ParameterError(
            f"aspects are an array of shape {scores.shape} and type {scores.dtype} for {len(texts)} passages: give "
            "texts, a function, or numbers with a row for each passage"
        )
    return lambda candidates: scores[[rows[docid] for docid in candidates.docids]]
