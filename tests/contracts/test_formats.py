"""What every file format has in common: compression, encodings, refusals, atomic writing, and round trips."""

import bz2
import codecs
import gzip
import os
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from greylag.base import FormatError, GreylagError, ModelError, Ranking, Run
from greylag.base.runtime.files import read_json_lines, read_pairs
from greylag.diversity import PRESETS
from greylag.diversity.model import DiversityModel
from greylag.evaluation import read_qrels, read_run, read_subtopic_qrels, read_titles, read_topics, write_run
from greylag.features.evidence import Prior
from greylag.features.fused_runs import run_columns
from greylag.features.spec import FeatureSpec
from greylag.index import PositionalIndex
from greylag.index.analysis import QueryForm
from greylag.learning.letor import read_letor
from greylag.rankers.model import RankingModel
from tests.refusals import refuses


class Format(NamedTuple):
    """A reader, with a file's content or a writer and a value, and the error by which it refuses a file."""

    read: Callable[[Path], Any]
    sample: Any
    write: Callable[[Any, Path], None] | None = None
    error: type[GreylagError] = FormatError


def read_prior(path):
    return Prior(str(path)).values(PositionalIndex.from_texts({"a": "x", "b": "y"}))


LINEAR = RankingModel((FeatureSpec("FI", "term", "LM"),), (0.5,), fingerprint="f", provenance={"seed": 1})
SMALL = replace(next(iter(PRESETS.values())), document_features=("score",))
DIVERSITY = DiversityModel(SMALL, ((0.25,) * SMALL.n_features,), k=5, fingerprint="f")
RUNS = ("bm25", "dense")
FUSION = RankingModel(run_columns(RUNS), (0.5, 1.0, 2.0, -0.25), objective="nDCG@10", runs=RUNS)
SHORTENED = replace(LINEAR, query_form=QueryForm(True, frozenset({"goose"})))
LETOR = b"1 qid:7 1:0.5 2:2.0 # d1 1=one 2=two\n0 qid:7 1:0.0 2:-1.0 # d2\n"
XML = b'<web>\n<topic number="1">\n<query>goose</query></topic></web>\n'

FORMATS = {
    "topics": Format(read_topics, b"1\tgreylag goose\n2\tbarnacle goose\n"),
    "TREC topics": Format(read_topics, b"<top>\n<num> Number: 1\n<title> goose\n</top>\n"),
    "CACM topics": Format(read_topics, b"<DOC>\n<DOCNO>1</DOCNO>\ngoose\n</DOC>\n"),
    "XML topics": Format(read_topics, XML),
    "JSON topics": Format(read_topics, b'{"_id": "1", "text": "goose"}\n{"_id": 2, "text": "duck", "metadata": {}}\n'),
    "pairs": Format(partial(read_pairs, columns="run team"), b"run1 geese\nrun2 ducks\n"),
    "pairs as CSV": Format(partial(read_pairs, columns="qid category"), b'qid,kind\n1,short\n2,"long, hard"\n'),
    "qrels": Format(read_qrels, b"1 0 a 1\n1 0 b 0\n2 0 a -1\n"),
    "BEIR's qrels": Format(read_qrels, b"query-id\tcorpus-id\tscore\n1\ta\t2\n1\tb\t0\n"),
    "subtopic qrels": Format(read_subtopic_qrels, b"1 1 d1 1\n2 2 d2 0\n"),
    "run": Format(read_run, Run((Ranking("1", "", ("b", "a"), [2.5, 1]), Ranking("2", "", ("a",), [1]))), write_run),
    "MS MARCO's run": Format(lambda path: read_run(path).rankings, b"1\tb\t1\n1\ta\t3\n2\ta\t1\n"),
    "LETOR": Format(read_letor, LETOR),
    "JSON lines": Format(lambda path: list(read_json_lines(path)), b'{"a": 1}\n{"a": []}\n'),
    "titles": Format(read_titles, b'{"id": 1, "title": "Goose"}\n{"id": "2"}\n'),
    "prior": Format(read_prior, b"a 0.5\nb 2\n"),
    "linear model": Format(RankingModel.load, LINEAR, RankingModel.save, ModelError),
    "linear model of shortened queries": Format(RankingModel.load, SHORTENED, RankingModel.save, ModelError),
    "linear model of runs": Format(RankingModel.load, FUSION, RankingModel.save, ModelError),
    "diversity model": Format(DiversityModel.load, DIVERSITY, DiversityModel.save, ModelError),
}
ALL = pytest.mark.parametrize("form", FORMATS.values(), ids=FORMATS)
WRITTEN = {name: form for name, form in FORMATS.items() if form.write}
WRITERS = pytest.mark.parametrize("form", WRITTEN.values(), ids=WRITTEN)


def content(form, folder):
    """The content of a valid file."""
    if form.write is None:
        return form.sample  # type: ignore[no-any-return]
    form.write(form.sample, folder / "sample")
    return (folder / "sample").read_bytes()


@ALL
@pytest.mark.parametrize(
    "wrap",
    [gzip.compress, bz2.compress, lambda text: codecs.BOM_UTF8 + text, lambda text: text.replace(b"\n", b"\r\n")],
    ids=["gzip", "bzip2", "byte-order mark", "CR LF"],
)
def test_compression_marks_and_line_ends_are_detected_by_content(form, wrap, tmp_path):
    plain, wrapped = tmp_path / "plain.gz", tmp_path / "wrapped"
    plain.write_bytes(content(form, tmp_path))
    wrapped.write_bytes(wrap(plain.read_bytes()))
    assert repr(form.read(wrapped)) == repr(form.read(plain))


@pytest.mark.parametrize(
    ("damage", "line", "reason"),
    [
        (lambda text: b"", None, "is empty"),
        (lambda text: b" \n\n", None, "is empty"),
        (lambda text: gzip.compress(b""), None, "is empty"),
        (lambda text: text.decode().encode("utf-16"), 1, "byte-order mark"),
        (lambda text: text[:-1] + b"\xe9\n", -1, "byte 0xe9 is not UTF-8"),
        (lambda text: text[:-1] + b"\0\n", -1, "contains a NUL byte"),
        (lambda text: gzip.compress(text)[:-9], None, "is a damaged gzip file"),
        (lambda text: gzip.compress(text)[:10] + b"\xff" + gzip.compress(text)[11:], None, "is a damaged gzip file"),
    ],
)
@ALL
def test_damaged_files_are_refused(*, form, damage, line, reason, tmp_path):
    good, path = content(form, tmp_path), tmp_path / "damaged"
    path.write_bytes(damage(good))
    number = good.count(b"\n") if line == -1 else line
    place = path if number is None else f"{path}:{number}"
    refuses(lambda: form.read(path), form.error, f"{place}: |{reason}", "|")


@ALL
def test_unreadable_paths_are_refused(form, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").write_bytes(content(form, tmp_path))
    for name in ("absent", ".", "file/inside", "loop", "x" * 300):
        path = tmp_path / name
        refuses(lambda path=path: form.read(path), form.error, f"{path}: cannot be read: ", "|")


@ALL
def test_other_content_is_refused(form, tmp_path):
    path = tmp_path / "other"
    for text in ("{", "<top>", "<topic>", "<DOC>", "[" * 100_000, "7 " * 5, "1" * 5000, "é"):
        path.write_text(text + "\n")
        refuses(lambda: form.read(path), form.error, str(path))


@WRITERS
@pytest.mark.parametrize("name", ["file", "file.gz"])
def test_round_trip(form, name, tmp_path):
    form.write(form.sample, tmp_path / name)
    value = form.read(tmp_path / name)
    assert value == form.sample
    form.write(value, tmp_path / f"again-{name}")
    assert (tmp_path / f"again-{name}").read_bytes() == (tmp_path / name).read_bytes()


@WRITERS
def test_a_failed_write_keeps_the_old_file_and_leaves_nothing(form, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "No space left on device")

    (tmp_path / "file").write_text("old")
    monkeypatch.setattr(os, "replace", fail)
    refuses(lambda: form.write(form.sample, tmp_path / "file"), GreylagError, "file No space left")
    assert (tmp_path / "file").read_text() == "old"
    assert os.listdir(tmp_path) == ["file"]


@WRITERS
def test_paths_that_cannot_be_written(form, tmp_path):
    (tmp_path / "loop").symlink_to("loop")
    (tmp_path / "file").touch()
    for name in ("absent/file", "file/inside", ".", "loop", "x" * 300):
        path = tmp_path / name
        refuses(lambda path=path: form.write(form.sample, path), GreylagError, f"{path} cannot be written: ", "|")
