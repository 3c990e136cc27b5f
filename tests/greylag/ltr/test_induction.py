"""Products that are generated from data, and models that use them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.spelling import parse_features
from greylag.index.positional import PositionalIndex
from greylag.ltr.explanation import explain
from greylag.ltr.extraction import training_data
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.induction import add_products
from greylag.ltr.linear import LinearModel
from greylag.ltr.rankers import MRFRanker
from greylag.ltr.training import train_on_data
from greylag.ranking import Ranking

WORDS = "cat dog pig cow hen".split()
RNG = np.random.default_rng(4)
INDEX = PositionalIndex.from_texts({f"d{i}": " ".join(RNG.choice(WORDS, RNG.integers(1, 12))) for i in range(60)})
SPECS = parse_features("FI/term/BM25,FI/term/LM,SD/ordered/BM25-O-2,SD/unordered/LM-U-4,score@minmax")


def ranking(qid: str) -> Ranking:
    rng = np.random.default_rng(int(qid))
    docids = tuple(f"d{i}" for i in rng.permutation(60)[:30])
    return Ranking(qid, " ".join(rng.choice(WORDS, 2, replace=False)), docids, np.arange(30.0, 0, -1))


RANKINGS = [ranking(str(number)) for number in range(8)]
QRELS = {r.qid: dict.fromkeys(r.docids[:: 3 + int(r.qid) % 3], 1) for r in RANKINGS}
DATA = training_data(RANKINGS, QRELS, FeatureExtractor(INDEX, SPECS))


def test_columns_are_those_that_the_extractor_computes() -> None:
    found = add_products(DATA, (0, 2, 3, 4))
    assert found.names == (
        *DATA.names,
        "product:(FI/term/BM25@minmax*SD/ordered/BM25-O-2@minmax)",
        "product:(FI/term/BM25@minmax*SD/unordered/LM-U-4@minmax)",
        "product:(SD/ordered/BM25-O-2@minmax*SD/unordered/LM-U-4@minmax)",
    )
    again = training_data(RANKINGS, QRELS, FeatureExtractor(INDEX, found.specs))  # type: ignore[arg-type]
    assert found.features.tolist() == again.features.tolist()
    assert found.features[:, : len(SPECS)].tolist() == DATA.features.tolist()


def test_products_that_are_there_are_not_added_again() -> None:
    once = add_products(DATA, (0, 1))
    assert add_products(once, (0, 1)).names == once.names
    assert add_products(DATA, (0,)).names == DATA.names


def test_finds_a_conjunction() -> None:
    """Where documents are relevant that have both of two features, their product is selected first."""
    both = add_products(DATA, (0, 3))
    column = len(SPECS)
    grades = np.zeros(len(both.docids), dtype=np.int64)
    for first, end in zip(both.offsets[:-1], both.offsets[1:], strict=True):
        grades[first + np.argsort(-both.features[first:end, column], kind="stable")[:5]] = 1
    data = replace(both, grades=grades, relevant_grades=tuple(np.ones(5, dtype=np.int64) for _ in both.qids))
    selection = GreedySelection("AP").fit(data)
    assert selection.columns[0] == column
    assert selection.training_scores[0] == pytest.approx(1.0)


def test_models_of_products_rank_and_explain(tmp_path: Path) -> None:
    data = add_products(DATA, (0, 1, 2, 3))
    chosen = data.select_features([0, *range(len(SPECS), len(data.specs))])
    train_on_data(chosen, GreedySelection("AP", max_features=3)).save(tmp_path / "model.json")
    model = LinearModel.load(tmp_path / "model.json")
    assert any(str(feature).startswith("product:") for feature in model.features)
    columns = [data.specs.index(feature) for feature in model.features]
    for number, own in enumerate(RANKINGS):
        rows = slice(data.offsets[number], data.offsets[number + 1])
        expected = own.rescore(data.features[rows][:, columns] @ np.array(model.weights))
        ranked = MRFRanker(model, INDEX)(own)
        assert ranked.scores == pytest.approx(expected.scores, abs=1e-12)
        found = explain(model, INDEX, own, ranked.docids[3])
        assert sum(share.contribution for share in found.features) == pytest.approx(ranked.scores[3], abs=1e-9)


def test_features_of_a_file_cannot_be_multiplied() -> None:
    data = replace(DATA, specs=("a", "b", *DATA.specs[2:]))
    with pytest.raises(ParameterError, match="feature 'a' is known by name only"):
        add_products(data, (0, 1))
    assert len(add_products(data, (2, 3)).names) == len(SPECS) + 1
