"""MMR against its definition."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.diversity import MMR
from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking
from greylag.vectors import ArrayVectors
from greylag.vectors.protocol import unit_rows

WORDS = ["cat", "dog", "pig", "cow", "hen"]


def collection(seed: int, n: int) -> PositionalIndex:
    rng = np.random.default_rng(seed)
    return PositionalIndex.from_texts({f"d{i}": " ".join(rng.choice(WORDS, size=rng.integers(0, 6))) for i in range(n)})


def plain_mmr(index: PositionalIndex, ranking: Ranking, weight: float, depth: int, k: int) -> list[str]:
    """Carbonell & Goldstein's formula, computed anew for every pick."""
    n = min(depth, len(ranking))
    vectors = index.tfidf(index.documents(ranking.docids[:n])).toarray()
    scores = ranking.scores[:n]
    spread = scores.max() - scores.min() if n else 0
    relevance = (scores - scores.min()) / spread if spread else np.zeros(n)
    picked: list[int] = []
    while len(picked) < min(k, n):

        def value(i: int) -> float:
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
def test_equals_the_formula_and_is_a_permutation(
    seed: int, n: int, weight: float, k: int, depth: int, tied: bool
) -> None:
    index = collection(seed, max(n, 1))
    rng = np.random.default_rng(seed)
    scores = np.sort(rng.integers(3, size=n).astype(float) if tied else rng.standard_normal(n))[::-1]
    ranking = Ranking("q", "", tuple(f"d{i}" for i in rng.permutation(n)), scores)
    result = MMR(index, relevance_weight=weight, depth=depth, k=k)(ranking)
    assert sorted(result.docids) == sorted(ranking.docids)
    assert list(result.docids) == plain_mmr(index, ranking, weight, depth, k)


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    weight=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    k=st.integers(1, 15),
    dtype=st.sampled_from(["f4", "f8"]),
)
def test_dense_vectors_equal_the_formula(seed: int, n: int, weight: float, k: int, dtype: str) -> None:
    """With negative cosines, a zero vector, and vectors of any length."""
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((n, 3)) * rng.integers(0, 3, (n, 1))).astype(dtype)
    ranking = Ranking("q", "", tuple(f"d{i}" for i in range(n)), np.sort(rng.standard_normal(n))[::-1])
    result = MMR(vectors=ArrayVectors(ranking.docids, rows), relevance_weight=weight, k=k)(ranking)
    unit = unit_rows(rows)
    spread = np.ptp(ranking.scores)
    relevance = (ranking.scores - ranking.scores.min()) / spread if spread else np.zeros(n)
    picked: list[int] = []
    while len(picked) < min(k, n):
        closest = (unit @ unit[picked].T).max(axis=1) if picked else np.zeros(n)
        value = weight * relevance - (1 - weight) * closest
        value[picked] = -np.inf
        picked.append(int(np.argmax(value >= value.max() - 1e-10)))
    assert [int(d[1:]) for d in result.docids] == picked + [i for i in range(n) if i not in picked]


def test_dense_and_sparse_vectors_agree() -> None:
    index = collection(3, 40)
    ranking = Ranking("q", "", tuple(f"d{i}" for i in range(40)), np.linspace(3, 1, 40))
    dense = index.tfidf(index.documents(ranking.docids)).toarray()
    assert MMR(vectors=ArrayVectors(ranking.docids, dense))(ranking) == MMR(index)(ranking)


def test_weight_one_keeps_the_order() -> None:
    index = collection(1, 30)
    ranking = Ranking("q", "", tuple(f"d{i}" for i in range(30)), np.linspace(3, 1, 30))
    assert MMR(index, relevance_weight=1.0, depth=30, k=30)(ranking).docids == ranking.docids


def test_weight_zero_defers_duplicates() -> None:
    index = PositionalIndex.from_texts({"a": "cat dog", "b": "cat dog", "c": "pig cow", "d": "hen"})
    ranking = Ranking("q", "", ("a", "b", "c", "d"), np.array([4.0, 3, 2, 1]))
    assert MMR(index, relevance_weight=0.0)(ranking).docids == ("a", "c", "d", "b")


@pytest.mark.parametrize(
    "options", [{"relevance_weight": 1.1}, {"relevance_weight": float("nan")}, {"k": 0}, {"depth": 0}]
)
def test_bad_options(options: dict[str, float]) -> None:
    with pytest.raises(ParameterError):
        MMR(collection(1, 3), **options)  # type: ignore[arg-type]
