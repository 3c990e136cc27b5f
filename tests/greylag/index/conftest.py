"""The index of the sample collection."""

import pytest

from tests.greylag.index.samples import TEXTS, make_index


@pytest.fixture
def index(tmp_path):
    return make_index(tmp_path, TEXTS)
