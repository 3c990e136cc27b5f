"""Accuracies on the test documents, the choice of lambda, a test of differences, and their tables and figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import t as student

from greylag.base import FloatArray, IntArray
from greylag.evaluation import Figure, Panel, Section, detectable_difference, holm, line_figure
from greylag.studies import Table, means_table
from greylag_papers.texts import read_texts

ALL, IG, KS, MMR, BEST, SVM = "all words", "IG", "Koller-Sahami", "MMR", "MMR best-of", "SVM"
SELECTORS = (IG, KS, MMR, BEST)
OTHERS = (IG, KS, ALL, SVM)  # compared with MMR
HALF = 0.5  # the lambda that the paper finds best for most learners
DECIMALS = 12  # accuracies that agree to this many decimals are equal


@dataclass(frozen=True, eq=False, kw_only=True)
class Accuracies:
    """Accuracies on the test documents of S splits, for K numbers of words, L learners and W values of lambda."""

    learners: tuple[str, ...]
    sizes: tuple[int, ...]  # numbers of words
    relevance_weights: tuple[float, ...]  # values of lambda, ascending
    all_words: FloatArray  # shape (S, L): the learners on all words
    svm: FloatArray  # shape (S,): the linear support vector machine on all words
    # information_gain, koller_sahami: shape (S, K, L): on the words that these methods select
    information_gain: FloatArray
    koller_sahami: FloatArray
    mmr: FloatArray  # shape (S, W, K, L): on the words that MMR selects
    validated: FloatArray  # shape (S, W, K, L): MMR's accuracies by cross-validation on the training documents
    test_ratio: float  # number of test documents over number of training documents

    @cached_property
    def chosen(self) -> IntArray:
        """Index of the lambda chosen by cross-validation, shape (S, K, L)."""
        return _last_highest(self.validated, axis=1)

    @cached_property
    def best(self) -> IntArray:
        """Index of the lambda with the highest mean accuracy on the test documents, shape (K, L)."""
        return _last_highest(self.mmr.mean(axis=0), axis=0)

    @cached_property
    def systems(self) -> Mapping[str, FloatArray]:
        """Return accuracies by system, shape (S, K, L); those on all words are repeated for each size."""
        # MMR uses the lambda chosen by cross-validation, MMR best-of the best on the test documents.
        shape = self.information_gain.shape
        return {
            ALL: np.broadcast_to(self.all_words[:, np.newaxis], shape),
            IG: self.information_gain,
            KS: self.koller_sahami,
            MMR: np.take_along_axis(self.mmr, self.chosen[:, np.newaxis], axis=1)[:, 0],
            BEST: np.take_along_axis(self.mmr, self.best[np.newaxis, np.newaxis], axis=1)[:, 0],
            SVM: np.broadcast_to(self.svm[:, np.newaxis, np.newaxis], shape),
        }

    def means(self) -> dict[str, dict[str, float]]:
        """Compute mean accuracies over the splits, by learner and by system with its number of words (``MMR@25``)."""
        means = {
            learner: {ALL: float(self.all_words[:, i].mean())}
            | {
                f"{system}@{size}": float(self.systems[system][:, k, i].mean())
                for system in SELECTORS
                for k, size in enumerate(self.sizes)
            }
            | {
                f"range@{size}": float(np.ptp([self.systems[name][:, k, i].mean() for name in (IG, KS, MMR)]))
                for k, size in enumerate(self.sizes)
            }
            for i, learner in enumerate(self.learners)
        }
        return means | {SVM: {ALL: float(self.svm.mean())}}

    def claims(self) -> dict[str, dict[str, float]]:
        """Compare MMR with other systems, a row for each learner and number of words."""
        # p has Holm's correction over all rows of MMR with the lambda of cross-validation; those of lambda = 0.5 beside
        # information gain, and beside the best lambda, are further families.
        rows = self._rows(MMR, self.systems[MMR], OTHERS)
        if HALF in self.relevance_weights:
            fixed = self.mmr[:, self.relevance_weights.index(HALF)]
            for other in (IG, BEST):
                rows |= self._rows(f"{MMR}, lambda {HALF}", fixed, [other])
        return rows

    def _rows(self, name: str, accuracies: FloatArray, others: Sequence[str]) -> dict[str, dict[str, float]]:
        """Return a system of accuracies of shape (S, K, L) beside others; p has Holm's correction over all of them."""
        tests = differences(self, accuracies, others)
        corrected = holm([difference.p for difference in tests.values()]).tolist()
        rows = {}
        for ((learner, other, size), difference), p in zip(tests.items(), corrected, strict=True):
            mine = float(accuracies[:, self.sizes.index(size), self.learners.index(learner)].mean())
            rows[f"{name} / {other}, {learner}@{size}"] = {
                "mean": mine,
                "against": mine - difference.mean,
                "p": p,
                "detectable": difference.detectable,
                "n": len(self.svm),
            }
        return rows

    def to_dict(self) -> dict[str, Any]:
        """Return all fields, JSON-serialisable."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _last_highest(values: FloatArray, axis: int) -> IntArray:
    """Index of the highest value along an axis; the last one of equals."""
    # Lambda ascends: of equal values, the one nearest to the order of information gain.
    return np.asarray(values.shape[axis] - 1 - np.flip(np.round(values, DECIMALS), axis).argmax(axis))


@dataclass(frozen=True)
class Difference:
    """The mean difference between two systems' accuracies over the splits, with its t and two-sided p."""

    mean: float
    t: float
    p: float
    detectable: float  # the least difference that the test finds with 80 % power at 0.05, before any correction


def corrected_t_test(differences: FloatArray, test_ratio: float) -> Difference:
    """Test a zero mean difference by the corrected resampled t-test (Nadeau & Bengio, Machine Learning 52, 2003).

    t = mean / sqrt((1/S + n_test / n_training) s^2), where s^2 is the variance with divisor S - 1; S - 1 degrees of
    freedom. The plain paired test (without n_test / n_training) assumes independent splits. Their training documents
    overlap, so it finds far too many differences. If all differences are equal, p is 1 if they are 0, and otherwise
    2 / 2^S, the share of flips of their signs that are as extreme.
    """
    rounded = np.round(differences, DECIMALS)
    mean, variance = rounded.mean(), rounded.var(ddof=1)
    if np.ptp(rounded) == 0:
        t, p = (0.0, 1.0) if mean == 0 else (float(np.copysign(np.inf, mean)), 2.0 ** (1 - len(rounded)))
        return Difference(float(mean), t, p, 0.0)
    error, freedom = np.sqrt((1 / len(rounded) + test_ratio) * variance), len(rounded) - 1
    t, detectable = mean / error, detectable_difference(float(error), len(rounded))
    return Difference(float(mean), float(t), float(2 * student.sf(abs(t), freedom)), detectable)


def differences(
    accuracies: Accuracies, system: FloatArray, others: Sequence[str] = OTHERS
) -> dict[tuple[str, str, int], Difference]:
    """Return the difference of a system, shape (S, K, L), from others, by learner, other system and number of words."""
    tests = {}
    for i, learner in enumerate(accuracies.learners):
        for other in others:
            gains = (system - accuracies.systems[other])[:, :, i]
            for k, size in enumerate(accuracies.sizes):
                tests[learner, other, size] = corrected_t_test(gains[:, k], accuracies.test_ratio)
    return tests


_TEXTS = read_texts(__file__)


def sections(accuracies: Accuracies, documents: Mapping[str, int]) -> list[Section]:
    """Return the sections of the report."""
    counts = Table("Input", ("", "number"), list(documents.items()))
    caption = "Accuracy of MMR beside another system, with the difference that is detectable"
    tests = [means_table(caption, accuracies.claims())] if len(accuracies.svm) > 1 else []
    return [
        Section("Documents", "Words are runs of letters, lower-cased, without stop list or stemming.", [counts]),
        Section("Accuracy", _TEXTS["accuracy"], [accuracy_table(accuracies)]),
        Section("Differences", verdict(accuracies) + ("\n\n" + _TEXTS["tests"] if tests else ""), tests),
        Section("The relevance weight", parts=[weight_figure(accuracies)]),
    ]


def verdict(accuracies: Accuracies) -> str:
    """Count the cases (learner and number of words) in which MMR is at least as accurate as the others."""
    means = {system: np.round(values.mean(axis=0), DECIMALS) for system, values in accuracies.systems.items()}
    counts = [f"{other} in {np.count_nonzero(means[MMR] >= means[other])}" for other in OTHERS]
    return f"Of {means[MMR].size} cases (learner and number of words) MMR is at or above {', '.join(counts)}."


def accuracy_table(accuracies: Accuracies) -> Table:
    """Return a row for each learner and system, a column for each number of words."""
    blank = [""] * (len(accuracies.sizes) - 1)
    rows: list[list[str]] = []
    for i, learner in enumerate(accuracies.learners):
        rows.append([learner, ALL, _spread(accuracies.all_words[:, i]), *blank])
        rows += [[learner, name, *map(_spread, accuracies.systems[name][:, :, i].T)] for name in SELECTORS]
    rows.append([SVM, ALL, _spread(accuracies.svm), *blank])
    n_splits = len(accuracies.svm)
    over = "one split" if n_splits == 1 else f"mean and standard deviation over {n_splits} splits"
    return Table(f"Accuracy in per cent: {over}", ("learner", "words", *_size_names(accuracies)), rows)


def weight_figure(accuracies: Accuracies) -> Figure:
    """Draw mean accuracy over lambda: a panel for each learner, a line for each number of words (Figure 1)."""
    # Dashed lines are all words: the learner's own, and the linear support vector machine's.
    caption = "Mean accuracy in per cent on the test documents over lambda; 1 is the order of information gain"
    weights = accuracies.relevance_weights
    panels: dict[str, Panel] = {
        learner: (
            {
                name: dict(zip(weights, (100 * accuracies.mmr[:, :, k, i].mean(axis=0)).tolist(), strict=True))
                for k, name in enumerate(_size_names(accuracies))
            },
            {ALL: 100 * float(accuracies.all_words[:, i].mean()), SVM: 100 * float(accuracies.svm.mean())},
        )
        for i, learner in enumerate(accuracies.learners)
    }
    return line_figure(caption, "relevance weight lambda", "accuracy, per cent", panels, alike=False)


def _spread(values: FloatArray) -> str:
    """Return mean and standard deviation (divisor S - 1) of accuracies, in per cent."""
    deviation = f" ± {100 * values.std(ddof=1):.2f}" if len(values) > 1 else ""
    return f"{100 * values.mean():.2f}{deviation}"


def _size_names(accuracies: Accuracies) -> list[str]:
    return [f"{size} words" for size in accuracies.sizes]
