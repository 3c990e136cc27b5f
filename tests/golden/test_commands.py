"""What commands write. One file of tests, so that one worker runs each command once."""

import pytest

from tests.golden import MADE_BY, Writer, check


@pytest.fixture(scope="module")
def writer(tmp_path_factory):
    return Writer(tmp_path_factory.mktemp("golden"))


@pytest.mark.parametrize("name", [name for name in MADE_BY if name != "index"])
def test_a_file_is_as_it_was(name, writer):
    check(name, writer.write(name), MADE_BY[name])
