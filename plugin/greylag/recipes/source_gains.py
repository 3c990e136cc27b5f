"""Ablation: the held-out mean when one source of features is left out of a listwise regression.

A regression takes far less than the learners that the automatic choice tries, and is the same for every source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from greylag.base import Marked, ParameterError, Table
from greylag.evaluation import Scores, compare_scores, parse_measure
from greylag.features import Feature, RunScore
from greylag.learning import ListwiseRegression, Objective, linear_scores, spaced
from greylag.recipes.choice import Candidate, Fold, System

MAX_QUERIES = 500
"""Queries of a fold that are learned from, at equal distances."""
ALL_SOURCES = "all sources"
Groups = Mapping[str, Iterable[Feature]]
"""The sources of several features by name, normalised or not; any other feature is a source by itself."""


def sources(features: Iterable[Feature], groups: Groups) -> dict[str, frozenset[str]]:
    """List the features of each source by name; of all runs, if there are several; and of all that needs the index."""
    known, names = list(features), dict[str, set[str]]()
    source_names = {feature.base: name for name, group in groups.items() for feature in group}
    for feature in known:
        names.setdefault(source_names.get(feature.base, str(feature.base)), set()).add(str(feature))
    # The sources may overlap: a run is one by itself, and one of all runs.
    runs = [feature for feature in known if isinstance(feature.base, RunScore)]
    if len({feature.base for feature in runs}) > 1:
        names["runs"] = set(map(str, runs))
    if (indexed := {str(feature) for feature in known if feature.base.needs_index}) and len(indexed) < len(known):
        names["the index"] = indexed
    # Without a source that is everything, there would be nothing to learn from.
    return {name: frozenset(members) for name, members in names.items() if len(members) < len(known)}


def source_gains(folds: Iterable[Fold], objective: Objective, groups: Groups) -> dict[str, Any]:
    """Compute the held-out mean of a regression of all sources, and the difference without each, for provenance."""
    # Empty if there are fewer than two sources. Of a fold, at most `MAX_QUERIES` queries are learned from.
    values: dict[str, dict[str, float]] = {}
    for training, held_out in folds:
        rows = training.select_queries(spaced(training.qids, MAX_QUERIES))
        features = [spec for spec in training.specs if isinstance(spec, Feature)]
        for name, without in {ALL_SOURCES: frozenset[str](), **sources(features, groups)}.items():
            system = System("listwise", name)
            left = tuple(feature for feature in training.names if feature not in without)
            try:
                weights = Candidate(system, left, learner=ListwiseRegression(objective)).fit(rows)[system]
            except ParameterError:  # nothing that is left differs between documents
                weights = np.zeros(len(training.specs))
            scores = objective.evaluate(held_out, linear_scores(held_out, range(len(weights)), weights))
            values.setdefault(name, {}).update(zip(held_out.qids, scores.tolist(), strict=True))
    measure = parse_measure(str(objective))
    by_source = {name: Scores.single(measure, by_qid) for name, by_qid in values.items()}
    if len(by_source) < 3:
        return {}
    return {
        "queries": len(values[ALL_SOURCES]),
        "mean": float(by_source[ALL_SOURCES].means[0]),
        "without": {
            comparison.run: {
                "difference": comparison.difference,
                "interval": list(comparison.interval or (None, None)),
            }
            for comparison in compare_scores(by_source, ALL_SOURCES).comparisons
        },
    }


def sources_table(gains: Mapping[str, Any], measure: str) -> Table:
    """Tabulate the result of `source_gains`."""
    rows: list[tuple[str | float | Marked | None, ...]] = [(ALL_SOURCES, gains["mean"], None, None, None)]
    for name, gain in gains["without"].items():
        figures = gain["difference"], *gain["interval"]
        cells = (None if value is None else Marked(value, "+.4f") for value in figures)
        rows.append((f"without {name}", gains["mean"] + gain["difference"], *cells))
    caption = (
        f"Listwise regression, each of the {gains['queries']} training topics held out, with one source of features "
        "left out (low, high: 95 % intervals)"
    )
    return Table(caption, ("", measure, "minus all", "low", "high"), rows)
