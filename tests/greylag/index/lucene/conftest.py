"""An index of CACM."""

import pytest

from greylag.index.lucene.build import build_index
from greylag.index.lucene.lucene_index import LuceneIndex


@pytest.fixture(scope="session")
def cacm(data, tmp_path_factory):
    out = tmp_path_factory.mktemp("cacm") / "index"
    assert build_index(data("cacm") / "cacm.tar.gz", out) == 3204
    return LuceneIndex(out)
