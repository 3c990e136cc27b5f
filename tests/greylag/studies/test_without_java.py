"""The demonstration without Java: an index in memory, and the runs of Lucene's to the byte."""

import pytest

from greylag.errors import DependencyError, ParameterError
from greylag.studies import collection
from greylag.studies.collection import CollectionSettings, open_collection
from greylag.studies.study import Context
from tests.docs import DEMO
from tests.processes import python

HIDDEN = "import sys; sys.modules['jnius'] = None; from greylag.cli import main; main()"


@pytest.mark.long
def test_the_demonstration_ranks_as_with_java(tmp_path):
    for program, out in ((["-m", "greylag"], "with"), (["-c", HIDDEN], "without")):
        done = python(*program, "experiment", "demo", "--out", out, cwd=tmp_path)
        assert done.returncode == 0, done.stderr
        assert ("634 documents, in memory and for BM25 alone" in done.stdout) == (out == "without")
    runs = {path.name: path.read_bytes() for path in (tmp_path / "without").glob("*.run")}
    assert runs.keys() == {"bm25.run", "tuned-bm25.run", "mrf.run", "mmr.run"}
    for name, content in runs.items():
        assert (tmp_path / "with" / name).read_bytes() == content, name
    assert (tmp_path / "with" / "ql.run").exists()
    assert not (tmp_path / "without" / "index").exists()


@pytest.fixture
def no_java(monkeypatch):
    """Java that cannot be started."""

    def start_jvm():
        raise DependencyError("there is no Java")

    monkeypatch.setattr(collection, "start_jvm", start_jvm)


def settings(**changes):
    docs = {"docs": str(DEMO / "docs.jsonl"), "java": "optional"}
    files = {"topics": str(DEMO / "topics.tsv"), "qrels": str(DEMO / "qrels.txt")}
    return CollectionSettings.model_validate({"name": "x", "study": "x", "collection": docs, **files, **changes})


@pytest.mark.usefixtures("no_java")
@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"first_stage": {"model": "ql"}}, "first_stage.model ql: ql needs Java, without which bm25 alone searches"),
        ({"first_stage": {"model": "bm25+rm3"}}, "first_stage.model bm25[+]rm3: bm25[+]rm3 needs Java"),
        ({"collection": {"docs": str(DEMO), "type": "HtmlCollection", "java": "optional"}}, "JSON and tables can be"),
        ({"collection": {"docs": str(DEMO / "docs.jsonl"), "language": "th", "java": "optional"}}, "Thai"),
    ],
)
def test_what_needs_java_is_refused(tmp_path, changes, reason):
    with pytest.raises(ParameterError, match=reason):
        open_collection(settings(**changes), Context(tmp_path))


@pytest.mark.usefixtures("no_java")
def test_java_is_required_unless_it_is_optional(tmp_path, monkeypatch):
    def open_index(*_, **__):
        raise DependencyError("Lucene was asked for")

    monkeypatch.setattr(collection, "open_index", open_index)
    with pytest.raises(DependencyError, match="Lucene was asked for"):
        open_collection(settings(collection={"docs": str(DEMO / "docs.jsonl")}), Context(tmp_path))
