"""What several tests of pages read."""

import shutil

import pytest

from tests.docs import DEMO
from tests.processes import python


@pytest.fixture(scope="session")
def indexed(tmp_path_factory):
    """A folder with an index and BM25's run."""
    folder = tmp_path_factory.mktemp("indexed")
    shutil.copy(DEMO / "topics.tsv", folder)
    for words in (
        ["index", str(DEMO / "docs.jsonl"), "--out", "index"],
        ["search", "--index", "index", "--topics", "topics.tsv", "--out", "bm25.run"],
    ):
        python("-m", "greylag", *words, cwd=folder, check=True)
    return folder
