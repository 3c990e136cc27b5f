"""Counts of several rankings, against those of each ranking alone."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from greylag.features.counts import FeatureCounts
from greylag.features.evidence import Prior
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import EXPANSION, candidate_pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking
from tests.greylag.features.oracle import as_text, random_documents

QUERIES = ["cat dog", "", "cat dog pig cow cat", "unicorn", "pig", "cow cow"]


def test_rankings_together_have_the_values_of_each_alone(tmp_path: Path) -> None:
    rng = np.random.default_rng(8)
    documents = random_documents(rng, 60)
    index = PositionalIndex.from_texts({f"{i}": as_text(document) for i, document in enumerate(documents)})
    prior = tmp_path / "prior.tsv"
    prior.write_text("".join(f"{i}\t{i + 0.5}\n" for i in range(60)))
    others = parse_features("score@minmax,FI/term/LM@z,reciprocal-rank")
    features = (Prior(str(prior)), *others, *candidate_pool(), *EXPANSION)
    extractor = FeatureExtractor(index, features, FeatureParameters(mu=9.0))
    rankings = []
    for number, query in enumerate(QUERIES):
        docids = [f"{i}" for i in rng.permutation(60)[: 5 * number]] + ["lost"] * (number % 2)
        rankings.append(Ranking(f"q{number}", query, tuple(docids), np.zeros(len(docids))))
    counts = extractor.count(rankings)
    np.testing.assert_array_equal(counts.offsets, np.cumsum([0, *map(len, rankings)]))
    expected = np.concatenate([extractor(ranking) for ranking in rankings])
    assert extractor.weigh(counts).tobytes() == expected.tobytes()
    nested = FeatureCounts.join([extractor.count(rankings[:4]), extractor.count(rankings[4:])])
    assert extractor.weigh(nested).tobytes() == expected.tobytes()
