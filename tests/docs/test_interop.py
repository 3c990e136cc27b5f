"""The pages on other packages, each with the real package and without a JVM."""

import re
import shutil
from pathlib import Path

import pytest

from tests.docs import DOCS, ROOT, lay_out, run_page

PAGES = {page.stem: page for page in sorted((DOCS / "interop").glob("*.md"))}
NEEDS = {
    "frames": "pandas",
    "ir_measures": "ir_measures",
    "langchain": "langchain_core",
    "llama_index": "llama_index.core",
    "pyterrier": "pyterrier",
    "ranx": "ranx",
    "rerankers": "rerankers",
}


@pytest.mark.long
@pytest.mark.parametrize("name", sorted(PAGES.keys() - {"index"}))
def test_page(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    if name in NEEDS:
        pytest.importorskip(NEEDS[name], reason=f"needs {NEEDS[name]}")
    lay_out(tmp_path)
    shutil.copy(ROOT / "runs" / "example.run", tmp_path / "bm25.run")
    monkeypatch.chdir(tmp_path)
    assert "```python" in PAGES[name].read_text()
    run_page(PAGES[name])


def test_the_first_page_lists_all_others() -> None:
    linked = re.findall(r"\(([a-z_]+)\.md\)", PAGES["index"].read_text())
    assert sorted(linked) == sorted(PAGES.keys() - {"index"})
