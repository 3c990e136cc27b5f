"""Malformed and odd variants of every format: refused in one line, or read as an independent oracle reads them."""

import random
from collections import Counter
from pathlib import Path

import pytest

from greylag.errors import FormatError
from tests.robustness.formats import FORMATS, Format
from tests.robustness.harness import judge, summary, trials

COUNTS: Counter[str] = Counter()
VALID = 10  # of each format, with nine variants of each


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.filterwarnings("ignore")
def test_variants_are_refused_or_read_as_the_oracle_reads_them(name: str, tmp_path: Path) -> None:
    wrong = []
    for done, verdict, content in trials(name, 0, VALID, tmp_path / "file"):
        COUNTS[verdict if verdict in ("refused", "accepted") else "wrong"] += 1
        if verdict not in ("refused", "accepted"):
            wrong.append((done, verdict, content[:300]))
    assert not wrong


def test_counts(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        print(f"\nrobustness of {len(FORMATS)} formats: {summary(COUNTS)}")
    if COUNTS:  # unless this test is run on its own
        assert COUNTS.total() == len(FORMATS) * VALID * 10 >= 1000
        assert COUNTS["wrong"] == 0
        assert min(COUNTS["refused"], COUNTS["accepted"]) > COUNTS.total() // 5


def raises(error: BaseException) -> Format:
    def read(path: Path) -> object:
        raise error

    return FORMATS["qrels"]._replace(read=read)


def spin(path: Path) -> object:
    while True:
        pass


def test_the_harness_sees_what_is_wrong(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
