"""Documents that a stage knows nothing about, such as those of a dense run that the index lacks.

Every stage has the same policy. The documents that it knows are ranked as if the others were not there. A ranker by
features gives an unknown document, in each feature, the known documents' value that adds least to the score under the
model; a stage that diversifies or spreads scores leaves it at its rank. So an unknown document is neither favoured nor
lost, and it never changes the order of those that are known. Learners do not see unknown documents.

There is one warning a run, with the counts of all its queries. `collected` gathers what `report` is told in any thread
that works for the run; outside of it, each query is reported alone.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TypeVar

_T = TypeVar("_T")
_V = TypeVar("_V")
_log = logging.getLogger("greylag")


@dataclass
class Tally:
    """Counts of unknown documents over the queries of a run."""

    found: dict[str, dict[str, tuple[int, int, str]]] = field(default_factory=dict)  # by consequence and qid
    lock: threading.Lock = field(default_factory=threading.Lock, repr=False)

    def add(self, consequence: str, qid: str, unknown: Sequence[str], total: int) -> None:
        """Count the unknown ones among the `total` documents of a query."""
        with self.lock:
            self.found.setdefault(consequence, {})[qid] = len(unknown), total, unknown[0]

    def within(self, function: Callable[[_T], _V]) -> Callable[[_T], _V]:
        """The function, reporting to this tally in whatever thread it is called."""

        def call(value: _T) -> _V:
            token = _tally.set(self)
            try:
                return function(value)
            finally:
                _tally.reset(token)

        return call

    def warn(self, where: str) -> None:
        """Log one line if there were unknown documents."""
        if not self.found:
            return
        queries = max(self.found.values(), key=len)
        qid = min(queries)
        unknown, total, example = queries[qid]
        _log.warning(
            "%s: %d of %d documents of %d queries are unknown, such as %s (query %s, with %d of %d): %s",
            where, sum(u for u, _, _ in queries.values()), sum(n for _, n, _ in queries.values()), len(queries),
            example, qid, unknown, total, ", ".join(self.found),
        )  # fmt: skip


_tally: ContextVar[Tally | None] = ContextVar("unknown documents", default=None)


@contextmanager
def collected(where: str) -> Iterator[Tally]:
    """Gather the unknown documents of many queries for one warning, at the end of the block.

    In this thread, `report` adds to the tally. Functions for other threads need `Tally.within`.
    """
    tally = Tally()
    token = _tally.set(tally)
    try:
        yield tally
    finally:
        _tally.reset(token)
        tally.warn(where)


def report(consequence: str, qid: str, unknown: Sequence[str], total: int) -> None:
    """Tell that some of a query's documents are unknown, if any are.

    Parameters
    ----------
    consequence : str
        Which stage does not know them, and what it does, such as "MMR leaves them at their ranks".
    qid : str
        The query.
    unknown : sequence of str
        Their docids.
    total : int
        The number of the query's documents.
    """
    if not unknown:
        return
    tally = _tally.get()
    if tally is None:
        tally = Tally()
        tally.add(consequence, qid, unknown, total)
        tally.warn(f"query {qid}")
    else:
        tally.add(consequence, qid, unknown, total)
