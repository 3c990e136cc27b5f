"""Findings of the study, with Holm's correction over all comparisons, and the tables and figures of its report."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from string import ascii_lowercase
from typing import Any

import numpy as np
from numpy.typing import NDArray

from greylag.evaluation import (
    SIGNIFICANCE_LEVEL,
    Figure,
    Measure,
    Panel,
    Scores,
    Section,
    Significance,
    change_chart,
    compare_scores,
    line_figure,
)
from greylag.rankers import RankingModel
from greylag.studies import Table, comparison_table, means, means_table, models_table
from greylag_papers.contrasts import contrasts
from greylag_papers.metzler_2007.learning import (
    ASCENT,
    BASELINES,
    BM25,
    CLAIMED,
    EXPANDED,
    FIVE,
    LEARNED,
    RETRAINED,
    SELECTED,
    Curve,
    Experiment,
    Fold,
    Learned,
)
from greylag_papers.texts import read_texts


@dataclass(frozen=True)
class PooledCurve:
    """The objective against the number of features, over all folds."""

    training: NDArray[np.float64]  # shape (rounds,): means over training queries, averaged over folds
    test: NDArray[np.float64]  # shape (rounds,): means over all judged test queries
    # `contrasts` of the fifth round, or the last, with those before and after
    rounds: Mapping[str, Mapping[str, float]]


@dataclass(frozen=True)
class Retraining:
    """The effect of retraining after each round (the paper's Table 4)."""

    # training, test: `contrasts` over queries. A training query has its mean over the folds that train on it
    training: Mapping[str, float]
    test: Mapping[str, float]
    same: tuple[bool, ...]  # for each fold, whether the same features were selected


@dataclass(frozen=True)
class Findings:
    """All results of the study."""

    experiment: Experiment
    scores: Mapping[str, Scores]  # the first stage comes first
    folds: tuple[Fold, ...]
    models: Mapping[str, Sequence[RankingModel]]
    learned: tuple[Learned, ...]  # by fold

    @cached_property
    def means(self) -> dict[str, dict[str, float]]:
        """Means by system and measure."""
        return means(self.scores)

    @cached_property
    def comparisons(self) -> Significance:
        """Tests whether learned systems are better than each hand-picked model, by every measure."""
        pairs = [(model.name, system) for model in BASELINES for system in LEARNED]
        return compare_scores(self.scores, alternative="greater", pairs=pairs)

    @cached_property
    def retraining(self) -> Retraining:
        """The comparison of selection with and without retraining."""
        pair = RETRAINED, SELECTED
        training = {system: mean_by_query([part.training[system] for part in self.learned]) for system in pair}
        test = {system: self.scores[system].values[:, 0] for system in pair}
        features = [[set(model.features) for model in self.models[system]] for system in pair]
        (on_training,), (on_test,) = (contrasts(values, [pair]).values() for values in (training, test))
        return Retraining(
            on_training,
            on_test,
            tuple(plain == other for plain, other in zip(*features, strict=True)),
        )

    @cached_property
    def curves(self) -> dict[str, PooledCurve]:
        """The curves of the systems that select features."""
        rounds = self.experiment.settings.training.max_features
        return {
            system: pool([part.curves[system] for part in self.learned], rounds) for system in self.learned[0].curves
        }

    @cached_property
    def claims(self) -> Mapping[str, Mapping[str, float]]:
        """Rows that judge the paper's claims: comparisons by the objective, and shares of folds."""
        by_query = {system: scores.values[:, 0] for system, scores in self.scores.items()}
        first = [model.features[0] == BM25.features[0] for model in self.models[SELECTED]]
        same, rounds = self.retraining.same, self.curves[SELECTED].rounds
        shares = {"first feature is FI/term/BM25": np.mean(first), "retraining selects the same": np.mean(same)}
        return {
            **contrasts(by_query, CLAIMED),
            f"{RETRAINED} / {SELECTED}": self.retraining.test,
            f"{RETRAINED} / {SELECTED}, training": self.retraining.training,
            **rounds,
            **{name: {"share": float(share), "n": len(same)} for name, share in shares.items()},
        }

    def as_dict(self) -> dict[str, Any]:
        """Return folds, pool, comparisons and curves, ready for JSON."""
        return {
            "folds": [
                {
                    "training": list(fold.training),
                    "test": list(fold.test),
                    "set_aside": list(part.set_aside),
                    "held_out": {system: curve.held_out for system, curve in part.curves.items()},
                }
                for fold, part in zip(self.folds, self.learned, strict=True)
            ],
            "comparisons": [
                {**asdict(comparison), "measure": str(comparison.measure)}
                for comparison in self.comparisons.comparisons
            ],
            "retraining": asdict(self.retraining),
            "curves": {
                system: {**asdict(curve), "training": curve.training.tolist(), "test": curve.test.tolist()}
                for system, curve in self.curves.items()
            },
        }


def mean_by_query(folds: Sequence[Mapping[str, float]]) -> NDArray[np.float64]:
    """Return the mean of each query over the folds that have it, in the order of qids."""
    qids = sorted({qid for fold in folds for qid in fold})
    return np.array([np.mean([fold[qid] for fold in folds if qid in fold]) for qid in qids])


def pool(curves: Sequence[Curve], rounds: int) -> PooledCurve:
    """Pool the curves of one system over folds; a selection that stopped early keeps its last values."""
    last = [np.minimum(np.arange(rounds), len(curve.training) - 1) for curve in curves]
    training = np.mean([np.array(curve.training)[numbers] for curve, numbers in zip(curves, last, strict=True)], axis=0)
    test = np.concatenate([curve.test[numbers] for curve, numbers in zip(curves, last, strict=True)], axis=1)
    names = [f"{k} feature{'s' * (k > 1)}" for k in range(1, rounds + 1)]
    by_round = dict(zip(names, test, strict=True))
    before, (end, *after) = names[: FIVE - 1], names[FIVE - 1 :] or names[-1:]
    fewer = contrasts(by_round, [(end, k) for k in before if k != end])
    more = contrasts(by_round, [(k, end) for k in after])
    return PooledCurve(training, test.mean(axis=1), fewer | more)


_TEXTS = read_texts(__file__)


def sections(findings: Findings) -> list[Section]:
    """Return the sections of the report."""
    rounds = {
        f"{system}: {pair}": row for system, curve in findings.curves.items() for pair, row in curve.rounds.items()
    }
    caption = "Test means with different numbers of features; p of the paired t-test, corrected"
    same = findings.retraining.same
    retrained = f"The same features are selected with and without retraining in {sum(same)} of {len(same)} folds."
    return [
        Section("Result", verdict(findings)),
        Section("Effectiveness", effectiveness(findings), [score_table(findings), comparisons_table(findings)]),
        Section("Number of features", _TEXTS["curves"], [curves_figure(findings), means_table(caption, rounds)]),
        Section("Retraining", retrained, [retraining_table(findings)]),
        Section("Queries", parts=[change_chart(findings.scores, BM25.name, system) for system in (SELECTED, EXPANDED)]),
        Section(
            "Features",
            _TEXTS["features"],
            [models_table(name, findings.models[name], ordered=name != ASCENT) for name in LEARNED],
        ),
    ]


def verdict(findings: Findings) -> str:
    """Return the selected features against the hand-picked model of the highest score, in a sentence."""
    best = max((model.name for model in BASELINES), key=lambda name: float(findings.scores[name].rounded_means[0]))
    return next(c.verdict for c in findings.comparisons.comparisons if (c.run, c.baseline) == (SELECTED, best))


def retraining_table(findings: Findings) -> Table:
    """Tabulate training and test means without and with retraining (the paper's Table 4)."""
    retraining = findings.retraining
    rows = [
        (part, row["against"], row["mean"], row["mean"] - row["against"], row["p"])
        for part, row in (("training", retraining.training), ("test", retraining.test))
    ]
    objective = findings.experiment.settings.training.objective
    caption = f"{objective} without and with retraining; p of the two-sided paired t-test over queries"
    return Table(caption, ("queries", SELECTED, RETRAINED, "difference", "p"), rows)


def effectiveness(findings: Findings) -> str:
    """Return the systems compared, the queries, and the number of significant comparisons."""
    settings, n_documents = findings.experiment.settings, findings.experiment.collection.index.n_documents
    stage = settings.first_stage
    judged = len(next(iter(findings.scores.values())).qids)
    tested = (
        f"{judged} judged queries in {len(findings.folds)} folds, each ranked by models trained on the other folds"
        if settings.split is None
        else f"{judged} judged test queries, ranked by models trained on {len(findings.folds[0].training)} others"
    )
    compared = findings.comparisons.comparisons
    before = sum(comparison.p < SIGNIFICANCE_LEVEL for comparison in compared)
    after = sum(comparison.corrected_p < SIGNIFICANCE_LEVEL for comparison in compared)
    return (
        f"{settings.collection.docs}: {n_documents} documents; {tested}. All systems rerank the first stage "
        f"({', '.join(stage.model)}, at most {stage.hits} documents per query) and are linear models over the same "
        f"kinds of features. Everything that is tuned, learned or chosen is based on training queries alone, by "
        f"{settings.training.objective}.\n\n{_TEXTS['systems']}\n\nOf {len(compared)} comparisons of a learned "
        f"system with a hand-picked one, {before} have p < {SIGNIFICANCE_LEVEL} before and {after} after Holm's "
        "correction."
    )


def score_table(findings: Findings) -> Table:
    """Tabulate means by system and measure, with a letter for each hand-picked model that is significantly worse."""
    letters = {model.name: letter for model, letter in zip(BASELINES, ascii_lowercase, strict=False)}
    first, compared = next(iter(findings.scores.values())), findings.comparisons.comparisons
    shown = [c for c in compared if c.corrected_p < SIGNIFICANCE_LEVEL]

    def cell(system: str, measure: Measure) -> str:
        worse = [letters[c.baseline] for c in shown if (c.run, c.measure) == (system, measure)]
        return f"{findings.means[system][str(measure)]:.4f} {''.join(worse)}".strip()

    rows = [
        [f"{system} ({letters[system]})" if system in letters else system, *(cell(system, m) for m in first.measures)]
        for system in findings.scores
    ]
    caption = (
        f"Means over {len(first.qids)} judged queries. Letters: significantly better than that model (one-tailed "
        f"paired t-test, p < {SIGNIFICANCE_LEVEL}, Holm's correction over all {len(compared)} comparisons)"
    )
    return Table(caption, ("system", *map(str, first.measures)), rows)


def comparisons_table(findings: Findings) -> Table:
    """Return every learned system against every hand-picked model by the objective."""
    objective, whole = next(iter(findings.scores.values())).measures[0], findings.comparisons
    compared = replace(whole, comparisons=tuple(c for c in whole.comparisons if c.measure == objective))
    return comparison_table(f"{objective}: learned systems and hand-picked models", compared)


def curves_figure(findings: Findings) -> Figure:
    """Return the objective against the number of features."""
    objective = findings.experiment.settings.training.objective
    panels: dict[str, Panel] = {
        f"{part} queries": (
            {system: dict(enumerate(getattr(curve, part).tolist(), 1)) for system, curve in findings.curves.items()},
            {},
        )
        for part in ("training", "test")
    }
    caption = f"{objective} against the number of features, over all folds"
    return line_figure(caption, "number of features", f"mean {objective}", panels)
