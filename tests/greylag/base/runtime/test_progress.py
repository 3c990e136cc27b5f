"""The bars of steps, as a terminal shows them."""

import os
import pty
import re
import sys
import termios
import threading
from contextlib import suppress
from itertools import count

import pytest
from tqdm import tqdm

from greylag.base.runtime import progress
from greylag.base.runtime.parallel import parallel_map
from greylag.base.runtime.progress import each, reached, step
from greylag.learning import ListwiseRegression, read_letor

_BAR = re.compile(r"(\d+ [^:]+): +(?:\d+%\|[^|]*\| )?([\d,]+(?:/[\d,]+)?) \[[\d:]+(?:<[\d:?]+)?(?:, ([^]]*))?\]")


def bars(output):
    """The states of the bars in the output of a terminal: step, items done, and what is shown beside the bar."""
    states = [_BAR.search(part) for part in re.split(r"[\r\n]+|\x1b\[A", output)]
    return [" ".join(filter(None, state.groups())) for state in states if state]


def on_terminal(work, monkeypatch):
    """What work shows on a pseudo-terminal: every change, and not only ten a second."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (30, 150))
    init = tqdm.__init__

    def all_changes(bar, *given, **options):
        init(bar, *given, **{**options, "mininterval": 0})

    output = bytearray()

    def read():
        with suppress(OSError):  # the other end is closed
            while part := os.read(ours, 1 << 16):
                output.extend(part)

    reader = threading.Thread(target=read)
    reader.start()
    with monkeypatch.context() as patch, os.fdopen(theirs, "w", encoding="utf-8") as terminal:
        patch.setattr(tqdm, "__init__", all_changes)
        patch.setattr(sys, "stderr", terminal)
        patch.setattr(progress, "_numbers", count(1))
        work()
    reader.join()
    os.close(ours)
    return output.decode()


def squares(n):
    return list(parallel_map(pow, range(n), 2, what="squares"))


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_bar_a_step_with_what_is_done_inside_of_it(monkeypatch, n_jobs):
    def work():
        squares(10)
        list(parallel_map(squares, [4, 4, 4], what="folds", n_jobs=n_jobs))
        for _ in each("ab", "methods"):
            reached("features selected", 1, 5)
        with step("exporting") as current:
            current.reach(2000)

    output = on_terminal(work, monkeypatch)
    assert "\n" not in output
    shown = set(bars(output))
    assert {"1 squares 0/10", "1 squares 7/10", "2 folds 0/3", "3 methods 0/2 features selected 1/5"} <= shown
    assert {"3 methods 2/2 features selected 1/5", "4 exporting 2,000"} <= shown
    assert ("2 folds 1/3 squares 2/4" in shown) == (n_jobs == 1)


def test_feature_files_and_regressions_have_steps(tmp_path, monkeypatch):
    (tmp_path / "f.txt").write_text("1 qid:1 1:2\n0 qid:1 1:3\n")
    shown = bars(on_terminal(lambda: ListwiseRegression("AP").fit(read_letor(tmp_path / "f.txt")), monkeypatch))
    assert {"1 reading features 2", "2 penalties of listwise regression 0/1 step 1"} <= set(shown)


def test_there_is_no_bar_without_a_terminal(capfd, monkeypatch):
    squares(10)
    monkeypatch.setattr(sys, "stderr", None)
    squares(10)
    assert capfd.readouterr().err == ""


def test_a_step_that_fails_is_over():
    def fails():
        for _ in each([1, 2], "parts"):
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        fails()
    assert progress._bar.get() is ...


def test_the_remaining_time_is_by_the_mean_of_all_items(monkeypatch):
    clock = [0.0]
    monkeypatch.setattr("tqdm.std.time", lambda: clock[0])

    def work():
        with step("folds", 5) as folds:
            for number in (1, 2):
                with folds.inside(), step("features", 10) as features:
                    for done in range(1, 11):
                        clock[0] += 6.0
                        features.reach(done)
                clock[0] += 0.1
                folds.reach(number)

    times = re.findall(r"2/5 \[02:00<(\d\d:\d\d)", on_terminal(work, monkeypatch))
    assert times
    assert set(times) == {"03:00"}, "one of five takes a minute"
