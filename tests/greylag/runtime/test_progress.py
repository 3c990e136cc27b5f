"""The progress line, as a terminal shows it."""

from __future__ import annotations

import os
import pty
import re
import sys
import termios
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from itertools import pairwise
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tqdm import tqdm

from greylag.errors import ParameterError
from greylag.runtime import progress
from greylag.runtime.parallel import keeping, parallel_map
from greylag.runtime.progress import Share, Steps, reached


class Shown(NamedTuple):
    """What the line said once."""

    percent: int
    elapsed: str
    left: str
    text: str


_SHOWN = re.compile(r" *(\d+)%\|[^|]*\| ([\d:]+)<([\d:?]+) ?(.*?) *$")


def lines(output: str) -> list[Shown]:
    """The states of the line in the output of a terminal."""
    found = [_SHOWN.search(part) for part in re.split(r"[\r\n]+|\x1b\[A", output)]
    return [Shown(int(own[1]), own[2], own[3], own[4]) for own in found if own]


def on_terminal(work: Callable[[], object], monkeypatch: pytest.MonkeyPatch) -> str:
    """What work shows on a pseudo-terminal: every change, and not only ten a second."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (30, 100))
    init = tqdm.__init__

    def all_changes(bar: Any, *given: Any, **options: Any) -> None:
        init(bar, *given, **{**options, "mininterval": 0})

    shown = bytearray()

    def read() -> None:
        with suppress(OSError):  # the other end is closed
            while part := os.read(ours, 1 << 16):
                shown.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    with monkeypatch.context() as patch, os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        patch.setattr(tqdm, "__init__", all_changes)
        patch.setattr(sys, "stderr", terminal)
        work()
    reader.join()
    os.close(ours)
    return shown.decode()


def squares(n: int) -> list[int]:
    return list(parallel_map(pow, range(n), 2, what="squares"))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_one_line_shows_all_steps(monkeypatch: pytest.MonkeyPatch, n_jobs: int) -> None:
    def work() -> None:
        with Steps(search=1, folds=8, training=1) as steps:
            steps.begin("search")
            squares(10)
            steps.begin("folds")
            list(parallel_map(squares, [4, 4, 4, 4], what="folds", n_jobs=n_jobs))
            steps.begin("training")
            for number in range(5):
                reached("features selected", number, 5)

    output = on_terminal(work, monkeypatch)
    found = lines(output)
    percents = [own.percent for own in found]
    assert percents == sorted(percents)
    assert (percents[0], percents[-1]) == (0, 98)
    assert output.count("\n") == 0
    texts = {own.text: own.percent for own in found}
    assert texts["search, squares 5/10"] == 5
    assert texts["folds 2/4"] == 50
    assert texts["training, features selected 1/5"] == 92
    assert ("folds 3/4, squares 2/4" in texts) == (n_jobs == 1)
    if n_jobs == 1:
        assert texts["folds 3/4, squares 2/4"] == 60


@given(st.recursive(st.integers(1, 4), lambda parts: st.lists(parts, min_size=1, max_size=4), max_leaves=20))
def test_shares_add_up(tree: Any) -> None:
    """However work is divided, the line ends at the end and never goes back."""
    seen: list[float] = []

    class Line:
        def show(self, reached: float, text: str, *, kept: bool) -> None:
            seen.append(reached)

    def work(part: Any) -> None:
        if isinstance(part, int):
            list(parallel_map(abs, range(part), what="items"))
        else:
            for own in Steps.each(part, "parts"):
                work(own)

    with progress.at(Share(line=Line())):  # type: ignore[arg-type]
        work([*([tree] if isinstance(tree, int) else tree)])
    assert all(after >= before - 1e-12 for before, after in pairwise(seen))
    assert seen[-1] == pytest.approx(1.0)


def test_the_time_left_does_not_count_what_was_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 100 items 90 are kept; the rest take 0.4 s each, so that 8 take 3.2 s, and not a tenth of that."""

    class Keeper:
        kept: dict[str, bytes] = {}  # noqa: RUF012

        def load(self, key: str) -> bytes | None:
            return self.kept.get(key)

        def save(self, key: str, content: bytes) -> None:
            self.kept[key] = content

    keeper = Keeper()
    with keeping(keeper):
        list(parallel_map(abs, range(100), what="items", n_jobs=1))
    keeper.kept = {key: content for key, content in keeper.kept.items() if int(key.rpartition(":")[2]) < 90}

    def work() -> None:
        with keeping(keeper):
            list(parallel_map(lambda _: time.sleep(0.4), range(100), what="items", n_jobs=1))

    found = {own.text: own for own in lines(on_terminal(work, monkeypatch))}
    assert (found["items 90/100"].percent, found["items 90/100"].left) == (90, "?")
    assert found["items 92/100"].percent == 92
    assert found["items 92/100"].left in ("00:03", "00:04")


def test_there_is_no_line_without_a_terminal(capfd: pytest.CaptureFixture[str]) -> None:
    squares(10)
    with progress.shown() as share:
        assert share is progress.HIDDEN  # for which no texts are made
        assert share.item("items", 1, 10) is share
    assert capfd.readouterr().err == ""


def test_steps_that_there_are_not() -> None:
    with (
        Steps(search=2, lengths=1) as steps,
        pytest.raises(ParameterError, match="no step 'length'; the steps are sea"),
    ):
        steps.begin("length")


def test_the_share_of_before_is_restored() -> None:
    def fails() -> None:
        with Steps(one=1, two=1) as steps:
            steps.begin("two")
            for _ in Steps.each([1, 2], "parts"):
                raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fails()
    assert progress._current.get() is None
