"""Models."""

import pytest

from tests.golden import MADE_BY, Writer, check, written_by


@pytest.mark.parametrize("name", written_by("train"))
def test_a_file_is_as_it_was(name: str, writer: Writer) -> None:
    check(name, writer.write(name), MADE_BY[name])
