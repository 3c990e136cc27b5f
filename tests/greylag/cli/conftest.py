"""Fixtures for tests of the command line: a command to run, and files of the demonstration collection."""

import re
import shlex
import shutil
import sys
from collections.abc import Callable
from itertools import cycle
from pathlib import Path

import pytest

import greylag
from greylag.base import read_json_lines
from greylag.cli import main
from tests.greylag.index.lucene.oracle import anserini_index
from tests.greylag.index.lucene.samples import write_json
from tests.processes import python

Command = Callable[..., tuple[int, str, str]]
Refused = Callable[..., str]
DEMO = Path(greylag.__file__).parent / "demo"
COMPILING = "greylag: info: compiling loops on first use; greylag compile does this ahead of time\n"


@pytest.fixture
def command(capfd, monkeypatch):
    """Run a command in this process: its exit code, output and errors, whether or not it is the first to compile."""

    def run(*words):
        monkeypatch.setattr(sys, "argv", ["greylag", *map(str, words)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as stop:
            main()
        out, err = capfd.readouterr()
        return int(stop.value.code or 0), out, err.replace(COMPILING, "")

    return run


def write_qrels(qrels, path):
    """Write judgements in four columns."""
    path.write_text("".join(f"{qid} 0 {docid} {grade}\n" for qid in qrels for docid, grade in qrels[qid].items()))


def spelt(model, options):
    """The option ``--model`` for a model with options."""
    return ["--model", f"{model}({options.replace(' ', ',')})"]


def unremarked(result):
    """What a command gave, without the warning that a model ranks topics that it was trained on."""
    code, out, err = result
    remarks = [line for line in err.splitlines() if "topics are among those that " in line]
    assert len(remarks) == 1
    return code, out, err.replace(f"{remarks[0]}\n", "")


FILES = {
    "RUN": "bm25.run",
    "TOPICS": "topics.tsv",
    "QRELS": "qrels.txt",
    "SUBTOPICS": "qrels.subtopics.txt",
    "INDEX": "index",
}


@pytest.fixture
def refused(command, request, tmp_path):
    """Run a command that must fail with code 2 and one line, having written nothing, and return the line.

    The words are several arguments, or one string, split as in a shell. In them RUN, TOPICS, QRELS, SUBTOPICS
    and INDEX are replaced by files of `made`, and TMP by the test's folder.
    """

    def path(name):
        return str(tmp_path if name[0] == "TMP" else request.getfixturevalue("made") / FILES[name[0]])

    def files():
        return {path for path in tmp_path.rglob("*") if "__pycache__" not in path.parts}

    def run(*words):
        given = shlex.split(str(words[0])) if len(words) == 1 else map(str, words)
        before = files()
        code, out, err = command(*[re.sub(rf"\b({'|'.join(FILES)}|TMP)\b(?!=)", path, word) for word in given])
        assert (code, out, err.count("\n")) == (2, "", 1), err
        assert err.startswith("greylag: error: ")
        assert files() == before
        return err

    return run


BEYOND_ASCII = "’", "é", "ß", "😀", "日本", "مدرسة"
ON_BOTH_INDEXES = pytest.mark.parametrize("made", ["made_by_greylag", "made_by_anserini"], indirect=True)
"""Runs a test with greylag's own index, and with one of Anserini's and topics beyond ASCII."""


@pytest.fixture(scope="session")
def made(request):
    """A folder with the demonstration collection's files, its index and BM25's run. Tests write elsewhere."""
    return request.getfixturevalue(getattr(request, "param", "made_by_greylag"))


@pytest.fixture(scope="session")
def made_by_greylag(tmp_path_factory):
    """The folder of `made`."""
    folder = tmp_path_factory.mktemp("made")
    for file in DEMO.glob("*.t*"):
        shutil.copy(file, folder)
    _run("index", DEMO / "docs.jsonl", "--out", folder / "index")
    _search(folder)
    return folder


@pytest.fixture(scope="session")
def made_by_anserini(tmp_path_factory):
    """The folder of `made`, with an index by Anserini's own classes, and topics that have characters beyond ASCII."""
    folder = tmp_path_factory.mktemp("made_by_anserini")
    for file in DEMO.glob("*.t*"):
        shutil.copy(file, folder)
    topics = zip((DEMO / "topics.tsv").read_text().splitlines(), cycle(BEYOND_ASCII), strict=False)
    (folder / "topics.tsv").write_text("".join(f"{topic} {characters}\n" for topic, characters in topics))
    texts = {doc["id"]: f"{doc['title']}\n{doc['contents']}" for _, doc in read_json_lines(DEMO / "docs.jsonl")}
    write_json(folder / "docs" / "docs.jsonl", texts)
    anserini_index(folder / "docs", folder / "index", storePositions=True, storeContents=True, optimize=True)
    _search(folder)
    return folder


def _search(folder):
    _run("search", "--index", folder / "index", "--topics", folder / "topics.tsv", "--out", folder / "bm25.run")


def _run(*words):
    """Run a command in another process, which remarks on nothing."""
    done = python("-m", "greylag", *words, check=True)
    assert all(line.startswith("greylag: info: ") for line in done.stderr.replace(COMPILING, "").splitlines())


@pytest.fixture
def collection(made):
    """The options for index and topics."""
    return ["--index", made / "index", "--topics", made / "topics.tsv"]


@pytest.fixture
def ranked(made, collection):
    """The options for index, topics and BM25's run."""
    return [*collection, "--run", made / "bm25.run"]


@pytest.fixture
def few(made, collection, tmp_path):
    """The options for index, topics and the top 30 documents of eight queries."""
    lines = (made / "bm25.run").read_text().splitlines(keepends=True)
    kept = [line for line in lines if int(line.split()[0]) <= 8 and int(line.split()[3]) <= 30]
    (tmp_path / "few.run").write_text("".join(kept))
    return [*collection, "--run", tmp_path / "few.run"]


@pytest.fixture
def learn(command, few):
    """Run ``train --model svmdiv`` on `few` with the judgements, output file and options that are given."""

    def run(qrels, out, *words):
        model = () if "--model" in words else ("--model", "svmdiv")
        return command("train", *few, "--qrels", qrels, "--out", out, *model, *words)

    return run


@pytest.fixture
def ensemble(learn, made, tmp_path):
    """An ensemble of three models."""
    words = spelt("cssvm", "M=3 alpha=2 seed=5 C=1 k=3")
    code, told, err = learn(made / "qrels.subtopics.txt", tmp_path / "ens.json", *words)
    assert (code, err) == (0, "")
    assert re.match(r"svmdiv on 8 queries: C 1, 3 models, mean angle \d+\.\d+\n", told)
    return tmp_path / "ens.json"
