"""The mean score of like documents, against its formula."""

import numpy as np
import pytest

from greylag.base import Ranking
from greylag.features.extract import FeatureExtractor
from greylag.features.neighbours import NEIGHBOURS
from greylag.features.spelling import parse_feature
from greylag.index.positional import PositionalIndex

TEXTS = {f"d{n}": f"w{n % 7} w{n % 5} w{n % 11} w{n * n % 13} w{n % 3}" for n in range(NEIGHBOURS + 30)}
TEXTS |= {"alone": "only", "empty": ""}
INDEX = PositionalIndex.from_texts(TEXTS)


def ranking(seed, scale=1.0):
    rng = np.random.default_rng(seed)
    docids = rng.permutation(list(TEXTS)).tolist()
    return Ranking.sort("q", "w1", docids, scale * rng.normal(size=len(docids)))


def extract(ranked):
    values = FeatureExtractor(INDEX, (parse_feature("neighbours"),))(ranked)
    return np.asarray(values[:, 0])


@pytest.mark.parametrize("seed", range(5))
def test_value_is_the_mean_of_scores_weighted_by_the_squares_of_cosines(seed):
    ranked = ranking(seed)
    vectors = INDEX.tfidf(INDEX.documents(ranked.docids)).toarray()
    scores = (ranked.scores - ranked.scores.min()) / (ranked.scores.max() - ranked.scores.min())
    found = extract(ranked)
    for i, a in enumerate(vectors):
        weights = []
        for j, b in enumerate(vectors[:NEIGHBOURS]):
            length = np.linalg.norm(a) * np.linalg.norm(b)
            weights.append((a @ b / length) ** 2 if length > 0 and i != j else 0.0)
        expected = np.average(scores[:NEIGHBOURS], weights=weights if sum(weights) > 0 else None)
        assert found[i] == pytest.approx(expected, rel=1e-9)


def test_units_of_scores_do_not_count():
    """Neither overflow nor rounding: scores may be log probabilities or huge."""
    np.testing.assert_allclose(extract(ranking(2, 1e300)), extract(ranking(2)), rtol=1e-9)


def test_rankings_of_one_document_or_of_empty_ones_have_values():
    assert np.isfinite(extract(ranking(3).head(1))).all()
    np.testing.assert_array_equal(extract(Ranking.sort("q", "w1", ["empty"], [1.0])), [0.5])
