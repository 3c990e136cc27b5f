"""Objectives, compared with pytrec_eval and the published algorithm for ERR."""

from __future__ import annotations

import numpy as np
import pytest
import pytrec_eval

from greylag.errors import ParameterError
from greylag.evaluation.measures import parse_measure
from greylag.ltr.data import RankingData
from greylag.ltr.objectives import MEASURES, Objective
from tests.greylag.ltr.randomdata import random_data


def qrels_of(data: RankingData) -> dict[str, dict[str, int]]:
    """Judgements of the ranked documents, and one unretrieved document for each remaining grade."""
    qrels = {}
    for i, qid in enumerate(data.qids):
        rows = range(data.offsets[i], data.offsets[i + 1])
        qrels[qid] = {data.docids[row]: int(data.grades[row]) for row in rows}
        left = data.relevant_grades[i].tolist()
        for grade in qrels[qid].values():
            if grade > 0:
                left.remove(grade)
        qrels[qid] |= {f"lost{j}": grade for j, grade in enumerate(left)}
    return qrels


@pytest.mark.parametrize(
    ("objective", "measure"),
    [
        ("AP", "map"),
        ("AP@5", "map_cut_5"),
        ("nDCG", "ndcg"),
        ("nDCG@5", "ndcg_cut_5"),
        ("nDCG@10", "ndcg_cut_10"),
        ("RR", "recip_rank"),
        ("P@5", "P_5"),
    ],
)
@pytest.mark.parametrize("levels", [None, 2, 4])
def test_equals_trec_eval(objective: str, measure: str, levels: int | None) -> None:
    for seed in range(40):
        data = random_data(seed, levels=levels)
        run = {
            qid: {data.docids[row]: float(data.features[row, 0]) for row in range(data.offsets[i], data.offsets[i + 1])}
            for i, qid in enumerate(data.qids)
        }
        scored = pytrec_eval.RelevanceEvaluator(qrels_of(data), {measure}).evaluate(run)
        expected = [scored[qid][measure] for qid in data.qids]
        ours = Objective.parse(objective).evaluate(data, data.features[:, 0])
        np.testing.assert_allclose(ours, expected, atol=1e-9, rtol=0)


def err(grades: list[int], cutoff: int, max_grade: int) -> float:
    """Chapelle et al. (2009), Algorithm 2, as printed."""
    chance, total = 1.0, 0.0
    for rank, grade in enumerate(grades[:cutoff], 1):
        stop = (2 ** max(grade, 0) - 1) / 2**max_grade
        total += chance * stop / rank
        chance *= 1 - stop
    return total


@pytest.mark.parametrize("cutoff", [1, 3, 20])
def test_err_is_the_published_algorithm(cutoff: int) -> None:
    for seed in range(40):
        data = random_data(seed, levels=5)
        ours = Objective("ERR", cutoff, max_grade=4).evaluate(data, data.features[:, 0])
        for i, value in enumerate(ours):
            rows = np.arange(data.offsets[i], data.offsets[i + 1])
            order = rows[np.argsort(-data.features[rows, 0], kind="stable")]
            assert value == pytest.approx(err(data.grades[order].tolist(), cutoff, 4), abs=1e-12)


@pytest.mark.parametrize(
    ("text", "spelt"),
    [
        ("map", "AP"),
        ("ap", "AP"),
        ("rr", "RR"),
        ("rr.10", "RR@10"),
        ("map_cut_5", "AP@5"),
        ("ndcg", "nDCG"),
        ("ndcg_cut_10", "nDCG@10"),
        ("nDCG@10", "nDCG@10"),
        ("recip_rank", "RR"),
        ("P_30", "P@30"),
        ("ERR@20", "ERR@20"),
    ],
)
def test_spellings(text: str, spelt: str) -> None:
    assert str(Objective.parse(text)) == spelt
    assert Objective.parse(spelt) == Objective.parse(text) == Objective.parse(Objective.parse(text))
    assert str(parse_measure(text)) == spelt


def test_every_objective_is_a_measure() -> None:
    for name in MEASURES:
        assert str(parse_measure(f"{name}@10")) == str(Objective.parse(f"{name}@10")) == f"{name}@10"


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("MAPP", "unknown measure 'MAPP'; did you mean AP"),
        ("P", "needs a cut-off, as in P@10"),
        ("nDCG@0", "cut-off must be between 1 and"),
        ("Rprec", "'Rprec' cannot be optimised"),
    ],
)
def test_invalid_objectives(text: str, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        Objective.parse(text)


def test_max_grade_below_the_judgements() -> None:
    with pytest.raises(ParameterError, match="judgements reach 3"):
        Objective("ERR", 20, max_grade=2).evaluate(random_data(1), random_data(1).features[:, 0])


@pytest.mark.parametrize(
    ("name", "cutoff", "reason"),
    [("MAP", None, "use one of AP, nDCG"), ("P", None, "as in P@10"), ("AP", 0, "at least 1")],
)
def test_invalid_fields(name: str, cutoff: int | None, reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        Objective(name, cutoff)
