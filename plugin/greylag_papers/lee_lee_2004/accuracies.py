"""The accuracies that the categorisation study measures, what is chosen by them, and tests of their differences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any

import numpy as np

from greylag.ranking import FloatArray, IntArray

ALL, IG, KS, MMR, BEST, SVM = "all words", "IG", "Koller-Sahami", "MMR", "MMR best-of", "SVM"
SELECTORS = (IG, KS, MMR, BEST)
ROUNDING = 12  # decimals to which means agree that are equal by definition


@dataclass(frozen=True, eq=False)
class Accuracies:
    """Accuracies on the test documents of S splits, for K numbers of words, L learners and W values of lambda.

    Parameters
    ----------
    learners, sizes, relevance_weights : the names and values on the axes; weights ascending.
    all_words : shape (S, L): the learners on all words.
    svm : shape (S,): the support vector machine on all words.
    information_gain, koller_sahami : shape (S, K, L): on the words that these select.
    mmr : shape (S, W, K, L): on the words that MMR selects with each lambda.
    validated : the same shape: its accuracies by cross-validation on the training documents.
    test_ratio : test documents to training documents.
    """

    learners: tuple[str, ...]
    sizes: tuple[int, ...]
    relevance_weights: tuple[float, ...]
    all_words: FloatArray
    svm: FloatArray
    information_gain: FloatArray
    koller_sahami: FloatArray
    mmr: FloatArray
    validated: FloatArray
    test_ratio: float

    @cached_property
    def chosen(self) -> IntArray:
        """Which lambda cross-validation chooses, for each split, size and learner; shape (S, K, L)."""
        return _last_highest(self.validated, axis=1)

    @cached_property
    def best(self) -> IntArray:
        """Which lambda has the highest mean accuracy on the test documents themselves; shape (K, L)."""
        return _last_highest(self.mmr.mean(axis=0), axis=0)

    @cached_property
    def systems(self) -> Mapping[str, FloatArray]:
        """Each system's accuracies, shape (S, K, L); those on all words are the same for every size.

        MMR has the lambda that cross-validation chose, MMR best-of the one that is best on the test documents.
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
            learner: {ALL: float(self.all_words[:, place].mean())}
            | {
                f"{system}@{size}": float(self.systems[system][:, k, place].mean())
                for system in SELECTORS
                for k, size in enumerate(self.sizes)
            }
            for place, learner in enumerate(self.learners)
        }
        return means | {SVM: {ALL: float(self.svm.mean())}}

    def to_dict(self) -> dict[str, Any]:
        """All accuracies, by split, as JSON can hold them."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _last_highest(values: FloatArray, axis: int) -> IntArray:
    """The index of the highest value along an axis; of equal ones the last."""
    last: IntArray = values.shape[axis] - 1 - np.flip(np.round(values, ROUNDING), axis).argmax(axis)
    return last


@dataclass(frozen=True)
class Difference:
    """How much more accurate one system is than another over the splits: the mean, its t, and two-sided p."""

    mean: float
    t: float
    p: float


def corrected_t_test(differences: FloatArray, test_ratio: float) -> Difference:
    """The corrected resampled t-test that differences over random splits, shape (S,), S >= 2, are centred on 0.

    t = mean / sqrt((1/S + n_test/n_training) s^2), s^2 their variance (divisor S - 1), with S - 1 degrees of freedom.
    The plain paired test, without n_test/n_training, takes the splits for independent, though their training documents
    overlap, and finds far too many differences. Where all are equal p is 1 if they are 0, and 0 if not.

    Parameters
    ----------
    test_ratio : n_test / n_training.

    References
    ----------
    Nadeau and Bengio, Inference for the generalization error, Machine Learning 52, 2003.
    """
    from scipy.stats import t as student

    rounded = np.round(differences, ROUNDING)
    mean, variance = rounded.mean(), rounded.var(ddof=1)
    if np.ptp(rounded) == 0:
        return Difference(float(mean), 0.0 if mean == 0 else float(np.copysign(np.inf, mean)), float(mean == 0))
    t = mean / np.sqrt((1 / len(rounded) + test_ratio) * variance)
    return Difference(float(mean), float(t), float(2 * student.sf(abs(t), len(rounded) - 1)))
