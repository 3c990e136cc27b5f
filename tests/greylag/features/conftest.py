"""CACM, which features are compared with Lucene on."""

from collections.abc import Callable
from pathlib import Path

import pytest

from greylag.index.lucene.build import build_index
from greylag.trec import read_topics


@pytest.fixture(scope="package")
def cacm(data: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("cacm") / "index"
    build_index(data("cacm") / "cacm.tar.gz", index)
    return index


@pytest.fixture(scope="package")
def topics(data: Callable[[str], Path]) -> dict[str, str]:
    return read_topics(data("cacm") / "topics.cacm.txt")
