"""The folder that golden outputs are written to."""

import pytest

from tests.golden import Writer


@pytest.fixture(scope="session")
def writer(tmp_path_factory: pytest.TempPathFactory) -> Writer:
    return Writer(tmp_path_factory.mktemp("golden"))
