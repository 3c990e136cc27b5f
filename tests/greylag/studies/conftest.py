"""Fixtures of the studies' tests."""

from importlib.metadata import EntryPoint

import pytest

from greylag.core.registry import GROUPS, registered
from greylag.studies import study
from tests.greylag.studies import samples


@pytest.fixture
def own_data(monkeypatch):
    """Experiment files name their own data."""
    monkeypatch.delenv("GREYLAG_DATA", raising=False)


@pytest.fixture
def sum_study(monkeypatch):
    """The study of `samples` is in the registry as "sum"."""
    entry = EntryPoint("sum", f"{samples.__name__}:STUDY", GROUPS["study"])
    everything = {**registered("study"), "sum": entry}
    monkeypatch.setattr(study, "registered", lambda kind: everything)
