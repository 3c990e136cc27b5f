"""Fixtures that several test modules share."""

import faulthandler
import gc
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Tests do not depend on chance or on how busy the machine is. New examples: pytest --hypothesis-profile=default
settings.register_profile(
    "repeatable", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow], database=None
)
settings.load_profile("repeatable")


# What is imported and collected stays to the end: looking for cycles among it takes a tenth of the tests' time.
gc.disable()


def pytest_collection_finish():
    gc.enable()
    gc.freeze()


def pytest_runtest_setup(item):
    """Slow tests may take hours; all others end within `faulthandler_timeout`."""
    if item.get_closest_marker("slow"):
        faulthandler.cancel_dump_traceback_later()


DATA = Path(os.environ.get("GREYLAG_DATA", Path(__file__).parents[2] / "shared" / "data"))


@pytest.fixture(scope="session")
def data():
    """The folder of a real collection; skips the test where it is absent."""

    def folder(name):
        if not (DATA / name).is_dir():
            pytest.skip(f"needs the collection {name}, which is not in {DATA} (set GREYLAG_DATA)")
        return DATA / name

    return folder
