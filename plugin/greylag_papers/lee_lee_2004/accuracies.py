"""Accuracies on the test documents, the choice of lambda, a test of differences, and their tables and figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.special import nctdtrinc
from scipy.stats import t as student

from greylag.evaluation import holm
from greylag.experiments import Figure, Section, Table, draw_figure
from greylag.ranking import FloatArray, IntArray
from greylag_papers.texts import read_texts

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas


ALL, IG, KS, MMR, BEST, SVM = "all words", "IG", "Koller-Sahami", "MMR", "MMR best-of", "SVM"
SELECTORS = (IG, KS, MMR, BEST)
OTHERS = (IG, KS, ALL, SVM)  # compared with MMR
LEVEL, POWER = 0.05, 0.8
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
            | {f"{what}@{size}": value for k, size in enumerate(self.sizes) for what, value in self._details(k, i)}
            for i, learner in enumerate(self.learners)
        }
        return means | {SVM: {ALL: float(self.svm.mean())}}

    def _details(self, k: int, i: int) -> list[tuple[str, float]]:
        """The best lambda on the test documents, and the range of the means over IG, Koller-Sahami and MMR."""
        means = [float(self.systems[name][:, k, i].mean()) for name in (IG, KS, MMR)]
        return [("best lambda", self.relevance_weights[self.best[k, i]]), ("range", max(means) - min(means))]

    def claims(self) -> dict[str, dict[str, float]]:
        """MMR beside other systems, a row for each learner and number of words; p has Holm's correction over all."""
        tests = differences(self)
        corrected = holm([difference.p for difference in tests.values()]).tolist()
        rows = {}
        for ((learner, other, size), difference), p in zip(tests.items(), corrected, strict=True):
            mine = float(self.systems[MMR][:, self.sizes.index(size), self.learners.index(learner)].mean())
            rows[f"MMR / {other}, {learner}@{size}"] = {
                "mean": mine,
                "against": mine - difference.mean,
                "p": p,
                "detectable": difference.detectable,
                "n": len(self.svm),
            }
        return rows

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
    detectable: float  # the least difference that the test finds with 80 % power at 0.05, before any correction


def corrected_t_test(differences: FloatArray, test_ratio: float) -> Difference:
    """The corrected resampled t-test of a zero mean difference (Nadeau & Bengio, Machine Learning 52, 2003).

    t = mean / sqrt((1/S + n_test / n_training) s^2), where s^2 is the variance with divisor S - 1; S - 1 degrees of
    freedom. The plain paired test (without n_test / n_training) assumes independent splits. Their training documents
    overlap, so it finds far too many differences. If all differences are equal, p is 1 if they are 0, and 0 otherwise.
    """
    rounded = np.round(differences, DECIMALS)
    mean, variance = rounded.mean(), rounded.var(ddof=1)
    if np.ptp(rounded) == 0:
        return Difference(float(mean), 0.0 if mean == 0 else float(np.copysign(np.inf, mean)), float(mean == 0), 0.0)
    error, freedom = np.sqrt((1 / len(rounded) + test_ratio) * variance), len(rounded) - 1
    shift = nctdtrinc(freedom, 1 - POWER, student.isf(LEVEL / 2, freedom))
    t = mean / error
    return Difference(float(mean), float(t), float(2 * student.sf(abs(t), freedom)), float(shift * error))


def differences(accuracies: Accuracies) -> dict[tuple[str, str, int], Difference]:
    """MMR's difference from each of `OTHERS`, by learner, other system and number of words."""
    tests = {}
    for i, learner in enumerate(accuracies.learners):
        for other in OTHERS:
            gains = (accuracies.systems[MMR] - accuracies.systems[other])[:, :, i]
            for k, size in enumerate(accuracies.sizes):
                tests[learner, other, size] = corrected_t_test(gains[:, k], accuracies.test_ratio)
    return tests


_TEXTS = read_texts(__file__)


def sections(accuracies: Accuracies, documents: Mapping[str, int]) -> list[Section]:
    """The sections of the report."""
    counts = Table("Input", ("", "number"), list(documents.items()))
    tests = [difference_table(accuracies)] if len(accuracies.svm) > 1 else []
    return [
        Section("Documents", "Words are runs of letters, lower-cased, without stop list or stemming.", [counts]),
        Section("Accuracy", _TEXTS["accuracy"], [accuracy_table(accuracies)]),
        Section("Differences", verdict(accuracies) + ("\n\n" + _TEXTS["tests"] if tests else ""), tests),
        Section("The relevance weight", parts=[weight_figure(accuracies), weight_table(accuracies)]),
    ]


def verdict(accuracies: Accuracies) -> str:
    """The number of cases (learner and number of words) in which MMR is at least as accurate as the others."""
    means = {system: np.round(values.mean(axis=0), DECIMALS) for system, values in accuracies.systems.items()}
    counts = [f"{other} in {np.count_nonzero(means[MMR] >= means[other])}" for other in OTHERS]
    return f"Of {means[MMR].size} cases (learner and number of words) MMR is at or above {', '.join(counts)}."


def accuracy_table(accuracies: Accuracies) -> Table:
    """A row for each learner and system, a column for each number of words."""
    blank = [""] * (len(accuracies.sizes) - 1)
    rows: list[list[str]] = []
    for i, learner in enumerate(accuracies.learners):
        rows.append([learner, ALL, _spread(accuracies.all_words[:, i]), *blank])
        rows += [[learner, name, *map(_spread, accuracies.systems[name][:, :, i].T)] for name in SELECTORS]
    rows.append([SVM, ALL, _spread(accuracies.svm), *blank])
    n_splits = len(accuracies.svm)
    over = "one split" if n_splits == 1 else f"mean and standard deviation over {n_splits} splits"
    return Table(f"Accuracy in per cent: {over}", ("learner", "words", *_size_names(accuracies)), rows)


def difference_table(accuracies: Accuracies) -> Table:
    """MMR's accuracy minus another system's, with p corrected for the number of tests in the table."""
    tests = differences(accuracies)
    corrected = holm([difference.p for difference in tests.values()]).tolist()
    cells = {
        key: f"{100 * difference.mean:+.2f} ({'<0.001' if p < 0.0005 else f'{p:.3f}'}){'*' if p < LEVEL else ''}"
        for (key, difference), p in zip(tests.items(), corrected, strict=True)
    }
    rows = [
        [learner, other, *(cells[learner, other, size] for size in accuracies.sizes)]
        for learner in accuracies.learners
        for other in OTHERS
    ]
    caption = f"MMR minus another system: percentage points (p); * p < {LEVEL}"
    return Table(caption, ("learner", "minus", *_size_names(accuracies)), rows)


def weight_table(accuracies: Accuracies) -> Table:
    """Lambda by cross-validation and on the test documents."""
    weights = np.array(accuracies.relevance_weights)
    chosen, best = weights[accuracies.chosen].mean(axis=0), weights[accuracies.best]
    rows = [
        [learner, *(f"{mean:.2f} / {top:.2f}" for mean, top in zip(chosen[:, i], best[:, i], strict=True))]
        for i, learner in enumerate(accuracies.learners)
    ]
    caption = "Lambda: mean of cross-validation's choices / best on the test documents"
    return Table(caption, ("learner", *_size_names(accuracies)), rows)


def weight_figure(accuracies: Accuracies) -> Figure:
    """Mean accuracy over lambda: a panel for each learner, a line for each number of words (the paper's Figure 1).

    Dashed lines are all words: the learner's own, and the linear support vector machine's.
    """
    caption = "Mean accuracy in per cent on the test documents over lambda; 1 is the order of information gain"

    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(2, -(-len(accuracies.learners) // 2), sharex=True).ravel()
        for i, (learner, axes) in enumerate(zip(accuracies.learners, panels, strict=False)):
            for k, name in enumerate(_size_names(accuracies)):
                means = 100 * accuracies.mmr[:, :, k, i].mean(axis=0)
                axes.plot(accuracies.relevance_weights, means, marker=".", color=f"C{k}", label=name)
            for name, values, color in ((ALL, accuracies.all_words[:, i], "0.6"), (SVM, accuracies.svm, "black")):
                level = np.full(len(means), 100 * values.mean())
                axes.plot(accuracies.relevance_weights, level, color=color, linestyle="--", label=name)
            axes.set_title(learner)
        for empty in panels[len(accuracies.learners) :]:
            empty.set_axis_off()
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside right upper")
        canvas.supxlabel("relevance weight lambda")
        canvas.supylabel("accuracy, per cent")

    return draw_figure(caption, draw, height=5.0)


def _spread(values: FloatArray) -> str:
    """Mean and standard deviation (divisor S - 1) of accuracies, in per cent."""
    deviation = f" ± {100 * values.std(ddof=1):.2f}" if len(values) > 1 else ""
    return f"{100 * values.mean():.2f}{deviation}"


def _size_names(accuracies: Accuracies) -> list[str]:
    return [f"{size} words" for size in accuracies.sizes]
