from __future__ import annotations

from pathlib import Path

import pytest

from greylag.cli.held_out import HeldOut, validated
from greylag.errors import ParameterError
from greylag.ranking import Ranking, Run


def test_both_options_or_none(tmp_path: Path) -> None:
    HeldOut(None, None).check([])
    HeldOut(3, tmp_path / "out").check([None, tmp_path / "in"])
    for one in (HeldOut(3, None), HeldOut(None, tmp_path / "out")):
        with pytest.raises(ParameterError, match="go together"):
            one.check([])


def test_the_run_is_not_another_file(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("")
    with pytest.raises(ParameterError, match="is the input"):
        HeldOut(3, tmp_path / "in").check([tmp_path / "in"])


def test_scores_are_shown_and_returned(capsys: pytest.CaptureFixture[str]) -> None:
    qrels = {"1": {"a": 1}, "2": {"b": 1}, "3": {"a": 1}}
    first = Run(tuple(Ranking(qid, "q", ("c", "b", "a"), (3.0, 2.0, 1.0)) for qid in qrels), "first")
    held_out = Run(tuple(Ranking(qid, "q", ("b", "a", "c"), (3.0, 2.0, 1.0)) for qid in qrels), "second")
    assert validated(first, held_out, qrels, "RR", 3) == {"held_out": {"folds": 3, "RR": pytest.approx(2 / 3)}}
    assert "+0.2778" in capsys.readouterr().out  # from (1/3 + 1/2 + 1/3) / 3
