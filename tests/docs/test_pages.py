"""Every page's blocks run, in a folder with the demonstration collection, its index and BM25's run."""

import json
import re
import shutil
import sys
from contextlib import redirect_stdout
from importlib import import_module
from importlib.util import find_spec
from io import StringIO
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

from greylag import LuceneIndex
from greylag.index.lucene.jvm import java_class
from greylag.passages import run_to_pyserini
from tests.browser.__main__ import picture
from tests.docs import DEMO, DOCS, ROOT, lay_out, run_page

PAGES = {
    str(page.relative_to(DOCS).with_suffix("")): page
    for page in sorted(DOCS.rglob("*.md"))
    if page.parent.name != "interop"
    and page.stem not in {"stage", "diversifier", "learner"}  # see test_extension_pages.py
    and re.search(r"^```(python|sh)$", page.read_text(), re.MULTILINE)
}
ENTRY_POINTS = {f"greylag.{group}" for group in ("stages", "features", "fusions", "learners", "studies")}
INDEX = "how-to/encoder", "how-to/no-judgements", "tutorials/beir", "tutorials/own-collection", "tutorials/pyserini"
"""The pages that make the index themselves."""


class Letters:
    """A stand-in for an encoder: the letters' frequencies."""

    def __init__(self, name):
        self.letters = "abcdefghijklmnopqrstuvwxyz"

    def encode(self, texts):
        return np.array([[text.lower().count(letter) for letter in self.letters] for text in texts], dtype=np.float32)


@pytest.mark.long
@pytest.mark.parametrize("name", PAGES)
def test_page(name, indexed, tmp_path, monkeypatch):
    if name == "how-to/encoder":
        monkeypatch.setitem(sys.modules, "sentence_transformers", SimpleNamespace(SentenceTransformer=Letters))
    lay_out(tmp_path)
    if name not in INDEX:
        shutil.copytree(indexed, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    printed = run_page(PAGES[name])
    if name == "tutorials/pyserini":
        _run_road(printed, monkeypatch)
    if name == "how-to/experiments":
        assert (DOCS / "demo.svg").read_text() == picture(tmp_path / "runs" / "demo" / "report.html")


def _run_road(printed, monkeypatch):
    """The block of Python, with Pyserini's searcher or one that is called as it is, gives the shell's figure."""
    try:
        import_module("pyserini.search.lucene")
    except Exception:  # without its neural part
        for module in ("pyserini.search", "pyserini.search.lucene"):
            monkeypatch.setitem(sys.modules, module, SimpleNamespace(LuceneSearcher=Searcher))
    [block] = re.findall(r"^```py title=\"road.py\"\n(.*?)^```", PAGES["tutorials/pyserini"].read_text(), re.M | re.S)
    with redirect_stdout(StringIO()) as out:
        exec(compile(block, "road.py", "exec"), {})
    figure = re.fullmatch(r"AP (\d\.\d{4})\n", out.getvalue())[1]
    assert re.search(rf"^best\.run +{figure} ", printed, re.MULTILINE)


class Searcher:
    """Hits of a folder's index as ``LuceneSearcher`` gives them, by Anserini's own searcher and analyzer."""

    def __init__(self, folder):
        self.index_dir, self.object = folder, java_class("io.anserini.search.SimpleSearcher")(folder)

    def batch_search(self, queries, qids, k):
        topics = dict(zip(qids, queries, strict=True))
        return run_to_pyserini(LuceneIndex(self.index_dir).bm25(k).run(topics))


def test_scores_of_the_demonstration_are_those_that_it_expects():
    expected = yaml.safe_load((DEMO / "demo.yaml").read_text())["expected"]
    page = (DOCS / "how-to" / "experiments.md").read_text()
    for system, measures in expected.items():
        row = re.search(rf"^{system} +(.*)$", page, re.MULTILINE)
        assert row, system
        for measure in measures.keys() & {"AP", "nDCG@10"}:
            assert f"{measures[measure]:.4f}" in re.findall(r"\d\.\d{4}", row[1])


@pytest.mark.long
def test_the_notebook(indexed, tmp_path, monkeypatch):
    notebook = json.loads((DOCS / "notebook.ipynb").read_text(encoding="utf-8"))
    lay_out(tmp_path)
    monkeypatch.chdir(tmp_path)
    cells = ["".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(cells) > 4
    exec(compile("\n".join(cells), "notebook.ipynb", "exec"), {"__name__": "notebook"})
    assert not any(cell.get("outputs") for cell in notebook["cells"])


def test_messages_on_the_page_of_errors_are_those_of_the_code():
    source = " ".join(path.read_text() for path in sorted((ROOT / "plugin" / "greylag").rglob("*.py")))
    source = re.sub(r'"\s*f?"', "", source)  # texts that are continued on the next line
    rows = re.findall(r"^\| `([^`]+)`", (DOCS / "reference" / "errors.md").read_text(), re.MULTILINE)
    messages = [row for row in rows if not row.endswith("Error")]
    assert len(messages) > 10
    for message in messages:
        for part in filter(None, (part.strip(" ,;") for part in message.split("…"))):
            assert part in source, part


def test_names_on_pages_are_where_pages_say():
    wrong = []
    for page in [*DOCS.rglob("*.md"), ROOT / "README.md", ROOT / "AGENTS.md"]:
        text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.DOTALL | re.MULTILINE)
        names = re.findall(r"`(greylag(?:\.[a-z_]+)*\.[A-Z]?\w+)", text)
        names += [f"{module}.{name}" for name, module in re.findall(r"`(\w+)[^`]*`\s+of\s+`(greylag[\w.]*)`", text)]
        for module, _, name in (full.rpartition(".") for full in names):
            try:
                known = hasattr(import_module(module), name) or find_spec(f"{module}.{name}")
            except ImportError:
                known = False
            wrong += [] if known or f"{module}.{name}" in ENTRY_POINTS else [f"{page.name}: {module}.{name}"]
    assert not wrong


def test_output_that_is_not_printed_and_commands_that_fail_are_found(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```sh\necho one\necho two\n```\n\n```text\ntwo\n```\n")
    assert run_page(page) == "one\ntwo\n"
    page.write_text("```sh\necho one\n```\n\n```text\none\nthree\n```\n")
    with pytest.raises(AssertionError, match=r"not printed: \{'three'\}"):
        run_page(page)
    for command in ("false", "greylag evaluate absent.run"):
        page.write_text(f"```sh\n{command}\n```\n")
        with pytest.raises(AssertionError, match=command):
            run_page(page)
