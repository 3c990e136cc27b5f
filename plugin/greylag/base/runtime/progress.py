"""Progress: a bar of tqdm for each step of the work, with the step's number, on standard error if it is a terminal.

What is done inside of a step, such as the map of a fold, is shown beside the step's bar.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from itertools import count
from typing import Any, TypeVar

T = TypeVar("T")

_FORMAT = "{desc}: {percentage:3.0f}%|{bar:20}| {n:,}/{total:,} [{elapsed}<{remaining}{postfix}]"
_OPEN_FORMAT = "{desc}: {n:,} [{elapsed}{postfix}]"  # without a total
_numbers = count(1)
_bar: ContextVar[Any] = ContextVar("bar of the current step", default=...)  # ... without a step, None if hidden


@dataclass(frozen=True)
class Step:
    """A step of the work, or a phase of one, which has no bar of its own."""

    what: str
    total: int | None
    bar: Any
    is_part: bool

    def reach(self, done: int) -> None:
        """Advance the step to this amount."""
        if self.bar is None or self.bar is ...:
            return
        if self.is_part:
            text = f"{self.what} {done:,}" + ("" if self.total is None else f"/{self.total:,}")
            self.bar.set_postfix_str(text, refresh=False)
            self.bar.update(0)  # draws, but no oftener than the bar is drawn
        else:
            self.bar.update(done - self.bar.n)

    def inside(self) -> AbstractContextManager[None]:
        """Show what is done in the block as a phase of this step."""
        return at(self.bar)


@contextmanager
def step(what: str, total: int | None = None) -> Iterator[Step]:
    """Begin a step, such as "features", of `total` items; inside another step, it is a phase of that."""
    outer = _bar.get()
    if outer is not ... or sys.stderr is None or not sys.stderr.isatty():
        yield Step(what, total, None if outer is ... else outer, is_part=True)
        return
    from tqdm import tqdm

    with tqdm(
        total=total,
        desc=f"{next(_numbers)} {what}",
        bar_format=_OPEN_FORMAT if total is None else _FORMAT,
        leave=False,
        miniters=0,
        smoothing=0,  # the remaining time by the mean of all items: the latest may have come from a cache
    ) as bar:
        yield Step(what, total, bar, is_part=False)


def each(items: Sequence[T], what: str) -> Iterator[T]:
    """Yield the items, as a step in which each is processed."""
    with step(what, len(items)) as current:
        for number, item in enumerate(items, 1):
            with current.inside():
                yield item
            current.reach(number)


def reached(what: str, done: int, total: int | None) -> None:
    """Advance the phase of the current step, if there is a step."""
    Step(what, total, _bar.get(), is_part=True).reach(done)


@contextmanager
def at(bar: Any) -> Iterator[None]:
    """Show the progress of the block on a bar; None hides it."""
    before = _bar.get()
    _bar.set(bar)
    try:
        yield
    finally:
        _bar.set(before)  # no token: a generator may end in another context
