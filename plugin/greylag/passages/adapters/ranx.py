"""ranx: runs and judgements for its measures, tests and fusion; `greylag.read_run` reads what it returns."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from greylag.base import ParameterError, QrelsLike, RunLike, as_qrels, as_run, imported


def run_to_ranx(run: RunLike) -> Any:
    """Return a ``ranx.Run`` of the same name. Documents get the scores n, n - 1, ..., 1 of their ranks.

    ranx may reorder equal scores, so the scores of the run itself would not say what its order is.
    """
    run = as_run(run)
    empty = [ranking.qid for ranking in run.rankings if not len(ranking)]
    if empty or not run.rankings:
        query = f"query {empty[0]}" if empty else "any query"
        raise ParameterError(f"run {run.tag!r} has no documents for {query}, which ranx cannot express: leave it out")
    scores = {
        # Whole numbers, which float32 and float64 hold exactly.
        ranking.qid: {docid: float(len(ranking) - rank) for rank, docid in enumerate(ranking.docids)}
        for ranking in run.rankings
    }
    _check_identifiers(scores)
    return imported("ranx", "ranx").Run(scores, name=run.tag)


def qrels_to_ranx(qrels: QrelsLike) -> Any:
    """Convert judgements to ``ranx.Qrels``. Negative grades become 0: ranx would add them up as gains."""
    judged = as_qrels(qrels)
    _check_identifiers(judged)
    return imported("ranx", "ranx").Qrels(
        {qid: {docid: max(0, grade) for docid, grade in grades.items()} for qid, grades in judged.items()}
    )


def _check_identifiers(table: Mapping[str, Mapping[str, Any]]) -> None:
    """Check that no identifier ends in a character that is lost: its code is a multiple of 256, such as U+0100."""
    for identifier in (*table, *(docid for by_docid in table.values() for docid in by_docid)):
        if identifier and ord(identifier[-1]) % 256 == 0:
            raise ParameterError(f"ranx would drop the last character of the identifier {identifier!r}: rename it")
