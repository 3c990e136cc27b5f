"""Malformed and odd variants of every format: refused in one line, or read as an independent oracle reads them."""

import random

import pytest

from greylag.base import FormatError
from tests.robustness.formats import FORMATS
from tests.robustness.harness import judge, trials

VALID = 10  # of each format, with nine variants of each


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_variants_are_refused_or_read_as_the_oracle_reads_them(name, tmp_path):
    found = list(trials(name, 0, VALID, tmp_path / "file"))
    assert [(*trial[:2], trial[2][:300]) for trial in found if trial[1] not in ("refused", "accepted")] == []


def raises(error):
    def read(path):
        raise error

    return FORMATS["qrels"]._replace(read=read)


def spin(path):
    while True:
        pass


def test_the_harness_sees_what_is_wrong(tmp_path, monkeypatch):
    form, path = FORMATS["qrels"], tmp_path / "file"
    content = form.make(random.Random(1))
    assert judge(form, content, path) == "accepted"
    assert judge(form, b"1\n", path) == "refused"
    assert judge(raises(KeyError("x")), content, path).startswith("KeyError")
    assert judge(raises(RecursionError()), content, path).startswith("RecursionError")
    assert judge(raises(FormatError("elsewhere", 1, "x")), content, path).startswith("message")
    assert judge(raises(FormatError(path, 1, "x " * 1000)), content, path).startswith("message")
    assert judge(form._replace(read=lambda path: {}), content, path).startswith("read as {}")
    assert judge(form._replace(read=lambda path: {}), b"1\n", path).startswith("accepted, but")
    monkeypatch.setattr("tests.robustness.harness.LIMIT", 0.1)
    assert judge(form._replace(read=spin), content, path) == "hang"
