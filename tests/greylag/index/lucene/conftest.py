"""Fixtures: an index of random texts, and one of CACM."""

import pytest

from greylag.index.lucene.build import build_index
from greylag.index.lucene.lucene_index import LuceneIndex
from tests.greylag.index.lucene.samples import random_documents, write_json


@pytest.fixture(scope="session")
def documents():
    return random_documents(seed=7, count=60)


@pytest.fixture(scope="session")
def small(documents, tmp_path_factory):
    folder = tmp_path_factory.mktemp("small")
    build_index(write_json(folder / "docs.jsonl", documents), folder / "index")
    return LuceneIndex(folder / "index")


@pytest.fixture(scope="session")
def cacm(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("cacm") / "index"
    assert build_index(data("cacm") / "cacm.tar.gz", out) == 3204
    return LuceneIndex(out)
