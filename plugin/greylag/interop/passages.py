"""Reranking and diversifying passages that have no index, by themselves and in LangChain, LlamaIndex and rerankers.

Texts and scores come in, a list goes out, without a JVM.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from greylag.checks import check_counts
from greylag.diversity.group_limit import GroupLimit
from greylag.errors import ParameterError
from greylag.hints import shown
from greylag.interop import names
from greylag.ranking import Ranking
from greylag.stages import find_stage, registered_stages, required_parameters, stage_parameters
from greylag.tables import imported
from greylag.vectors import ArrayVectors

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex

Method = str | Callable[["PositionalIndex"], Callable[[Ranking], Ranking]]


@dataclass(frozen=True, slots=True)
class RankedPassage:
    """A passage in its new place."""

    text: str
    doc_id: Any  # as given, or else the position
    score: float  # by the method; not above that of the passage before it
    rank: int  # from 1
    position: int  # in the input, from 0


def rerank(
    query: str,
    passages: Sequence[str],
    scores: Sequence[float],
    *,
    method: Method = "mmr",
    doc_ids: Sequence[Any] | None = None,
    vectors: Any = None,
    query_vector: Any = None,
    aspects: Any = None,
    groups: Sequence[Any] | None = None,
    max_per_group: int = 1,
    decay: float = 0.0,
    top_k: int | None = None,
    **options: Any,
) -> list[RankedPassage]:
    """Rerank or diversify passages that have scores, from a vector store for example.

    Term statistics, such as idf, are those of the passages themselves. All passages are reranked unless the options
    `depth` and `k` say otherwise.

    Parameters
    ----------
    query : str
    passages : sequence of str, length n
    scores : sequence of float, length n
        Higher is better, in any order. Equal scores keep the order of the passages.
    method : str or callable, default "mmr"
        The name of a stage, as in ``greylag rerank --stage``, be it of another package: "mmr", "msd", "dpp",
        "essential-pages", "coverage", "manifold", "rm3", "xquad" and "pm2", or, with the option `model`, "svmdiv",
        "cssvm" and "mrf". Or a function from a `PositionalIndex` of the passages, whose docids are their positions, to
        a stage.
    doc_ids : sequence, length n, optional
        Identifiers to return.
    vectors : array-like of float, shape (n, m), optional
        Embeddings of the passages, for methods that compare them, such as "mmr", in place of TF-IDF.
    query_vector : array-like of float, shape (m,), optional
        The query's embedding, which "manifold" needs with `vectors`.
    aspects : sequence of str, array-like of float, or callable, optional
        For "xquad" and "pm2": the texts of aspects of the query, such as sub-questions; the scores of the passages for
        them, shape (n, aspects); or a function from the query and passages to these, such as a cross-encoder. Scores
        are probabilities, unless the option `scale` is "max" or "sigmoid".
    groups : sequence, length n, optional
        The group of each passage, such as its document or site; None is a group of its own. Passages beyond the first
        `max_per_group` of a group then follow all others, or count `decay` times less each (see
        `greylag.diversity.GroupLimit`), unless the method is one of groups itself.
    max_per_group : int >= 1, default 1
    decay : float in [0, 1], default 0
    top_k : int >= 1, optional
        Return only the best ones.
    **options
        Parameters of the method's stage, such as ``relevance_weight=0.5`` of `greylag.MMR`.

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
    if isinstance(passages, str) or (isinstance(query, Sequence) and not isinstance(query, str)):
        raise ParameterError("rerank takes one query, a sequence of passages and a sequence of scores")
    texts = dict(zip(map(str, range(len(passages))), passages, strict=True))
    if set(map(type, passages)) - {str}:
        texts = {place: names.text(passage, f"passage {place}") for place, passage in texts.items()}
    for what, given in (("scores", scores), ("doc_ids", doc_ids), ("groups", groups)):
        if given is not None and len(given) != len(texts):
            raise ParameterError(f"{len(texts)} passages but {len(given)} {what}: give one for each")
    if top_k is not None:
        check_counts(top_k=top_k)
    values = scores
    if set(map(type, scores)) - {int, float}:
        values = [names.number(score, f"passage {place}") for place, score in enumerate(scores)]
    ranking = Ranking.sort("rerank", names.text(query, "the query"), list(texts), values)
    needs = find_stage(method).needs if isinstance(method, str) else frozenset[str]()
    if (aspects is not None) != ("aspects" in needs):
        raise ParameterError(f"aspects are for {_needing('aspects')}, which need them, not for {method!r}")
    k = max(1, min(top_k or len(texts), len(texts)))
    every = max(1, len(texts))
    known: dict[str, Any] = {"depth": every, "k": k if groups is None else every, "transfer": True}
    if aspects is not None:
        known["aspects"] = _aspects(aspects, texts)
    group_of = None if groups is None else dict(zip(texts, groups, strict=True))
    if "groups" in needs and group_of is not None:
        known |= {"groups": group_of, "max_per_group": max_per_group, "decay": decay}
    ranked = _stage(method, texts, vectors, query_vector, options, known)(ranking)
    if "groups" not in needs and group_of is not None:
        limit = GroupLimit(group_of, max_per_group, decay, depth=every, k=every)
        ranked = limit(ranked)
    ranked = ranked.head(k)
    return [
        RankedPassage(texts[docid], int(docid) if doc_ids is None else doc_ids[int(docid)], score, rank, int(docid))
        for rank, (docid, score) in enumerate(zip(ranked.docids, ranked.scores.tolist(), strict=True), 1)
    ]


def langchain_compressor(
    *,
    method: Method = "mmr",
    top_k: int | None = None,
    score: str | None = "score",
    group: str | None = None,
    **options: Any,
) -> Any:
    """A ``BaseDocumentCompressor`` that reranks or diversifies retrieved documents.

    Each returned document has the new score in its metadata, as ``greylag_score``.

    Parameters
    ----------
    method, **options
        See `greylag.rerank`.
    top_k : int >= 1, optional
        Return only the best ones.
    score : str or None, default "score"
        The metadata field with the retriever's score, higher being better. None takes the order of the documents
        instead, as scores n, n - 1, ..., 1; LangChain's own retrievers return no scores.
    group : str, optional
        The metadata field that is a document's group, such as "source", of which `max_per_group` are kept in front.

    Returns
    -------
    langchain_core.documents.BaseDocumentCompressor
    """
    documents = imported("langchain_core.documents", "langchain-core")

    class GreylagCompressor(documents.BaseDocumentCompressor):  # type: ignore[misc, name-defined, unused-ignore]
        """Reranks by `greylag.rerank`."""

        def compress_documents(self, documents: Sequence[Any], query: str, callbacks: Any = None) -> list[Any]:
            """The documents in their new order."""
            scores: list[float] = [*range(len(documents), 0, -1)]
            if score is not None:
                if bare := next((document for document in documents if score not in document.metadata), None):
                    there = ", ".join(bare.metadata) or "nothing"
                    raise ParameterError(
                        f"a document has no {score!r} in its metadata, which has {there}: name the field with score=, "
                        "or give score=None to go by the order of the documents"
                    )
                scores = [document.metadata[score] for document in documents]
            texts = [document.page_content for document in documents]
            groups = None if group is None else [document.metadata.get(group) for document in documents]
            ranked = rerank(query, texts, scores, method=method, groups=groups, top_k=top_k, **options)
            chosen = [(documents[new.position], {"greylag_score": new.score}) for new in ranked]
            return [old.model_copy(update={"metadata": old.metadata | new}) for old, new in chosen]

    return GreylagCompressor()


def llama_index_postprocessor(
    *, method: Method = "mmr", top_k: int | None = None, group: str | None = None, **options: Any
) -> Any:
    """A ``BaseNodePostprocessor`` that reranks or diversifies retrieved nodes.

    Parameters
    ----------
    method, **options
        See `greylag.rerank`.
    top_k : int >= 1, optional
        Return only the best ones.
    group : str, optional
        The metadata field that is a node's group, such as "file_name", of which `max_per_group` are kept in front.

    Returns
    -------
    llama_index.core.postprocessor.types.BaseNodePostprocessor
    """
    types = imported("llama_index.core.postprocessor.types", "llama-index-core")
    schema = imported("llama_index.core.schema", "llama-index-core")

    class GreylagPostprocessor(types.BaseNodePostprocessor):  # type: ignore[misc, name-defined, unused-ignore]
        """Reranks by `greylag.rerank`."""

        @classmethod
        def class_name(cls) -> str:
            """The name under which LlamaIndex serialises it."""
            return "GreylagPostprocessor"

        def _postprocess_nodes(self, nodes: list[Any], query_bundle: Any = None) -> list[Any]:
            if query_bundle is None:
                raise ParameterError("reranking needs the query: give query_str= or query_bundle=")
            if bare := next((node for node in nodes if node.score is None), None):
                raise ParameterError(f"node {bare.node_id!r} has no score: rerank the nodes that a retriever returns")
            texts, scores = [n.node.get_content(schema.MetadataMode.NONE) for n in nodes], [n.score for n in nodes]
            groups = None if group is None else [node.metadata.get(group) for node in nodes]
            ranked = rerank(query_bundle.query_str, texts, scores, method=method, groups=groups, top_k=top_k, **options)
            return [schema.NodeWithScore(node=nodes[new.position].node, score=new.score) for new in ranked]

    return GreylagPostprocessor()


def rerank_results(results: Any, *, method: Method = "mmr", **options: Any) -> Any:
    """Rerank or diversify the results of a ranker of ``rerankers``.

    Parameters
    ----------
    results : rerankers.results.RankedResults
        With scores, or with ranks only: these count as scores n, n - 1, ..., 1.
    method, **options
        See `greylag.rerank`.

    Returns
    -------
    rerankers.results.RankedResults
        The same documents, with new scores and ranks.
    """
    package = imported("rerankers.results", "rerankers")
    if not isinstance(results, package.RankedResults):
        raise ParameterError(f"{shown(results)} is not a RankedResults of rerankers: pass what rank() returns")
    given = list(results.results)
    by_score = all(result.score is not None for result in given)
    scores = [result.score if by_score else float(len(given) - result.rank) for result in given]
    ranked = rerank(results.query, [result.document.text for result in given], scores, method=method, **options)
    return package.RankedResults(
        [package.Result(given[new.position].document, new.score, new.rank) for new in ranked],
        results.query,
        has_scores=True,
    )


def _aspects(given: Any, texts: Mapping[str, str]) -> Any:
    """Aspects as a stage takes them."""
    if callable(given):
        return lambda candidates: given(candidates.query, [texts[docid] for docid in candidates.docids])
    if isinstance(given, Sequence) and not isinstance(given, str) and all(isinstance(text, str) for text in given):
        return {"rerank": tuple(given)}
    scores = np.asarray(given)
    if scores.ndim != 2 or len(scores) != len(texts) or scores.dtype.kind not in "fiu":
        raise ParameterError(
            f"aspects are an array of shape {scores.shape} and type {scores.dtype} for {len(texts)} passages: give "
            "texts, a function, or numbers with a row for each passage"
        )
    return lambda candidates: scores[[int(docid) for docid in candidates.docids]]


def _stage(
    method: Method,
    texts: Mapping[str, str],
    vectors: Any,
    query_vector: Any,
    options: dict[str, Any],
    given: Mapping[str, Any],
) -> Callable[[Ranking], Ranking]:
    """The stage of a method, with its options and as much of what is given as it takes."""
    if not isinstance(method, str):
        if vectors is not None:
            raise ParameterError(f"method {method!r} takes no vectors: a function of the index sets them itself")
        if options:
            raise ParameterError(f"{', '.join(options)}: a function of the index sets its stage's options itself")
        return method(_index(texts))
    stage = find_stage(method)
    known = stage_parameters(stage)
    if vectors is not None and "vectors" not in stage.needs:
        raise ParameterError(f"method {method!r} takes no vectors: use {_needing('vectors')}")
    if unknown := sorted(options.keys() - known.keys()):
        raise ParameterError(f"method {method!r} has no option {unknown[0]!r}: its options are {', '.join(known)}")
    values = {name: value for name, value in given.items() if name in known} | options
    if missing := [name for name in required_parameters(stage) if name != "index" and name not in values]:
        raise ParameterError(f"method {method!r} needs {missing[0]}: give {missing[0]}=")
    if vectors is not None:
        queries = None if query_vector is None else {"rerank": query_vector}
        values["vectors"] = ArrayVectors(list(texts), vectors, queries)
    elif "index" in known:
        values["index"] = _index(texts)
    return stage(**values)


def _needing(need: str) -> str:
    """The stages that need something."""
    return ", ".join(name for name in registered_stages() if need in find_stage(name).needs)


def _index(texts: Mapping[str, str]) -> PositionalIndex:
    from greylag.index.positional import PositionalIndex  # imports Numba, which embeddings do not need

    return PositionalIndex.from_texts(texts)
