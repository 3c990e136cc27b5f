"""Random runs and judgements, and the package whose measures are compared."""

import sys

import numpy as np
import pytest

from greylag.base import Ranking, Run


def ir_measures():
    """The package; a test is skipped without it."""
    if sys.version_info >= (3, 14):
        pytest.skip("ir_measures 0.4.3 reads names by ast.Num, which Python 3.14 lacks")
    return pytest.importorskip("ir_measures", reason="needs ir_measures")


def random_case(rng, relevant=0.4):
    """Rankings with tied scores, graded judgements, unretrieved documents, and queries without a counterpart."""
    docids = [f"d{i:02}" for i in range(60)]
    qrels = {}
    for q in range(12):
        judged = rng.choice(docids, 30, replace=False).tolist()
        grades = np.where(rng.random(30) < relevant, rng.integers(1, 4, 30), rng.integers(-1, 1, 30))
        qrels[f"q{q}"] = dict(zip(judged, grades.tolist(), strict=True))
    qids = [f"q{q}" for q in rng.permutation(14)[:11]]
    lengths = rng.integers(0, 50, len(qids))
    rankings = [
        Ranking(qid, "", rng.permutation(docids)[:n].tolist(), -np.sort(rng.integers(0, 9, n)).astype(float))
        for qid, n in zip(qids, lengths, strict=True)
    ]
    return Run(tuple(rankings)), qrels


def random_subtopic_case(rng):
    """Rankings and judgements by subtopic, with grades from 0 to 2."""
    qrels = {}
    for q in range(8):
        grades = rng.integers(-3, 3, (int(rng.integers(1, 7)), 40))
        qrels[f"q{q}"] = {
            str(s + 1): {f"d{i}": int(g) for i, g in enumerate(row) if g >= 0} for s, row in enumerate(grades)
        }
    rankings = []
    for q in range(7):
        docids = rng.permutation([f"d{i}" for i in range(50)])[: rng.integers(1, 50)].tolist()
        rankings.append(Ranking(f"q{q}", "", docids, np.arange(len(docids), 0.0, -1.0)))
    return Run(tuple(rankings)), qrels
