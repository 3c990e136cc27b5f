"""Settings of the study: the collection, the pool, the grid, and how models are learned."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BeforeValidator, Field

from greylag.experiments import CollectionSettings, Folds, MeasureName, ObjectiveName, Positive, Seed, readable_by
from greylag.experiments import Settings as Part
from greylag.features import Prior, Profile

Values = Annotated[tuple[float, ...], Field(min_length=1)]
Counts = Annotated[tuple[int, ...], Field(min_length=1)]


class Features(Part):
    """The candidate features, and the parameters that are not tuned."""

    pool: Literal["sd", "fd", "full"] = "full"
    """The dependence models of the pool."""
    priors: tuple[Annotated[str, readable_by(Prior.parse)], ...] = ()
    """Document priors that are added to the pool, ``prior:FILE[:log][:DEFAULT]``; paths below the data folder."""
    idf: Literal["lucene", "robertson"] = "lucene"
    """As in `FeatureParameters`."""
    profile: Profile = "indri"
    """As in `FeatureParameters`; "inquery" takes the paper's window widths literally."""
    max_clique: int = 3
    """As in `FeatureParameters`."""


class Grid(Part):
    """The values of each field of `FeatureParameters` that training queries choose from."""

    mu: Values = (10, 25, 50, 100, 250, 500, 1000, 2500, 5000)
    """Dirichlet prior of LM."""
    k1: Values = (0.6, 0.9, 1.2, 1.6, 2.2)
    """Saturation of term frequency by BM25."""
    b: Values = (0.1, 0.25, 0.4, 0.6, 0.8)
    """Length normalisation of BM25."""
    fb_docs: Counts = (5, 10, 20)
    """Numbers of feedback documents."""
    fb_terms: Counts = (10, 30, 100)
    """Numbers of expansion terms."""


class Training(Part):
    """How models are learned."""

    objective: ObjectiveName = "AP"
    """The measure that is maximised and that choices within training queries are based on."""
    cutoffs: tuple[Positive, ...] = ()
    """Cut-offs of the objective that inner cross-validation chooses from. Without any, selection maximises the
    objective itself, as the paper's rule always does.
    """
    max_features: Positive = 7
    """Curves end, and inner cross-validation chooses, at this number of features. The paper's rule adds up to five."""
    restarts: Positive = 3
    """As in `CoordinateAscent`."""
    folds: Folds = 5
    """Folds of cross-validation."""
    inner_folds: Folds = 3
    """Folds of the cross-validation within training queries."""
    seed: Seed = 0
    """Seed of folds and restarts."""


def _number_as_text(value: object) -> object:
    return str(value) if type(value) in (int, float) else value


Topic = Annotated[str, BeforeValidator(_number_as_text)]


class Split(Part):
    """A fixed split of the topics."""

    train: tuple[Topic, ...]
    """Topics, or ranges FIRST..LAST in the order of the topics file."""
    test: tuple[Topic, ...]
    """Topics, or ranges FIRST..LAST in the order of the topics file."""


class Settings(CollectionSettings):
    """A collection, a first stage, and how the systems that rerank it are learned."""

    features: Features = Features()
    grid: Grid = Grid()
    training: Training = Training()
    split: Split | None = None
    """Train on some topics and test on others, instead of cross-validation."""
    measures: tuple[MeasureName, ...] = ("P@10", "nDCG@10")
    """Measures that runs are scored by, in addition to the objective."""

    @property
    def priors(self) -> list[Prior]:
        """The priors, with the full paths of their files."""
        priors = map(Prior.parse, self.features.priors)
        return [replace(prior, file=str(self.path(prior.file))) for prior in priors]

    def paths(self) -> Iterator[Path]:
        """Also the files of the priors."""
        yield from super().paths()
        yield from (Path(prior.file) for prior in self.priors)
