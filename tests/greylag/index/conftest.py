"""The index of the sample collection."""

from pathlib import Path

import pytest

from tests.greylag.index.samples import TEXTS, make_index


@pytest.fixture
def index(tmp_path: Path) -> Path:
    return make_index(tmp_path, TEXTS)
