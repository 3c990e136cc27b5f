"""The progress line: one for all that is done, with the step and the time left.

A piece of work has a share of the whole. `Steps` divides it among steps that follow one another, and
`greylag.parallel_map` among its items; an item may be divided again. The time left is estimated from the share that was
done in this call, without what was kept by an earlier one. The line is on standard error, and only on a terminal.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from types import TracebackType
from typing import Any, Self, TypeVar

from greylag.errors import ParameterError

T = TypeVar("T")

SEARCH, FEATURES, LEARNING, RANKING = 2.0, 3.0, 12.0, 1.0
"""About what a query costs in each kind of step, in tens of milliseconds, for the shares of the steps."""
_FORMAT = "{percentage:3.0f}%|{bar:10}| {elapsed}<{remaining}{desc}"


class _Line:
    """The line, from 0 to 1. It never goes back."""

    def __init__(self, bar: Any) -> None:
        self._bar = bar

    def show(self, reached: float, text: str, *, kept: bool) -> None:
        more = max(0.0, reached - self._bar.n)
        if kept:
            self._bar.initial += more
        self._bar.set_description_str(f" {text}", refresh=False)
        self._bar.update(more)


@dataclass(frozen=True)
class Share:
    """A share of the whole, from `first` on; hidden if it has no line.

    Parameters
    ----------
    first, size : float
    within : tuple of str
        What it is a share of, from the outside in.
    line : _Line, optional
    """

    first: float = 0.0
    size: float = 1.0
    within: tuple[str, ...] = ()
    line: _Line | None = None

    def part(self, first: float, size: float, what: str) -> Share:
        """A part of this share, from `first` on, where this share is from 0 to 1."""
        return Share(self.first + first * self.size, size * self.size, (*self.within, what), self.line)

    def item(self, what: str, number: int, total: int | None) -> Share:
        """The share of an item by its number from 0."""
        if self.line is None:
            return self
        size = 1.0 / total if total else 0.0
        within = (*self._outside(what), _counted(what, number + 1, total))
        return replace(self.part(number * size, size, what), within=within)

    def show(self, what: str, done: float = 0, total: float | None = None, *, kept: bool = False) -> None:
        """Show how much is done, and that the last of it was kept by an earlier call."""
        if self.line is None:
            return
        reached = self.first + (self.size * min(1.0, done / total) if total else 0.0)
        self.line.show(reached, ", ".join((*self._outside(what), _counted(what, done, total))), kept=kept)

    def _outside(self, what: str) -> tuple[str, ...]:
        """What it is a share of, without a step of the same name."""
        return self.within[:-1] if self.within[-1:] == (what,) else self.within


_current: ContextVar[Share | None] = ContextVar("share of the work", default=None)
HIDDEN = Share()


@contextmanager
def shown() -> Iterator[Share]:
    """The share of what is done here. It is the whole of a new line, which is closed at the end, if there is none."""
    if (share := _current.get()) is not None:
        yield share
        return
    from tqdm import tqdm

    with tqdm(total=1.0, disable=None, leave=False, smoothing=0, miniters=0, bar_format=_FORMAT) as bar:
        yield HIDDEN if bar.disable else Share(line=_Line(bar))


@contextmanager
def at(share: Share) -> Iterator[None]:
    """Divide a share by what is done in the block."""
    before = _current.get()
    _current.set(share)
    try:
        yield
    finally:
        _current.set(before)


def reached(what: str, done: int, total: int) -> None:
    """Show how much of the share is done, if there is a line."""
    if (share := _current.get()) is not None:
        share.show(what, done, total)


class Steps:
    """Steps of work that follow one another, for the progress line, each with its share of the work in the block.

    The line says which step is being done and, from the share that is done, how much time is left. It is on standard
    error, if that is a terminal. Within a step, `parallel_map` and `each` divide its share among their items, and so do
    further steps.

    Parameters
    ----------
    **weights : float
        What each step takes, in relation to the others.

    Examples
    --------
    >>> with Steps(features=3, training=12) as steps:
    ...     steps.begin("features")
    ...     steps.begin("training")
    """

    def __init__(self, **weights: float) -> None:
        self._weights = weights
        self._shown = shown()

    def __enter__(self) -> Self:
        self._share, self._before = self._shown.__enter__(), _current.get()
        _current.set(self._share)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.set(self._before)
        self._shown.__exit__(kind, error, trace)

    @staticmethod
    def each(items: Sequence[T], what: str) -> Iterator[T]:
        """The items, with an equal share of the line for what is done with each."""
        with shown() as share:
            for number, item in enumerate(items):
                share.show(what, number, len(items))
                with at(share.item(what, number, len(items))):
                    yield item

    def begin(self, name: str) -> None:
        """End the step before, and begin this one.

        Raises
        ------
        ParameterError
            If there is no such step.
        """
        names = list(self._weights)
        if name not in names:
            raise ParameterError(f"there is no step {name!r}; the steps are {', '.join(names) or 'none'}")
        total = sum(self._weights.values()) or 1.0
        before = sum(self._weights[step] for step in names[: names.index(name)])
        share = self._share.part(before / total, self._weights[name] / total, name.replace("_", " "))
        share.show(share.within[-1])
        _current.set(share)


def _counted(what: str, number: float, total: float | None) -> str:
    if total is None:
        return f"{what} {number:,}" if number else what
    return f"{what} {number:,}/{total:,}"
