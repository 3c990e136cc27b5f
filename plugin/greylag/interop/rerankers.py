"""rerankers: its documents and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from greylag.errors import ParameterError
from greylag.hints import shown
from greylag.interop import names
from greylag.interop.passages import Method, rerank


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
    package = names.imported("rerankers.results", "rerankers")
    if not isinstance(results, package.RankedResults):
        raise ParameterError(f"{shown(results)} is not a RankedResults of rerankers: pass what rank() returns")
    given = list(results.results)
    ranked = rerank(results.query, [result.document.text for result in given], _scores(given), method=method, **options)
    return package.RankedResults(
        [package.Result(given[new.position].document, new.score, new.rank) for new in ranked],
        results.query,
        has_scores=True,
    )


def _scores(results: Sequence[Any]) -> list[float]:
    if all(result.score is not None for result in results):
        return [result.score for result in results]
    return [float(len(results) - result.rank) for result in results]
