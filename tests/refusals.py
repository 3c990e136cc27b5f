"""A refusal: the error of a call, and what its one line has."""

import pytest


def refuses(call, error, parts, separator=" "):
    """Check the type of the error, and that each part is in its message, which is one line."""
    with pytest.raises(error) as caught:
        call()
    message = str(caught.value)
    assert "\n" not in message
    assert all(part in message for part in parts.split(separator)), message
