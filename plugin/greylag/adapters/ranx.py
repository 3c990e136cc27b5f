"""ranx: its runs and judgements, for its measures, tests and fusion."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from greylag.core import foreign
from greylag.core.hints import shown
from greylag.core.tables import imported
from greylag.errors import ParameterError
from greylag.ranking import Run, as_run
from greylag.trec import Qrels


def run_to_ranx(run: Run) -> Any:
    """Return a ``ranx.Run`` of the same name. Documents get the scores n, n - 1, ..., 1 of their ranks.

    ranx may reorder equal scores, so the scores of the run itself would not say what its order is.
    """
    empty = [ranking.qid for ranking in run.rankings if not len(ranking)]
    if empty or not run.rankings:
        query = f"query {empty[0]}" if empty else "any query"
        raise ParameterError(f"run {run.tag!r} has no documents for {query}, which ranx cannot express: leave it out")
    scores = {
        ranking.qid: {docid: float(len(ranking) - rank) for rank, docid in enumerate(ranking.docids)}
        for ranking in run.rankings
    }
    _check_identifiers(scores)
    return imported("ranx", "ranx").Run(scores, name=run.tag)


def run_from_ranx(run: Any, *, topics: Mapping[str, str] | None = None, tag: str | None = None) -> Run:
    """Return the run in a ``ranx.Run``, such as one that ranx fused; `tag` is its name unless given."""
    scores = _dictionary(run, "Run")
    rows = ((qid, docid, score) for qid, by_docid in scores.items() for docid, score in by_docid.items())
    return as_run(foreign.Scored(rows, topics, tag or run.name or "ranx"))


def qrels_to_ranx(qrels: Mapping[str, Mapping[str, int]]) -> Any:
    """Convert judgements to ``ranx.Qrels``. Negative grades become 0: ranx would add them up as gains."""
    _check_identifiers(qrels)
    return imported("ranx", "ranx").Qrels(
        {qid: {docid: max(0, grade) for docid, grade in grades.items()} for qid, grades in qrels.items()}
    )


def qrels_from_ranx(qrels: Any) -> Qrels:
    """Return the judgements in ``ranx.Qrels``."""
    judged = _dictionary(qrels, "Qrels")
    return {str(qid): {str(docid): int(grade) for docid, grade in of.items()} for qid, of in judged.items()}


def _check_identifiers(table: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that no identifier ends in a character that is lost: its code is a multiple of 256, such as U+0100."""
    for identifier in (*table, *(docid for by_docid in table.values() for docid in by_docid)):
        if identifier and ord(identifier[-1]) % 256 == 0:
            raise ParameterError(f"ranx would drop the last character of the identifier {identifier!r}: rename it")


def _dictionary(value: Any, kind: str) -> dict[Any, Any]:
    if type(value).__name__ != kind or not hasattr(value, "to_dict"):
        raise ParameterError(f"{shown(value)} is not a ranx.{kind}")
    plain: dict[Any, Any] = value.to_dict()
    return plain
