"""What adapters accept as an identifier, a grade, a score or a text."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.errors import DependencyError, ParameterError
from greylag.interop import names


@pytest.mark.parametrize(("value", "read"), [("a", "a"), (301, "301"), (np.int64(7), "7")])
def test_identifiers_are_strings_or_integers(value, read):
    assert names.identifier(value, "x") == read


@pytest.mark.parametrize("value", [1.0, True, None, float("nan"), ("a",)])
def test_other_identifiers_are_refused(value):
    with pytest.raises(ParameterError, match=f"a qid is {type(value).__name__} .*must be a string or an integer"):
        names.identifier(value, "a qid")


@pytest.mark.parametrize("value", ["1", 1.0, True, None])
def test_other_grades_than_integers_are_refused(value):
    assert names.grade(np.int32(2), "d") == 2
    with pytest.raises(ParameterError, match=r"the grade of d is .*must be an integer"):
        names.grade(value, "d")


@pytest.mark.parametrize("value", ["1", True, None])
def test_other_scores_than_numbers_are_refused(value):
    assert names.number(np.float32(0.5), "d") == 0.5
    with pytest.raises(ParameterError, match=r"the score of d is .*must be a number"):
        names.number(value, "d")


def test_texts_are_strings() -> None:
    assert names.text("a", "q") == "a"
    with pytest.raises(ParameterError, match=r"the text of q is dict .*must be a string"):
        names.text({"title": "a"}, "q")


def test_keys_are_unique() -> None:
    assert names.unique([("a", 1), ("b", 2)], "key") == {"a": 1, "b": 2}
    with pytest.raises(ParameterError, match="key 'a' occurs twice"):
        names.unique([("a", 1), ("a", 2)], "key")


def test_a_run_of_scores() -> None:
    run = names.run_of([("q", "a", 1.0), ("q", "b", 2.0), ("q", "c", 2.0)], {"q": "text"}, "tag")
    assert (run["q"].docids, run["q"].query, run.tag) == (("b", "c", "a"), "text", "tag")
    with pytest.raises(ParameterError, match="query 'q' is not among the topics, such as '1'"):
        names.run_of([("q", "a", 1.0)], {"1": ""}, "tag")


def test_a_missing_package() -> None:
    with pytest.raises(DependencyError, match="pip install no-such-package"):
        names.imported("no_such_package", "no-such-package")
