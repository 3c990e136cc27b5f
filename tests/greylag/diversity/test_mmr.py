"""MMR against its definition."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.diversity import MMR
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking

WORDS = ["cat", "dog", "pig", "cow", "hen"]


def collection(seed, n):
    rng = np.random.default_rng(seed)
    return PositionalIndex.from_texts({f"d{i}": " ".join(rng.choice(WORDS, size=rng.integers(0, 6))) for i in range(n)})


def plain_mmr(index, ranking, weight, depth, k):
    """Carbonell & Goldstein's formula, computed anew for every pick."""
    n = min(depth, len(ranking))
    vectors = index.tfidf(index.documents(ranking.docids[:n])).toarray()
    scores = ranking.scores[:n]
    spread = scores.max() - scores.min() if n else 0
    relevance = (scores - scores.min()) / spread if spread else np.zeros(n)
    picked = []
    while len(picked) < min(k, n):

        def value(i):
            return weight * relevance[i] - (1 - weight) * max([0.0, *(vectors[i] @ vectors[j] for j in picked)])

        left = [i for i in range(n) if i not in picked]
        best = max(value(i) for i in left)
        picked.append(next(i for i in left if value(i) >= best - 1e-12))
    return [ranking.docids[i] for i in picked] + [d for i, d in enumerate(ranking.docids) if i not in picked]


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 12),
    weight=st.sampled_from([0.0, 0.3, 0.5, 0.7, 1.0]),
    k=st.integers(1, 15),
    depth=st.integers(1, 15),
    tied=st.booleans(),
)
def test_equals_the_formula_and_is_a_permutation(seed, n, weight, k, depth, tied):
    index = collection(seed, max(n, 1))
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.integers(3, size=n).astype(float) if tied else rng.standard_normal(n))[::-1]
    ranking = Ranking("q", "", tuple(f"d{i}" for i in rng.permutation(n)), scores)
    result = MMR(index, relevance_weight=weight, depth=depth, k=k)(ranking)
    assert sorted(result.docids) == sorted(ranking.docids)
    assert list(result.docids) == plain_mmr(index, ranking, weight, depth, k)


def test_weight_zero_defers_duplicates():
    index = PositionalIndex.from_texts({"a": "cat dog", "b": "cat dog", "c": "pig cow", "d": "hen"})
    ranking = Ranking("q", "", ("a", "b", "c", "d"), np.array([4.0, 3, 2, 1]))
    assert MMR(index, relevance_weight=0.0)(ranking).docids == ("a", "c", "d", "b")
