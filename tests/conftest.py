"""Fixtures that several test modules share."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Tests do not depend on chance or on how busy the machine is. New examples: pytest --hypothesis-profile=default
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("repeatable")

DATA = Path(os.environ.get("GREYLAG_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data() -> Callable[[str], Path]:
    """The folder of a real collection; skips the test where it is absent."""

    def folder(name: str) -> Path:
        if not (DATA / name).is_dir():
            pytest.skip(f"needs the collection {name}, which is not in {DATA} (set GREYLAG_DATA)")
        return DATA / name

    return folder
