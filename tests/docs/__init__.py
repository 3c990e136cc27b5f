"""The documentation's code blocks, run: those of the README, of every page and of the notebook."""

import importlib.util
import json
import os
import re
import shlex
import shutil
import sys
from pathlib import Path
from types import ModuleType

import numpy as np

import greylag
from tests.processes import run, run_here

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "plugin" / "docs"
DEMO = Path(greylag.__file__).parent / "demo"
_BLOCK = re.compile(r"^```(python|sh|text|toml)(?: title=\"([\w.]+)\")?\n(.*?)^```", re.MULTILINE | re.DOTALL)


def load(name):
    """A module of the documentation's folder, which is no package."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def lay_out(folder):
    """Put the files that the blocks read into a folder: the demonstration collection and files made from it."""
    for name in ("docs.jsonl", "topics.tsv", "qrels.txt", "qrels.subtopics.txt"):
        shutil.copy(DEMO / name, folder)
    docids = [json.loads(line)["id"] for line in (folder / "docs.jsonl").read_text().splitlines()]
    (folder / "pagerank.tsv").write_text("".join(f"{docid}\t{1 / n}\n" for n, docid in enumerate(docids[:600], 1)))
    qids, rng = (
        [line.split("\t")[0] for line in (DEMO / "topics.tsv").read_text().splitlines()],
        np.random.default_rng(0),
    )
    for name, ids in (("docs", docids), ("topics", qids)):
        np.savez(folder / f"{name}.npz", ids=ids, vectors=rng.standard_normal((len(ids), 8)))
    _lay_out_beir(folder / "scifact")


def _lay_out_beir(folder):
    """The demonstration collection in BEIR's form, with the first sixteen topics as its training part."""
    (folder / "qrels").mkdir(parents=True)
    texts = [json.loads(line) for line in (DEMO / "docs.jsonl").read_text().splitlines()]
    documents = [{"_id": text["id"], "title": text.get("title", ""), "text": text["contents"]} for text in texts]
    topics = [line.split("\t") for line in (DEMO / "topics.tsv").read_text().splitlines()]
    queries = [{"_id": qid, "text": text} for qid, text in topics]
    for name, rows in (("corpus", documents), ("queries", queries)):
        (folder / f"{name}.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    judged = [line.split() for line in (DEMO / "qrels.txt").read_text().splitlines()]
    for name, qids in (("train", topics[:16]), ("test", topics[16:])):
        own = {qid for qid, _ in qids}
        lines = [f"{qid}\t{docid}\t{grade}\n" for qid, _, docid, grade in judged if qid in own]
        (folder / "qrels" / f"{name}.tsv").write_text("query-id\tcorpus-id\tscore\n" + "".join(lines))


def run_page(page, *, here=True):
    """Run a page's blocks in order in the working folder, and return what its commands printed.

    Blocks with the title of a file are written to it. Blocks of Python share their names. Each line of a block of
    commands, with those that continue it, is a command of the shell that must succeed; greylag's run in this process,
    if they may run `here`. The lines of a block of text must be among those that the commands before it printed.
    """
    return run_text(page.read_text(encoding="utf-8"), page.name, here=here)


def run_text(text, name, *, here=True):
    """Run the blocks of a text, as `run_page` does."""
    module = ModuleType("page")
    sys.modules[module.__name__] = module  # dataclasses look their module up
    printed = ""
    for language, file, code in _BLOCK.findall(text):
        if file:
            Path(file).write_text(code, encoding="utf-8")
        elif language == "python":
            exec(compile(code, name, "exec"), vars(module))
        elif language == "sh":
            printed += "".join(_run(line, here) for line in code.replace("\\\n", " ").splitlines())
        elif language == "text" and printed:
            missing = set(code.splitlines()) - {*printed.splitlines(), ""}
            assert not missing, f"{name}: not printed: {missing}"
    return printed


def _run(line, here):
    if here and line.startswith("greylag ") and not re.search(r"[|&;$*~`<]", line):
        words = shlex.split(line)
        end = words.index(">") if ">" in words else len(words)
        printed = run_here(*words[1:end])
        for path in words[end + 1 :]:
            Path(path).write_text(printed, encoding="utf-8")
        return "" if words[end:] else printed
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    done = run(line, shell=True, env=os.environ | {"PATH": path})
    assert done.returncode == 0, (line, done.stderr)
    return done.stdout
