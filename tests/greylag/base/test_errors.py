"""The exception classes."""

import pickle
from pathlib import Path

import pytest

from greylag.base import errors
from greylag.base.core.checks import naming


def test_a_format_error_names_the_place_and_survives_pickling():
    for line, text in ((None, "a.run: is empty"), (7, "a.run:7: is empty")):
        error = errors.FormatError("a.run", line, "is empty")
        for each in (error, pickle.loads(pickle.dumps(error))):
            assert str(each) == text
            assert (each.path, each.line, each.reason) == (Path("a.run"), line, "is empty")


def test_there_are_five_errors_with_one_base():
    names = {error.__name__ for error in errors.GreylagError.__subclasses__()}
    assert names == {"FormatError", "ParameterError", "CollectionError", "ModelError", "DependencyError"}
    assert issubclass(errors.FormatError, ValueError)
    assert issubclass(errors.ParameterError, ValueError)


@pytest.mark.parametrize(
    ("message", "shown"),
    [
        ("one\n  two\r\n", "one two"),
        ("a\x1b[31mb\x85c\u2028d\0e", "a [31mb c d e"),
        ("value " + "9" * 5000 + " is wrong", "value " + "9" * 60 + "... is wrong"),
        ("/" + "x" * 255 + "/" + "y" * 255 + ": a  name", "/" + "x" * 255 + "/" + "y" * 255 + ": a  name"),
    ],
)
def test_messages_are_one_line(message, shown):
    assert str(errors.ParameterError(message)) == shown
    assert str(errors.FormatError("a.run", 7, message)) == f"a.run:7: {shown}"


def test_naming_puts_a_file_or_words_before_a_parameter_error():
    for place, kind in ((Path("a.qrels"), errors.FormatError), ("a.qrels", errors.ParameterError)):
        with pytest.raises(kind) as caught, naming(place), naming("bm25"):
            raise errors.ParameterError("k1 is 0")
        assert str(caught.value) == "a.qrels: bm25: k1 is 0"
    with pytest.raises(errors.ModelError, match="other"), naming("bm25"):
        raise errors.ModelError("other")
