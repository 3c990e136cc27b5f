"""Explanations as tables."""

from __future__ import annotations

import json

import pytest

from greylag.experiments.explanation_tables import comparison_of_documents, explanation_dict, explanation_table
from greylag.features.spelling import parse_feature
from greylag.ltr.explanation import CliqueShare, Explanation, FeatureShare


def clique(name: str, tf: int, contribution: float, times: float = 1.0) -> CliqueShare:
    return CliqueShare(tuple(name.split()), times, tf, 9, 5, contribution / 2, contribution)


def feature(name: str, *cliques: CliqueShare) -> FeatureShare:
    total = sum(c.contribution for c in cliques)
    return FeatureShare(parse_feature(name), 2.0, total / 2, total, cliques)


def explanation(docid: str, *features: FeatureShare) -> Explanation:
    return Explanation("q", docid, sum(share.contribution for share in features), features)


ONE = explanation(
    "a",
    feature("FI/term/LM", clique("new", 1, -3.0), clique("york", 0, -5.0), clique("city", 0, -1.0, 2.0)),
    feature("FI/term/BM25", clique("new", 1, 4.0)),
    feature("SD/ordered/BM25-O-1", clique("new york", 2, 1.0, 0.25)),
)
OTHER = explanation(
    "b",
    feature("FI/term/LM", clique("new", 3, -2.0), clique("york", 0, -5.0), clique("city", 0, -1.0, 2.0)),
    feature("FI/term/BM25", clique("new", 3, 9.0)),
    feature("SD/ordered/BM25-O-1", clique("new york", 0, 0.0, 0.25)),
)


def test_everything() -> None:
    table = explanation_table(ONE)
    assert [row[0] for row in table.rows] == [
        *("FI/term/LM", "  york", "  new", "  city (2 times)"),
        *("FI/term/BM25", "  new", "SD/ordered/BM25-O-1", "  new york (probability 0.25)", "score"),
    ]
    assert table.rows[2] == ("  new", -3.0, 2.0, -1.5, 1, 9, 5)
    assert table.rows[3][2] == 4.0  # feature weight x multiplicity
    assert table.rows[-1][1] == -4.0


def test_the_largest_with_what_is_absent_in_one_row() -> None:
    rows = explanation_table(ONE, top=1).rows
    assert [row[:2] for row in rows] == [
        ("FI/term/LM", -9.0),
        ("  new", -3.0),
        ("  2 cliques without occurrences", -6.0),
        ("2 more features", 5.0),
        ("score", -4.0),
    ]


def test_differences_of_two_documents() -> None:
    table = comparison_of_documents(ONE, OTHER)
    assert [row[:4] for row in table.rows] == [
        ("FI/term/BM25", -5.0, 4.0, 9.0),
        ("  new", -5.0, 4.0, 9.0),
        ("FI/term/LM", -1.0, -9.0, -8.0),
        ("  new", -1.0, -3.0, -2.0),
        ("SD/ordered/BM25-O-1", 1.0, 1.0, 0.0),
        ("  new york (probability 0.25)", 1.0, 1.0, 0.0),
        ("score", -5.0, -4.0, 1.0),
    ]
    assert table.rows[1][4:] == (1, 3)
    short = comparison_of_documents(ONE, OTHER, top=1).rows
    assert [row[:2] for row in short] == [
        ("FI/term/BM25", -5.0),
        ("  new", -5.0),
        ("2 more features", pytest.approx(0.0)),
        ("score", -5.0),
    ]


def test_figures_for_json() -> None:
    content = json.loads(json.dumps(explanation_dict(ONE)))
    assert content["features"][0]["feature"] == "FI/term/LM"
    assert content["features"][0]["cliques"][1] == {
        **{"terms": ["york"], "multiplicity": 1.0, "tf": 0, "cf": 9, "df": 5},
        **{"value": -2.5, "contribution": -5.0},
    }
