"""The tables of the study of the stack."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace

from greylag.evaluation import Scores, compare
from greylag.experiments.tables import Table, comparison_table, means, means_table, merge_scores
from greylag_papers.beyond.stack_diversity import AFTER as DIVERSIFIED
from greylag_papers.beyond.stack_systems import RM3, STACK, WITH, WITHOUT, Fold


def names(fold: Fold) -> list[str]:
    """The stack's features, with the tuned stages by name."""
    texts = [
        str(feature).replace(fold.tuned.rm3, "rm3").replace(fold.tuned.bm25, "bm25") for feature in fold.model.features
    ]
    return [re.sub("^stage:", "", text) for text in texts]


def system_tables(scores: Mapping[str, Scores]) -> list[Table]:
    """The scores of all systems, and tests of all that are learned or fused against the stack."""
    parts = [system for system in scores if system.startswith((WITHOUT, WITH, DIVERSIFIED))]
    main = {system: own for system, own in scores.items() if system not in parts}
    objective = main[STACK].measures[0]
    tests = compare({system: _objective(own) for system, own in main.items()}, STACK)
    return [
        means_table(f"All systems over {len(main[STACK].qids)} queries", means(main)),
        comparison_table(f"{objective} of others less that of the stack", tests),
    ]


def part_table(scores: Mapping[str, Scores]) -> Table:
    """What each part adds to tuned RM3, and what the stack loses without it, by the objective."""
    own = {system: _objective(found) for system, found in scores.items()}
    objective = own[STACK].measures[0]
    base, stack = (float(own[system].means[0]) for system in (RM3, STACK))
    added = {system.removeprefix(WITH): float(own[system].means[0]) for system in own if system.startswith(WITH)}
    left = {part: float(own[f"{WITHOUT}{part}"].means[0]) for part in added}
    gains = {c.run: c for c in compare({s: own[s] for s in (RM3, *(f"{WITH}{p}" for p in added))}, RM3).comparisons}
    losses = {
        c.run: c for c in compare({s: own[s] for s in (STACK, *(f"{WITHOUT}{p}" for p in added))}, STACK).comparisons
    }
    rows = [
        (part, added[part], f"{added[part] - base:+.4f}", gains[f"{WITH}{part}"].corrected_p,
         left[part], f"{left[part] - stack:+.4f}", losses[f"{WITHOUT}{part}"].corrected_p)
        for part in added
    ]  # fmt: skip
    caption = f"{objective} of learning from RM3 ({base:.4f}) and one part, and of the stack ({stack:.4f}) without it"
    return Table(caption, ("part", "RM3 and it", "change", "corrected p", "without it", "change", "corrected p"), rows)


def choice_table(folds: Sequence[Fold]) -> Table:
    """What each fold chose on its training queries."""
    found: dict[str, list[float]] = {
        name: [getattr(fold.tuned.parameters, name) for fold in folds]
        for name in ("k1", "b", "mu", "fb_docs", "fb_terms")
    }
    found["original_weight"] = [fold.tuned.original_weight for fold in folds]
    found |= {name: [fold.chosen[name] for fold in folds] for name in folds[0].chosen}
    found["features of the stack"] = [len(fold.model.features) for fold in folds]
    rows = [(name, *(f"{value:g}" for value in values)) for name, values in found.items()]
    return Table("Chosen on training queries", ("", *(f"fold {number}" for number in range(1, len(folds) + 1))), rows)


def feature_table(folds: Sequence[Fold]) -> Table:
    """How many folds chose each feature of the stack."""
    counts = Counter(name for fold in folds for name in names(fold))
    return Table(f"Features of the stack in {len(folds)} folds", ("feature", "folds"), counts.most_common())


def diversity_table(scores: Mapping[str, Scores], diverse: Mapping[str, Scores]) -> Table:
    """Relevance beside diversity: what a diversifier gains in one and costs in the other."""
    relevance = {system: scores[system] for system in diverse}
    return means_table("Relevance and diversity", merge_scores([means(relevance), means(diverse)]))


def _objective(scores: Scores) -> Scores:
    return replace(scores, measures=scores.measures[:1], values=scores.values[:, :1])
