"""Tables of scores, comparisons and models."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from greylag.base import Table as Table  # noqa: PLC0414 (public here)
from greylag.evaluation import Scores
from greylag.evaluation import comparison_table as comparison_table  # noqa: PLC0414 (public here)
from greylag.rankers import RankingModel


def means(scores: Mapping[str, Scores]) -> dict[str, dict[str, float]]:
    """Compute means by system and measure."""
    return {system: values.by_measure for system, values in scores.items()}


def means_table(caption: str, scores: Mapping[str, Mapping[str, float]], *, decimals: int = 4) -> Table:
    """Tabulate a row for each system and a column for each measure. Systems may lack measures."""
    measures = list(dict.fromkeys(measure for values in scores.values() for measure in values))
    rows = [(system, *(values.get(measure) for measure in measures)) for system, values in scores.items()]
    return Table(caption, ("", *measures), rows, decimals)


def models_table(caption: str, models: Sequence[RankingModel], *, ordered: bool = True) -> Table:
    """Tabulate the share of each feature in the model of each fold, the most frequent features first.

    A share is the weight times the feature's spread, the standard deviation of its values within a training query, in
    per cent of the sum of these sizes over the features. Models that do not know the spreads show weights. `ordered`
    says that the order of a model's features is that of their selection, and is shown.
    """
    cells: dict[str, dict[int, str]] = {}
    for fold, model in enumerate(models):
        spreads = model.spreads
        parts = [weight * spread for weight, spread in zip(model.weights, spreads, strict=bool(spreads))]
        total = sum(map(abs, parts)) or 1.0
        shown = [f"{100 * part / total:+.1f}\N{NO-BREAK SPACE}%" for part in parts] or [
            f"{w:+.4g}" for w in model.weights
        ]
        for place, (feature, text) in enumerate(zip(model.features, shown, strict=True), 1):
            order = f"{place}:\N{NO-BREAK SPACE}" if ordered else ""
            cells.setdefault(str(feature), {})[fold] = f"{order}{text}"
    frequent = sorted(cells, key=lambda feature: -len(cells[feature]))
    rows = [[feature, *map(cells[feature].get, range(len(models)))] for feature in frequent]
    return Table(caption, ("feature", *(f"fold {fold}" for fold in range(1, len(models) + 1))), rows)
