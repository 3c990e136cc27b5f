"""Rows of scores that judge claims, so that experiment files hold p values and detectable differences, too."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from greylag.evaluation import Scores, compare_scores, holm, parse_measure

_ANY = parse_measure("AP")  # two-sided tests do not depend on what values measure


def contrasts(
    values: Mapping[str, ArrayLike],
    pairs: Iterable[tuple[str, str]],
    *,
    test: Literal["t", "wilcoxon"] = "t",
    where: str = "",
) -> dict[str, dict[str, float]]:
    """Return rows "A / B" for pairs of systems: both means, two-sided p, detectable difference, number of units."""
    # `values` are of the same units, such as queries, in the same order. p has Holm's correction over all pairs.
    # `where` is put after the names.
    scores = {
        name: Scores.single(_ANY, {str(i): float(unit) for i, unit in enumerate(np.ravel(units))})
        for name, units in values.items()
    }
    comparisons = [compare_scores({b: scores[b], a: scores[a]}, b, test=test).comparisons[0] for a, b in pairs]
    corrected = holm([comparison.p for comparison in comparisons]).tolist()
    return {
        f"{c.run} / {c.baseline}{where}": {
            "mean": float(scores[c.run].means[0]),
            "against": float(scores[c.baseline].means[0]),
            "p": p,
            "detectable": c.detectable or 0.0,
            "n": len(scores[c.run].qids),
        }
        for c, p in zip(comparisons, corrected, strict=True)
    }
