"""What the categorisation study shows: accuracies, tests of MMR's differences, and the curve over lambda."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from greylag.experiments.report import Figure, Section, Table, as_text, draw_figure
from greylag.ranking import FloatArray
from greylag_papers.lee_lee_2004.accuracies import (
    ALL,
    IG,
    KS,
    MMR,
    ROUNDING,
    SELECTORS,
    SVM,
    Accuracies,
    Difference,
    corrected_t_test,
)

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

LEVEL = 0.05
OTHERS = {IG: IG, KS: KS, ALL: "the learner on all words", SVM: "the linear SVM on all words"}

_ACCURACY = """\
MMR: for each split, learner and number of words, lambda is the one of highest accuracy by cross-validation on the
training documents; of equal ones the highest.

MMR best-of: lambda is the one of highest mean accuracy on the test documents themselves, as in the paper. It has seen
the answers, and cannot fall below IG where lambda = 1, which is IG's order, is among the choices. It is not tested."""
_TESTS = """

p is of the corrected resampled t-test (Nadeau & Bengio 2003), two-sided, with Holm's correction over the table. The
splits share training documents; the plain paired test would take them for independent, and p would be far too low."""


def sections(accuracies: Accuracies, documents: Mapping[str, int]) -> list[Section]:
    """The report's sections; `documents` are counts by what they are of."""
    counts = Table("What was read", ("", "number"), [[name, number] for name, number in documents.items()])
    tested = len(accuracies.svm) > 1
    return [
        Section("Documents", "A word is letters in a row, in lower case; none is stopped or stemmed.", [counts]),
        Section("Accuracy", _ACCURACY, [accuracy_table(accuracies)]),
        Section(
            "Differences",
            verdict(accuracies) + (_TESTS if tested else ""),
            [difference_table(accuracies)] if tested else [],
        ),
        Section("The relevance weight", parts=[weight_figure(accuracies), weight_table(accuracies)]),
    ]


def summary(accuracies: Accuracies) -> str:
    """Accuracies, and what they come to, for the terminal."""
    return f"{as_text(accuracy_table(accuracies))}\n{verdict(accuracies)}\n"


def verdict(accuracies: Accuracies) -> str:
    """In how many cases, a case being a learner and a number of words, MMR is at or above the others."""
    means = {system: np.round(values.mean(axis=0), ROUNDING) for system, values in accuracies.systems.items()}
    counts = [f"{name} in {np.count_nonzero(means[MMR] >= means[other])}" for other, name in OTHERS.items()]
    return f"Of {means[MMR].size} cases (learner and number of words) MMR is at or above {', '.join(counts)}."


def accuracy_table(accuracies: Accuracies) -> Table:
    """A row for each learner and system, a column for each number of words."""
    rows: list[list[str]] = []
    for place, learner in enumerate(accuracies.learners):
        for system in (ALL, *SELECTORS):
            by_size = accuracies.systems[system][:, :, place].T
            columns = [_spread(values) for values in (by_size[:1] if system == ALL else by_size)]
            rows.append([learner, system, *columns, *[""] * (len(by_size) - len(columns))])
    rows.append([SVM, ALL, _spread(accuracies.svm), *[""] * (len(accuracies.sizes) - 1)])
    n_splits = len(accuracies.svm)
    over = "one split" if n_splits == 1 else f"mean and standard deviation over {n_splits} splits"
    return Table(f"Accuracy in per cent: {over}", ("learner", "words", *_size_names(accuracies)), rows)


def difference_table(accuracies: Accuracies) -> Table:
    """MMR's accuracy minus another system's, with p corrected for the number of tests in the table."""
    from statsmodels.stats.multitest import multipletests

    found = differences(accuracies)
    corrected = multipletests([difference.p for difference in found.values()], method="holm")[1].tolist()
    cells = {
        key: f"{100 * difference.mean:+.2f} ({'<0.001' if p < 0.0005 else f'{p:.3f}'}){'*' if p < LEVEL else ''}"
        for (key, difference), p in zip(found.items(), corrected, strict=True)
    }
    rows = [
        [learner, other, *(cells[learner, other, size] for size in accuracies.sizes)]
        for learner in accuracies.learners
        for other in OTHERS
    ]
    caption = f"MMR minus another: points of per cent, and p; * below {LEVEL}"
    return Table(caption, ("learner", "minus", *_size_names(accuracies)), rows)


def differences(accuracies: Accuracies) -> dict[tuple[str, str, int], Difference]:
    """MMR's difference from each of `OTHERS`, by learner, other and number of words."""
    found = {}
    for place, learner in enumerate(accuracies.learners):
        for other in OTHERS:
            gains = (accuracies.systems[MMR] - accuracies.systems[other])[:, :, place]
            for k, size in enumerate(accuracies.sizes):
                found[learner, other, size] = corrected_t_test(gains[:, k], accuracies.test_ratio)
    return found


def weight_table(accuracies: Accuracies) -> Table:
    """Lambda as cross-validation chooses it, and as the test documents would have it."""
    weights = np.array(accuracies.relevance_weights)
    rows = [
        [
            learner,
            *(
                f"{weights[accuracies.chosen[:, k, place]].mean():.2f} / {weights[accuracies.best[k, place]]:.2f}"
                for k in range(len(accuracies.sizes))
            ),
        ]
        for place, learner in enumerate(accuracies.learners)
    ]
    caption = "Lambda: the mean of cross-validation's choices / the one that is best on the test documents"
    return Table(caption, ("learner", *_size_names(accuracies)), rows)


def weight_figure(accuracies: Accuracies) -> Figure:
    """Mean accuracy over lambda: a panel for each learner, a line for each number of words (the paper's Figure 1)."""
    caption = "Mean accuracy in per cent on the test documents over lambda; 1 is the order of information gain"

    def draw(canvas: Canvas) -> None:
        panels = canvas.subplots(2, -(-len(accuracies.learners) // 2), sharex=True).ravel()
        for place, (learner, axes) in enumerate(zip(accuracies.learners, panels, strict=True)):
            for k, name in enumerate(_size_names(accuracies)):
                means = 100 * accuracies.mmr[:, :, k, place].mean(axis=0)
                axes.plot(accuracies.relevance_weights, means, marker=".", color=f"C{k}", label=name)
            everything = np.full(len(means), 100 * accuracies.all_words[:, place].mean())
            axes.plot(accuracies.relevance_weights, everything, color="0.6", linestyle="--", label=ALL)
            axes.set_title(learner)
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
