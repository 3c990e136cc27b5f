"""Fixtures of the studies' tests."""

from __future__ import annotations

import pytest

from greylag.experiments.study import STUDIES
from tests.greylag.experiments import samples


@pytest.fixture
def own_data(monkeypatch: pytest.MonkeyPatch) -> None:
    """Experiment files name their own data."""
    monkeypatch.delenv("GREYLAG_DATA", raising=False)


@pytest.fixture
def sum_study(monkeypatch: pytest.MonkeyPatch) -> None:
    """The study of `samples` is in the registry as "sum"."""
    monkeypatch.setitem(STUDIES, "sum", samples.__name__)
