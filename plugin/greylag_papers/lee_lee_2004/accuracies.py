"""Accuracies on the test documents, the choice of lambda, and a test of differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import t as student

from greylag import FloatArray, IntArray

ALL, IG, KS, MMR, BEST, SVM = "all words", "IG", "Koller-Sahami", "MMR", "MMR best-of", "SVM"
SELECTORS = (IG, KS, MMR, BEST)
OTHERS = (IG, KS, ALL, SVM)  # compared with MMR
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
        """Accuracies by system, shape (S, K, L); those on all words are repeated for each size.

        MMR uses the lambda chosen by cross-validation, MMR best-of the one that is best on the test documents.
        """
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
        """Mean accuracies over the splits, by learner and by system with its number of words (``MMR@25``)."""
        means = {
            learner: {ALL: float(self.all_words[:, i].mean())}
            | {
                f"{system}@{size}": float(self.systems[system][:, k, i].mean())
                for system in SELECTORS
                for k, size in enumerate(self.sizes)
            }
            for i, learner in enumerate(self.learners)
        }
        return means | {SVM: {ALL: float(self.svm.mean())}}

    def to_dict(self) -> dict[str, Any]:
        """All fields, JSON-serialisable."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _last_highest(values: FloatArray, axis: int) -> IntArray:
    """Index of the highest value along an axis; the last one of equals."""
    last: IntArray = values.shape[axis] - 1 - np.flip(np.round(values, DECIMALS), axis).argmax(axis)
    return last


@dataclass(frozen=True)
class Difference:
    """The mean difference between two systems' accuracies over the splits, with its t and two-sided p."""

    mean: float
    t: float
    p: float


def corrected_t_test(differences: FloatArray, test_ratio: float) -> Difference:
    """The corrected resampled t-test of a zero mean difference (Nadeau & Bengio, Machine Learning 52, 2003).

    t = mean / sqrt((1/S + n_test / n_training) s^2), where s^2 is the variance with divisor S - 1; S - 1 degrees of
    freedom. The plain paired test (without n_test / n_training) assumes independent splits. Their training documents
    overlap, so it finds far too many differences. If all differences are equal, p is 1 if they are 0, and 0 otherwise.
    """
    rounded = np.round(differences, DECIMALS)
    mean, variance = rounded.mean(), rounded.var(ddof=1)
    if np.ptp(rounded) == 0:
        return Difference(float(mean), 0.0 if mean == 0 else float(np.copysign(np.inf, mean)), float(mean == 0))
    t = mean / np.sqrt((1 / len(rounded) + test_ratio) * variance)
    return Difference(float(mean), float(t), float(2 * student.sf(abs(t), len(rounded) - 1)))


def differences(accuracies: Accuracies) -> dict[tuple[str, str, int], Difference]:
    """MMR's difference from each of `OTHERS`, by learner, other system and number of words."""
    tests = {}
    for i, learner in enumerate(accuracies.learners):
        for other in OTHERS:
            gains = (accuracies.systems[MMR] - accuracies.systems[other])[:, :, i]
            for k, size in enumerate(accuracies.sizes):
                tests[learner, other, size] = corrected_t_test(gains[:, k], accuracies.test_ratio)
    return tests
