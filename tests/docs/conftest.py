"""What several tests of pages read."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs import DEMO


@pytest.fixture(scope="session")
def indexed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with an index and BM25's run."""
    folder = tmp_path_factory.mktemp("indexed")
    shutil.copy(DEMO / "topics.tsv", folder)
    for words in (
        ["index", str(DEMO / "docs.jsonl"), "--out", "index"],
        ["search", "--index", "index", "--topics", "topics.tsv", "--out", "bm25.run"],
    ):
        subprocess.run([sys.executable, "-m", "greylag", *words], cwd=folder, check=True, capture_output=True)
    return folder
