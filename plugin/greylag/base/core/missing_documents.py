"""Documents that a stage has no data on, such as those of a dense run that the index lacks.

Every stage has the same policy. The documents that it knows are ranked as if the others were not there. A ranker by
features scores unknown documents as the worst in every feature; the general ranker, and a stage that diversifies or
spreads scores, leaves them at their ranks. So an unknown document is neither favoured nor lost, and it never changes
the order of those that are known. Learners do not see unknown documents.

There is one warning per run, with the counts of all its queries, and one for each file that lacks some of them.
`gather_missing` collects the reports in a block, and the tallies of a run's queries are merged. Outside of a block,
each query is reported alone.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

MissingCounts = dict[tuple[str, str], dict[str, tuple[int, int, str]]]
"""(kind, consequence) to qid to the numbers of such documents and of all documents, and an example's docid."""
_log = logging.getLogger("greylag")


@dataclass
class MissingTally:
    """MissingCounts of unknown documents over the queries of a run."""

    counts: MissingCounts = field(default_factory=dict)

    def merge(self, counts: MissingCounts) -> None:
        """Add the counts of other queries."""
        for key, queries in counts.items():
            self.counts.setdefault(key, {}).update(queries)

    def warn(self, where: str) -> None:
        """Log one line for unknown documents, and one for each other kind of report."""
        for what in dict.fromkeys(what for what, _ in self.counts):
            by_consequence = {how: queries for (kind, how), queries in self.counts.items() if kind == what}
            queries = max(by_consequence.values(), key=len)
            qid = min(queries)
            unknown, total, example = queries[qid]
            _log.warning(
                "%s: %d of %d documents of %d queries are %s, such as %s (query %s, with %d of %d): %s",
                where, sum(u for u, _, _ in queries.values()), sum(n for _, n, _ in queries.values()), len(queries),
                what, example, qid, unknown, total, ", ".join(by_consequence),
            )  # fmt: skip


# A variable of the context: each worker thread gathers its own, which its caller merges.
_tally: ContextVar[MissingTally | None] = ContextVar("unknown documents", default=None)


@contextmanager
def gather_missing() -> Iterator[MissingTally]:
    """Gather the unknown documents that are reported in the block, in this thread."""
    tally = MissingTally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)


def report_missing(consequence: str, qid: str, unknown: Sequence[str], total: int, *, what: str = "unknown") -> None:
    """Report that some of a query's `total` documents are unknown, or not in a file, with the consequence."""
    if unknown:
        gathering = _tally.get()
        tally = gathering or MissingTally()
        tally.counts.setdefault((what, consequence), {})[qid] = len(unknown), total, unknown[0]
        if gathering is None:
            tally.warn(f"query {qid}")
