"""Experiment files of the study."""

from __future__ import annotations

from pathlib import Path

import pytest

from greylag import FormatError
from greylag.experiments import load
from greylag.experiments.runner import dependencies
from greylag_papers.metzler_2007.learning import Settings
from tests.greylag.experiments.samples import DEMO
from tests.greylag_papers.metzler_2007.samples import write_config


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"training": {"inner_folds": 1}}, "training.inner_folds"),
        ({"grid": {"mu": []}}, "grid.mu"),
        ({"features": {"priors": ["pagerank.tsv"]}}, "features.priors.0: .*prior:FILE"),
        ({"split": {"train": ["1"]}}, "split.test: field required"),
    ],
)
def test_fields_out_of_their_domain(tmp_path: Path, options: dict[str, object], reason: str) -> None:
    with pytest.raises(FormatError, match=reason):
        load(write_config(tmp_path, **options))


def test_topics_of_a_split_may_be_numbers(tmp_path: Path) -> None:
    _, settings = load(write_config(tmp_path, split={"train": ["1..3"], "test": [21]}))
    assert isinstance(settings, Settings)
    assert settings.split is not None
    assert settings.split.test == ("21",)


def test_priors_are_input_files(tmp_path: Path) -> None:
    prior = tmp_path / "prior.tsv"
    _, settings = load(write_config(tmp_path, features={"priors": ["prior:spam.tsv:log", f"prior:{prior}"]}))
    assert isinstance(settings, Settings)
    assert [(found.file, found.scale) for found in settings.priors] == [
        (str(DEMO / "spam.tsv"), "log"),
        (str(prior), "raw"),
    ]
    assert prior in settings.paths()
    before = dependencies(settings)
    prior.write_text("a 1\n")
    assert dependencies(settings) != before
