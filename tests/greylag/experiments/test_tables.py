"""Tables of results as text, and the tables that studies share."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.evaluation import Scores, compare, parse_measure
from greylag.experiments import comparison_table, means, means_table
from greylag.experiments.tables import merge_scores
from greylag.tables import as_text


def scores(*values: tuple[float, float]) -> Scores:
    qids = tuple(str(qid) for qid in range(len(values)))
    return Scores((parse_measure("AP"), parse_measure("P@10")), qids, np.array(values), (), ())


def test_means_and_their_table() -> None:
    found = means({"a": scores((0.2, 0.5), (0.4, 0.7)), "b": scores((1.0, 0.0), (0.0, 0.0))})
    assert found == {"a": {"AP": pytest.approx(0.3), "P@10": pytest.approx(0.6)}, "b": {"AP": 0.5, "P@10": 0.0}}
    merged = merge_scores([found, {"b": {"S-recall@10": 0.9}, "c": {"AP": 0.1}}])
    assert merged["b"] == {"AP": 0.5, "P@10": 0.0, "S-recall@10": 0.9}
    assert list(merged) == ["a", "b", "c"]
    assert "S-recall@10" not in found["b"]
    table = means_table("Means", merged, decimals=1)
    assert as_text(table).splitlines() == [
        "Means",
        "    AP  P@10  S-recall@10",
        "a  0.3   0.6",
        "b  0.5   0.0          0.9",
        "c  0.1",
    ]


def test_a_row_for_each_comparison() -> None:
    runs = {
        "a": scores((0.2, 0.5), (0.4, 0.5)),
        "b": scores((0.5, 0.5), (0.4, 0.4)),
        "c": scores((0.1, 0.6), (0.3, 0.6)),
    }
    tests = [compare(runs, "a"), compare({name: runs[name] for name in "bc"}, "c")]
    table = comparison_table("Differences", *tests)
    assert [(*row[:3], *row[5:8]) for row in table.rows] == [
        ("b", "a", "AP", 1, 1, 0),
        ("b", "a", "P@10", 0, 1, 1),
        ("c", "a", "AP", 0, 0, 2),
        ("c", "a", "P@10", 2, 0, 0),
        ("b", "c", "AP", 2, 0, 0),
        ("b", "c", "P@10", 0, 0, 2),
    ]
    found = [c for test in tests for c in test.comparisons]
    assert [(row[4], row[8]) for row in table.rows] == [(c.corrected_p, c.p) for c in found]
    differences = ["+0.1500", "-0.0500", "-0.1000", "+0.1000", "+0.2500", "-0.1500"]
    stars = ["*" if c.corrected_p < 0.05 else "" for c in found]
    assert "*" in stars
    assert [row[3] for row in table.rows] == [f"{text}{star}" for text, star in zip(differences, stars, strict=True)]
    assert len(table.header) == len(table.rows[0])
