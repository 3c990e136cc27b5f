"""The model of a learned fusion: a weight for each run's scores and for its ranks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from typing_extensions import TypedDict

from greylag.core.tables import html_text
from greylag.errors import ModelError, ParameterError
from greylag.fusion import FUSIONS, fusion_columns
from greylag.learning.data import weighted_sum
from greylag.learning.model_files import Provenance, SavedModel
from greylag.ranking import Ranking

LEARNED = "learned"
"""The name of the learned fusion beside those of runs and of `FUSIONS`."""


class _Layout(TypedDict):
    runs: list[str]
    method: str
    weights: list[list[float]]
    objective: str
    provenance: Provenance


@dataclass(frozen=True, repr=False)
class FusionModel(SavedModel):
    """A learned fusion: a method for `greylag.fuse_runs` and `greylag.fusion.PooledSources`.

    Parameters
    ----------
    runs : tuple of str
        The names of the runs that are fused, in their order.
    method : str, default "learned"
        "learned", for the weighted sum, or the key of `greylag.fusion.FUSIONS` that was chosen in its place.
    weights : tuple of pairs of float
        For each run, the weight of its scaled scores and that of 60 / (60 + rank); none for a fixed method.
    objective : str, default ""
        The measure that was maximised.
    provenance : mapping, default {}
        How the model was made: version, learner, training queries and so on. Serialisable as JSON.
    """

    kind = "greylag fusion model"
    schema = 1
    command = "greylag fuse --qrels"
    layout = _Layout
    fingerprint = ""  # runs may come from any collection

    runs: tuple[str, ...]
    method: str = LEARNED
    weights: tuple[tuple[float, float], ...] = ()
    objective: str = ""
    provenance: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if self.method not in (LEARNED, *FUSIONS):
            raise ModelError(f"unknown method {self.method!r} of fusion: use {LEARNED}, {', '.join(FUSIONS)}")
        if len(self.weights) != (len(self.runs) if self.method == LEARNED else 0):
            raise ModelError(f"a fusion of {len(self.runs)} runs by {self.method} has {len(self.weights)} weights")
        if len(set(self.runs)) != len(self.runs) or any(len(pair) != 2 for pair in self.weights):
            raise ModelError(f"each of the runs {', '.join(self.runs)} needs a name of its own and two weights")
        if not np.isfinite(self.weights).all():
            raise ModelError(f"weights must be finite, not {self.weights}")

    def __call__(self, rankings: Sequence[Ranking], /) -> Ranking:
        """Fuse a query's rankings, one of each run in the order of `runs`, empty where a run has no documents."""
        if len(rankings) != len(self.runs):
            raise ParameterError(
                f"the model fuses {', '.join(self.runs)}: pass {len(self.runs)} rankings in this order"
            )
        if self.method in FUSIONS:
            return FUSIONS[self.method](rankings)
        docids, columns = fusion_columns(rankings)  # by run, its scores and then its ranks, as weights are
        scores = weighted_sum(columns, np.ravel(self.weights))
        return Ranking.sort(rankings[0].qid, rankings[0].query, docids, scores)

    def __repr__(self) -> str:
        return f"<FusionModel of {', '.join(self.runs)} by {self.method}>"

    def _repr_html_(self) -> str:
        return html_text(self.summary())

    def summary(self) -> str:
        """Describe the model in a few lines: its learning, its scores, and its weights."""
        origin = self.provenance
        lines = [f"Fusion of {len(self.runs)} runs, {self.method}"]
        if "queries" in origin:
            lines.append(f"{self.objective} maximised by {origin['learner']} on {len(origin['queries'])} topics")
        if origin.get("chosen", LEARNED) != LEARNED:
            lines.append(
                f"{origin['chosen']} in its place: better in cross-validation by more than two standard errors"
            )
        if held_out := dict(origin.get("held_out", {})):
            folds = held_out.pop("folds")
            scores = ", ".join(f"{measure} {value:.4f}" for measure, value in held_out.items())
            lines.append(f"{scores} on held-out topics, in {folds:.0f}-fold cross-validation")
        if self.method != LEARNED:
            return "\n".join([*lines, *self.runs]) + "\n"
        width = max(map(len, self.runs))
        lines.append(
            f"{'':{width}}  {'score':>10}  {'rank':>10}   weights of scores in [0, 1], and of 60 / (60 + rank)"
        )
        for name, (of_scores, of_ranks) in zip(self.runs, self.weights, strict=True):
            lines.append(f"{name:{width}}  {of_scores:+10.4f}  {of_ranks:+10.4f}")
        return "\n".join([*lines, "A run that lacks a document adds nothing to its score."]) + "\n"

    def as_dict(self) -> dict[str, Any]:
        """Return the entries of the model's file."""
        weights = [list(pair) for pair in self.weights]
        return {
            "runs": list(self.runs), "method": self.method, "weights": weights, "objective": self.objective,
            "provenance": dict(self.provenance),
        }  # fmt: skip

    @classmethod
    def from_dict(cls, content: Mapping[str, Any]) -> FusionModel:
        """Make the model of a file's entries."""
        weights: Any = tuple(tuple(map(float, pair)) for pair in content["weights"])
        return cls(tuple(content["runs"]), content["method"], weights, content["objective"], content["provenance"])
