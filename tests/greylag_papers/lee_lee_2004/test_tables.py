"""Tables and figures of the categorisation study."""

from __future__ import annotations

import numpy as np
import pytest

from greylag_papers.lee_lee_2004.accuracies import (
    BEST,
    KS,
    MMR,
    OTHERS,
    accuracy_table,
    difference_table,
    sections,
    verdict,
    weight_figure,
    weight_table,
)
from tests.greylag_papers.lee_lee_2004.samples import WEIGHTS, accuracies


def test_accuracy_table_has_mean_and_deviation_in_per_cent():
    a = accuracies()
    table = accuracy_table(a)
    assert table.header == ("learner", "words", "5 words", "10 words")
    assert len(table.rows) == 2 * 5 + 1
    cells = {tuple(row[:2]): row[2:] for row in table.rows}
    values = 100 * a.systems[BEST][:, 1, 0]
    assert cells["one", BEST][1] == f"{values.mean():.2f} ± {values.std(ddof=1):.2f}"
    assert cells["SVM", "all words"] == [f"{100 * a.svm.mean():.2f} ± {100 * a.svm.std(ddof=1):.2f}", ""]


@pytest.mark.parametrize("seed", range(3))
def test_verdict_counts_cases_at_or_above(seed):
    a = accuracies(seed)
    means = a.means()
    at_or_above = sum(
        means[name][f"MMR@{k}"] >= means[name][f"{KS}@{k}"] - 1e-9 for name in a.learners for k in a.sizes
    )
    assert "Of 4 cases (learner and number of words) MMR is at or above IG in" in verdict(a)
    assert f"Koller-Sahami in {at_or_above}, all words in" in verdict(a)


def test_difference_table_has_differences_of_the_means():
    a = accuracies()
    means = a.means()
    cells = {tuple(row[:2]): row[3] for row in difference_table(a).rows}
    assert list(cells) == [(learner, other) for learner in a.learners for other in OTHERS]
    gain = means["two"]["MMR@10"] - means["two"]["all words"]
    assert cells["two", "all words"].startswith(f"{100 * gain:+.2f} (")


def test_weight_table_has_chosen_and_best_lambda():
    a = accuracies()
    assert weight_table(a).rows == [
        [
            learner,
            *(
                f"{np.mean([WEIGHTS[w] for w in a.chosen[:, k, i]]):.2f} / {WEIGHTS[a.best[k, i]]:.2f}"
                for k in range(2)
            ),
        ]
        for i, learner in enumerate(a.learners)
    ]


def test_weight_figure_has_a_panel_for_each_learner():
    names = ("one", "two", "three", "four", "five")
    svg = weight_figure(accuracies(learners=names)).svg
    assert all(f">{name}<" in svg for name in (*names, "5 words", "all words", "SVM"))


def test_one_split_has_no_deviations_and_no_tests():
    one = accuracies(splits=1)
    assert not any("±" in cell for row in accuracy_table(one).rows for cell in row)
    by_title = {section.title: section for section in sections(one, {"x": 3})}
    assert by_title["Differences"].parts == []
    assert "Nadeau" not in by_title["Differences"].text
    several = {section.title: section for section in sections(accuracies(), {"x": 3})}
    assert "Nadeau & Bengio" in several["Differences"].text
    assert several["Documents"].parts[0].rows == [("x", 3)]
    assert MMR in several["Accuracy"].text
