"""The linear model: features, weights and provenance."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from greylag.base import MAX_VALUE, FloatArray, ModelError, ParameterError, check_sequences, html_text
from greylag.features import (
    CollectionStatistics,
    Column,
    Feature,
    FeatureParameters,
    Function,
    FusedRuns,
    LearnedFeature,
    Translation,
    TranslationLayout,
    Trees,
    TreesLayout,
    learned_features,
    read_learned,
    read_xgboost,
    supply,
)
from greylag.index import PositionalIndex, QueryForm
from greylag.learning import LIGHTGBM, XGBOOST, Provenance, RankingData, SavedModel, bound_columns

LEARNED_KINDS: tuple[type[LearnedFeature], ...] = (Trees, Translation)


class _Row(TypedDict):
    feature: str
    weight: float
    training_score: float | None


class _ByLength(TypedDict):
    slopes: list[float]
    shortest: float
    longest: float


class _Layout(TypedDict):
    features: list[_Row]
    by_length: NotRequired[_ByLength]
    objective: str
    parameters: dict[str, Any]
    collection: dict[str, float]
    fingerprint: str
    query_form: NotRequired[dict[str, Any]]
    runs: NotRequired[list[str]]
    learned: NotRequired[dict[str, TreesLayout | TranslationLayout]]
    provenance: Provenance


@dataclass(frozen=True)
class LengthSlopes:
    """How a model's weights follow the mean length of an index's documents.

    With L that length in terms (`PositionalIndex.average_length`), cut at `shortest` and `longest`, a feature weighs

        weight + slope log(L / sqrt(shortest longest)).
    """

    slopes: tuple[float, ...]
    shortest: float = 7.0
    longest: float = 100.0

    def __post_init__(self) -> None:
        if not (np.all(np.abs(self.slopes) <= MAX_VALUE) and 0 < self.shortest < self.longest < np.inf):
            raise ModelError(
                f"slopes must be within {MAX_VALUE:g} of 0, and lengths above 0, the shortest below the longest"
            )

    @property
    def middle(self) -> float:
        """The length at which a model's weights are its own."""
        return float(np.sqrt(self.shortest * self.longest))

    def place(self, length: float) -> float:
        """Return the factor of the slopes, log(L / sqrt(shortest longest))."""
        return float(np.log(np.clip(length, self.shortest, self.longest) / self.middle))

    @classmethod
    def line(cls, weights: Sequence[FloatArray], lengths: Sequence[float]) -> FloatArray:
        """Fit weight and slope, shape (2, f), to collections by least squares, with a ridge penalty of 1 on slopes."""
        rows = np.array([[1.0, cls(()).place(length)] for length in lengths])
        return np.asarray(np.linalg.solve(rows.T @ rows + np.diag([0.0, 1.0]), rows.T @ np.array(weights)))


@dataclass(frozen=True, repr=False)
class RankingModel(SavedModel):
    """A ranking function: the weighted sum of features (Metzler 2007, section 2.1).

    Parameters
    ----------
    features : tuple of Feature
        In the order of selection.
    weights : tuple of float
        Finite, one for each feature.
    parameters : FeatureParameters, default ``FeatureParameters()``
    objective : str, default ""
        The measure that was maximised, if any.
    training_scores : tuple of float, default ()
        For each feature, the mean of the objective on the training queries after it was added.
    collection : mapping, default {}
        ``documents``, ``tokens`` and ``average_length`` of the training collection.
    fingerprint : str, default ""
        Of the training collection; "" for any collection.
    query_form : QueryForm, default ``QueryForm()``
        How queries are shortened before features are computed.
    runs : tuple of str, default ()
        The names of the runs that it fuses, in their order: all features are `FusedRuns` of these. () if it reranks.
    provenance : mapping, default {}
        How the model was made: version, learner, training queries and so on. Serialisable as JSON.
    by_length : LengthSlopes, optional
        How the weights follow the length of an index's documents; by default, they are the same for all.
    """

    kind = "greylag linear model"
    schema = 1
    command = "greylag train"
    layout = _Layout
    stage_name = "mrf"

    features: tuple[Feature, ...]
    weights: tuple[float, ...]
    parameters: FeatureParameters = FeatureParameters()
    objective: str = ""
    training_scores: tuple[float, ...] = ()
    collection: Mapping[str, float] = field(default_factory=dict)
    fingerprint: str = ""
    query_form: QueryForm = QueryForm()
    runs: tuple[str, ...] = ()
    provenance: Mapping[str, Any] = field(default_factory=dict)
    by_length: LengthSlopes | None = None

    def __post_init__(self) -> None:
        scores = self.training_scores
        check_sequences(features=self.features, weights=self.weights, training_scores=scores, runs=self.runs)
        if len(self.features) != len(self.weights):
            raise ModelError(f"a linear model of {len(self.features)} features has {len(self.weights)} weights")
        if self.by_length is not None and len(self.by_length.slopes) != len(self.weights):
            raise ModelError(f"{len(self.weights)} weights cannot have {len(self.by_length.slopes)} slopes")
        # `at_length` adds up magnitudes; infinity would make all weights 0.
        if not np.isfinite(self.weights).all() or (self.by_length and max(map(abs, self.weights)) > MAX_VALUE):
            limit = f", with slopes within {MAX_VALUE:g} of 0" if self.by_length else ""
            raise ModelError(f"weights must be finite{limit}, not {self.weights}")
        if len(set(self.runs)) != len(self.runs):
            raise ModelError(f"each of the runs {', '.join(self.runs)} needs a name of its own")
        for feature in self.features if self.runs else ():
            if not (isinstance(feature, FusedRuns) and set(feature.runs) <= set(self.runs)):
                raise ModelError(f"{feature} is no fusion of the model's runs {', '.join(self.runs)}")

    def __repr__(self) -> str:
        return f"<{self._outline()}>"

    def _repr_html_(self) -> str:
        return html_text(self.summary())

    def _outline(self) -> str:
        learned = f", {self.objective} {self.training_scores[-1]:.4f} in training" if self.training_scores else ""
        return f"RankingModel of {len(self.features)} feature{'' if len(self.features) == 1 else 's'}{learned}"

    def summary(self) -> str:
        """Describe the model in a few lines: its learning, its scores, and its weights."""
        origin = self.provenance
        lines = [self._outline()]
        if "learner" in origin:
            sources = origin.get("collections") or origin.get("queries", ())
            kind = "collections" if "collections" in origin else "queries"
            lines.append(f"learned by {origin['learner']} from {len(sources)} {kind}")
        if "average_length" in origin:
            lines.append(f"weights for documents of {origin['average_length']:.1f} terms in the mean")
        if "baseline" in origin:
            tuned, queries = ", ".join(origin.get("tuned", ())), len(origin.get("queries", ()))
            lines.append(f"{origin['baseline']} with {tuned} tuned on {queries} queries")
            if "training_score" in origin:
                lines[-1] += f", {self.objective} {origin['training_score']:.4f} in training"
        if "validation_score" in origin:
            queries = len(origin.get("validation", ()))
            lines.append(f"{self.objective} {origin['validation_score']:.4f} on {queries} queries for validation")
        if "documents" in self.collection:
            documents, fingerprint = self.collection["documents"], self.fingerprint[:12] or "none"
            lines.append(f"collection of {documents:.0f} documents, fingerprint {fingerprint}")
        held_out = dict(origin.get("held_out", {}))
        if folds := held_out.pop("folds", None):
            scores = ", ".join(f"{measure} {value:.4f}" for measure, value in held_out.items())
            lines.append(f"{scores} on held-out queries, in {folds}-fold cross-validation")
        if any(feature.base.needs_index for feature in self.features):
            parameters = ", ".join(f"{name} {value}" for name, value in self.parameters.as_dict().items())
            lines.append(f"parameters {parameters}")
        lines += self._weighted()
        for name, feature in learned_features(self.features).items():
            lines += [f"{name}: {line}" if not line.startswith(" ") else line for line in feature.outline()]
        return "\n".join(lines) + "\n"

    def _weighted(self) -> list[str]:
        """Write a line for each feature: in rounds with the score after each, or by its share of the score."""
        # A share is that of |weight| x standard deviation within a query of the training data. Stages with parameters
        # tuned in training are named by their baseline.
        names, tuned = [str(feature) for feature in self.features], self.provenance.get("baselines", {})
        if (by := self.by_length) is not None:
            lengths = by.shortest, by.middle, by.longest
            fixed = [self.at_length(length).weights for length in lengths]
            lines = ["".join(f"{weight:+12.4f}" for weight in weights) for weights in zip(*fixed, strict=True)]
            heading = "".join(f"{length:12.0f}" for length in lengths)
            listed = zip(lines, names, strict=True)
            return [f"{heading}  terms in the mean document", *(f"{line}  {name}" for line, name in listed)]
        # A stage with all its parameters fills a line, and "RM3" says the same.
        stages = [(stage, name) for name, weights in tuned.items() for stage in weights if stage.startswith("stage:")]
        for stage, name in sorted(stages, key=lambda pair: -len(pair[0])):  # RM3's begins with BM25's
            names = [f"{name}{text.removeprefix(stage)}" if text.startswith(stage) else text for text in names]
        # Equal scores are those of one round, in which all weights were learned.
        scores, spreads = self.training_scores, self.spreads
        if len(set(scores)) > 1 or not spreads or len(spreads) != len(names):
            after = [f"  {self.objective} {score:.4f}" if len(set(scores)) > 1 else "" for score in scores]
            rows = zip(self.weights, names, after or [""] * len(names), strict=True)
            return [f"{weight:+12.6g}  {name}{score}" for weight, name, score in rows]
        sizes = np.abs(np.array(self.weights) * np.array(spreads))
        with np.errstate(invalid="ignore"):  # of weights whose sum is infinite
            order, shares = np.argsort(-sizes, kind="stable").tolist(), sizes / (sizes.sum() or 1.0)
        return [f"{shares[number]:7.1%} {self.weights[number]:+12.6g}  {names[number]}" for number in order]

    @property
    def searched(self) -> bool:
        """Whether it ranks what BM25 and RM3 find, as in its training, unless it is given a run."""
        return bool(self.provenance.get("searched"))

    @property
    def n_candidates(self) -> int:
        """The number of features that it was learned from; its own if they were not chosen among others."""
        kept = self.provenance.get("candidates", len(self.features)) + len(self.provenance.get("set_aside", ()))
        return int(self.provenance.get("pool", kept))  # before some were preselected

    @property
    def spreads(self) -> tuple[float, ...]:
        """The standard deviation of each feature within a training query; empty if it is not known."""
        return tuple(self.provenance.get("spreads", ()))

    @classmethod
    def of_content(cls, path: str | Path, content: Mapping[str, Any]) -> RankingModel:
        """Load from the content of the file, as `load` does, also of one that LightGBM or XGBoost saved."""
        kind = content.get("kind")
        if kind not in (LIGHTGBM, XGBOOST):
            return super().of_content(path, content)
        try:
            trees = Trees.from_lightgbm(content["text"]) if kind == LIGHTGBM else read_xgboost(content)
        except ModelError as error:
            raise ModelError(f"{path}: {error}") from None
        columns = [str(column).removeprefix("column:") for column in trees.features]
        return cls((trees.without_unused(),), (1.0,), provenance={"columns": columns})

    def for_collection(self, index: PositionalIndex) -> RankingModel:
        """Mark the model as trained on the collection of `index`."""
        return replace(self, collection=asdict(CollectionStatistics.of(index)), fingerprint=index.fingerprint)

    def at_length(self, length: float) -> RankingModel:
        """Fix the weights, as shares whose magnitudes sum to 1, for an index of this mean length, if they follow it."""
        if self.by_length is None:
            return self
        weights = np.array(self.weights) + self.by_length.place(length) * np.array(self.by_length.slopes)
        provenance = {**self.provenance, "average_length": round(length, 2)}
        return replace(self, weights=shares(weights), by_length=None, provenance=provenance)

    def supply(self, functions: Mapping[str, Function]) -> RankingModel:
        """Add the functions of its features ``python:NAME``, which a model file does not have."""
        return replace(self, features=supply(self.features, functions))

    @property
    def trained_columns(self) -> list[str] | None:
        """The names of all columns of the feature file that it was trained on; None without one."""
        return self.provenance.get("columns")

    @property
    def columns(self) -> tuple[Column, ...]:
        """The columns of a file among its features, and among those that trees split by."""
        parts = (part for base in self.features for part in (base.features if isinstance(base, Trees) else (base,)))
        return tuple(part for part in parts if isinstance(part, Column))

    @property
    def absent(self) -> float | None:
        """What `read_letor` is to take a feature for that a line leaves out; None if the model knows no NaN."""
        trees = [feature for feature in self.features if isinstance(feature, Trees)]
        return None if not trees else math.nan if any(tree.of_xgboost for tree in trees) else 0.0

    def missing_as_zero(self) -> RankingModel:
        """Take values that are missing as 0 in all trees, wherever such values went in training."""
        if self.absent is None:
            raise ModelError("the model has no trees, which alone know missing values")
        known = (feature.missing_as_zero() if isinstance(feature, Trees) else feature for feature in self.features)
        return replace(self, features=tuple(known))

    def with_columns(self, data: RankingData) -> RankingModel:
        """Read its features ``column:NAME`` from data with the columns that it was trained on, else `ModelError`.

        The data may have NaN for trees alone; what `read_letor` is asked for is `absent`.
        """
        trained, provenance = self.trained_columns, self.provenance
        known = {str(column): column for column in bound_columns(data)}

        def bound(feature: Feature) -> Feature:
            if isinstance(feature, Trees):
                return replace(feature, features=tuple(map(bound, feature.features)))
            return known.get(str(feature), feature)

        # LightGBM's and XGBoost's own names are of columns in order; their readers of LETOR text have a column 0 before
        # the first.
        count = len(trained or ())
        own = next((name for name in ("Column_", "f") if trained == [f"{name}{n}" for n in range(count)]), None)
        if trained and own and trained != [*data.names]:
            shift = len(trained) - len(data.names)
            if shift not in (0, 1):
                raise ModelError(f"the file has {len(data.names)} columns, but the model {len(trained)} without names")
            known = {f"column:{own}{number}": column for number, column in enumerate(known.values(), shift)}
            provenance = {**provenance, "columns": [*trained[:shift], *data.names]}
        # Columns without names are known by number alone, and in another file these may be other features.
        if trained and trained != list(data.names) and all(map(str.isdecimal, (*trained, *data.names))):
            raise ModelError(
                f"the file has the columns {span(data.names)}, but the model was trained on {span(trained)}: give a "
                "file with the same columns, of which the last is written in a line at least"
            )
        if lacking := [column.name for column in self.columns if str(column) not in known]:
            raise ModelError(
                f"the model has the column {lacking[0]}, which is not among the file's: {span(data.names)}"
            )
        unable = [str(feature) for feature in self.features if isinstance(feature, Column)]
        if odd := [name for name in unable if np.isnan(data.features[:, [*known].index(name)]).any()]:
            raise ModelError(f"{odd[0]} has missing values (NaN), which trees alone know: write numbers")
        return replace(self, features=tuple(map(bound, self.features)), provenance=provenance)

    def with_files(self, files: Mapping[str, str]) -> RankingModel:
        """Read features such as ``run:FILE`` from other files, by the name of each in the model, or its last part."""
        # As paths: ``a.run`` and ``./a.run`` are one file.
        known = list(dict.fromkeys(Path(file) for feature in self.features for file in feature.files()))
        places: dict[Path, str] = {}
        for name, file in files.items():
            matches = [path for path in known if path == Path(name)] or [path for path in known if path.name == name]
            if len(matches) != 1:
                names = ", ".join(map(str, known)) or "none"
                raise ParameterError(f"{len(matches)} of the model's files are called {name!r}; its files: {names}")
            (path,) = matches
            if path in places:
                raise ParameterError(f"the model's file {path} is to be {places[path]} and {file}: keep one")
            places[path] = file
        features = tuple(feature.place_files(lambda file: places.get(Path(file), file)) for feature in self.features)
        return replace(self, features=features)

    def as_dict(self) -> dict[str, Any]:
        """Return the entries of the model's file."""
        # Models made by hand have no scores; a row has the entry all the same, as files have one layout.
        scores = self.training_scores or [None] * len(self.weights)
        learned = {name: feature.as_dict() for name, feature in learned_features(self.features).items()}
        return {
            "features": [
                {"feature": str(feature), "weight": weight, "training_score": score}
                for feature, weight, score in zip(self.features, self.weights, scores, strict=True)
            ],
            **({} if self.by_length is None else {"by_length": asdict(self.by_length)}),
            "objective": self.objective,
            "parameters": self.parameters.as_dict(),
            "collection": dict(self.collection),
            "fingerprint": self.fingerprint,
            **({} if self.query_form == QueryForm() else {"query_form": self.query_form.as_dict()}),
            **({"runs": list(self.runs)} if self.runs else {}),
            **({"learned": learned} if learned else {}),
            "provenance": dict(self.provenance),
        }

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> RankingModel:
        """Make the model of a file's entries."""
        rows = content["features"]
        scores, slopes = tuple(row["training_score"] for row in rows), content.get("by_length")
        parse = read_learned(content.get("learned", {}), LEARNED_KINDS)
        return cls(
            features=tuple(parse(row["feature"]) for row in rows),
            weights=tuple(float(row["weight"]) for row in rows),
            parameters=FeatureParameters(**content["parameters"]),
            objective=content["objective"],
            # Models made by hand have no scores.
            training_scores=() if None in scores else scores,
            collection=content["collection"],
            fingerprint=content["fingerprint"],
            query_form=QueryForm.from_dict(content["query_form"]) if "query_form" in content else QueryForm(),
            runs=tuple(content.get("runs", ())),
            provenance=content["provenance"],
            by_length=None if slopes is None else LengthSlopes(**{**slopes, "slopes": tuple(slopes["slopes"])}),
        )


def shares(weights: FloatArray) -> tuple[float, ...]:
    """Divide weights by the sum of their magnitudes, to four decimals."""
    # Only ratios count: as shares, weights can be compared and read. Four decimals are beyond what judgements tell.
    shared: list[float] = (weights / np.abs(weights).sum()).round(4).tolist()
    return tuple(shared)


def span(names: Sequence[str]) -> str:
    """Format names of columns in a few words."""
    return ", ".join(names) if len(names) < 4 else f"{names[0]}, {names[1]}, ..., {names[-1]} ({len(names)} of them)"
