"""The sections on other packages, each with the real package and without a JVM."""

import re
import shutil

import pytest

from tests.docs import DOCS, ROOT, lay_out, run_text

SECTIONS = {
    section.partition("\n")[0]: section
    for page in ("index", "coming-from")
    for section in re.split(r"^## ", (DOCS / "interop" / f"{page}.md").read_text(encoding="utf-8"), flags=re.MULTILINE)
    if "```python" in section
}
NEEDS = {
    "Haystack": "haystack",
    "LangChain": "langchain_core",
    "LangChain's MMR": "langchain_core",
    "LlamaIndex": "llama_index.core",
    "PyTerrier": "pyterrier",
    "ir_datasets": "greylag",
    "ir_measures": "ir_measures",
    "pandas and polars": "pandas",
    "pyversity": "pyversity",
    "ranx": "ranx",
    "rerankers": "rerankers",
}


@pytest.mark.long
@pytest.mark.parametrize("name", SECTIONS)
def test_section(name, tmp_path, monkeypatch):
    pytest.importorskip(NEEDS[name], reason=f"needs {NEEDS[name]}")
    lay_out(tmp_path)
    shutil.copy(ROOT / "runs" / "example.run", tmp_path / "bm25.run")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HAYSTACK_TELEMETRY_ENABLED", "False")  # or it would report each run over the network
    run_text(SECTIONS[name], name)


def test_every_section_is_run():
    assert SECTIONS.keys() == NEEDS.keys()
