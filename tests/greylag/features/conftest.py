"""CACM, which features are compared with Lucene on."""

import pytest

from greylag.evaluation import read_topics
from greylag.index.lucene.build import build_index


@pytest.fixture(scope="package")
def cacm(data, tmp_path_factory):
    index = tmp_path_factory.mktemp("cacm") / "index"
    build_index(data("cacm") / "cacm.tar.gz", index)
    return index


@pytest.fixture(scope="package")
def topics(data):
    return read_topics(data("cacm") / "topics.cacm.txt")
