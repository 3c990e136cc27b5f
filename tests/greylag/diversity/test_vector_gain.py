"""MMR, MSD and DPP over vectors against their definitions.

Tests `dpp`, `mmr`, `msd` and `sparse_cosines`.
"""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from greylag.base import Ranking, unit_range
from greylag.base.greedy import greedy_path
from greylag.diversity import DPP, MMR, MSD
from greylag.diversity.dpp import LogDeterminant
from greylag.diversity.mmr import MarginalRelevance
from greylag.diversity.msd import DistanceSum
from greylag.diversity.vector_gain import exact_rows
from greylag.index import ArrayVectors
from greylag.index.positional import PositionalIndex
from greylag.index.vectors.protocol import unit_rows

STAGES = {"mmr": MMR, "msd": MSD, "dpp": DPP}
WORDS = ["cat", "dog", "pig", "cow", "hen"]
GAINS = {"mmr": MarginalRelevance, "msd": DistanceSum, "dpp": LogDeterminant}


def log_residual(units, candidate, picked):
    """The logarithm of det S of the picks and the candidate, over that of the picks that are independent."""
    independent = []
    for pick in picked:
        if ratio(units, pick, independent) > 1e-6:
            independent.append(pick)
    return float(np.log(max(ratio(units, candidate, independent), 1e-6)))


def ratio(units, candidate, picked):
    """Determinants, by brute force."""
    cosines = units @ units.T
    both = [*picked, candidate]
    return float(np.linalg.det(cosines[np.ix_(both, both)]) / np.linalg.det(cosines[np.ix_(picked, picked)]))


def plain(method, units, relevance, w, k):
    """The picks and their gains by the formulas of the stages."""
    picked = []
    gains = []
    while len(picked) < min(k, len(units)):

        def gain(i):
            cosines = units[picked] @ units[i]
            worth = {
                "mmr": lambda: -cosines.max() if picked else 0.0,
                "msd": (1.0 - cosines).sum,
                "dpp": lambda: log_residual(units, i, picked),
            }[method]()
            return float(w * relevance[i] + (1 - w) * worth)

        values = {i: gain(i) for i in range(len(units)) if i not in picked}
        picked.append(next(i for i, value in values.items() if value >= max(values.values()) - 1e-8))
        gains.append(values[picked[-1]])
    return picked, gains


@pytest.mark.parametrize("method", STAGES)
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 12),
    m=st.integers(1, 12),
    w=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    k=st.integers(1, 12),
    alike=st.booleans(),
)
def test_equals_the_formula(method, seed, n, m, w, k, alike):
    """With negative cosines, equal vectors, a zero vector, and vectors of any length; dense, filtered and sparse."""
    rng = np.random.default_rng(seed)
    rows = rng.standard_normal((n, m)) * rng.integers(1, 4, (n, 1))
    if alike:
        rows[n // 2], rows[-1] = 3 * rows[0], 0.0
    relevance, units = np.sort(rng.random(n))[::-1], unit_rows(rows)
    expected, gains = plain(method, units, relevance, w, k)
    for vectors in (rows, csr_matrix(units)):
        picks, found = greedy_path(GAINS[method](relevance, vectors, w), k)
        assert picks.tolist() == expected
        assert found == pytest.approx(gains, abs=1e-6)


@pytest.mark.parametrize("spread", [2.0, 1e-3, 1e-5])
def test_cosines_are_added_without_error(spread):
    """So the number of BLAS's threads, and the order in which they add, changes no pick."""
    rng = np.random.default_rng(1)
    rows = (rng.standard_normal(500) + spread * rng.standard_normal((40, 500))).astype(np.float32)
    rows[20:25], rows[30] = rows[:5], 0.0
    units = exact_rows(rows)
    gain = MarginalRelevance(np.zeros(40), rows, 0.5)
    np.testing.assert_allclose(units, unit_rows(rows), rtol=0, atol=2.0**-27)
    for candidate in (0, 7, 30):
        exact = [math.fsum(row * units[candidate]) for row in units]
        assert gain.cosines(candidate).tolist() == exact


def in_full(method, rows, relevance, w, k):
    """The picks by the gains of all candidates in each turn, in float64 with exact cosines."""
    units = exact_rows(rows)
    cosines = units @ units.T
    squares = np.diag(cosines).copy()
    distances, factor, basis = squares.copy(), np.zeros((0, len(rows))), list[int]()
    picked = []
    while len(picked) < min(k, len(rows)):
        if method == "dpp":
            gains = np.log(np.maximum(distances / np.where(squares > 0, squares, 1.0), 1e-6))
        elif not picked:
            gains = np.zeros(len(rows))
        else:
            gains = -cosines[picked].max(axis=0) if method == "mmr" else (1 - cosines[picked]).sum(axis=0)
        gains = w * relevance + (1 - w) * gains
        gains[picked] = -np.inf
        best = int((gains >= gains.max() - 1e-12).argmax())
        picked.append(best)
        if method == "dpp" and distances[best] > 1e-6:
            row = (cosines[best] - factor[:, best] @ factor) / math.sqrt(distances[best])
            factor, distances = np.vstack([factor, row]), distances - row * row
            basis.append(best)
    return picked


@pytest.mark.parametrize("method", STAGES)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(1, 150),
    m=st.integers(1, 60),
    w=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    k=st.sampled_from([1, 5, 40, 150]),
    copies=st.sampled_from([0.0, 0.3, 0.9]),
    levels=st.sampled_from([1, 3, 1000]),
    common=st.sampled_from([0.0, 1.0, 30.0]),
    gains_matter=st.booleans(),
    zero=st.booleans(),
)
def test_picks_are_those_of_all_gains(method, dtype, seed, n, m, w, k, copies, levels, common, gains_matter, zero):
    """With ties: equal vectors, a zero vector, and few different scores; and with vectors that are nearly alike."""
    rng = np.random.default_rng(seed)
    rows = (rng.standard_normal((n, m)) + common * rng.standard_normal(m)) * rng.uniform(0.1, 10.0, (n, 1))
    repeated = rng.random(n) < copies
    rows[repeated] = rows[rng.integers(0, n, repeated.sum())]
    rows[rng.integers(n)] *= 1.0 - zero  # rows of which one is 0 are estimated from rows of unit length
    relevance = unit_range(np.sort(rng.integers(0, levels, n).astype(float))[::-1])
    rows = rows.astype(dtype)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("greylag.diversity.vector_gain._MANY", 0)  # cosines in float32 are estimated
        gain = GAINS[method](relevance, rows, w)
    gain.gains_matter = gains_matter
    picks, _ = greedy_path(gain, k)
    assert picks.tolist() == in_full(method, rows, relevance, w, k)


@pytest.mark.parametrize("method", STAGES)
@settings(max_examples=50, deadline=None)
@given(
    seed=st.integers(0, 10**6),
    n=st.integers(0, 12),
    w=st.sampled_from([0.0, 0.3, 0.7, 1.0]),
    k=st.integers(1, 15),
    depth=st.integers(1, 15),
)
def test_stages_over_tfidf_pick_by_the_formula(method, seed, n, w, k, depth):
    """And permute: some documents are empty or equal, and scores are tied."""
    rng = np.random.default_rng(seed)
    texts = {f"d{i}": " ".join(rng.choice(WORDS, size=rng.integers(0, 6))) for i in range(max(n, 1))}
    index, scores = PositionalIndex.from_texts(texts), np.sort(rng.integers(3, size=n).astype(float))[::-1]
    ranking = Ranking("q", "", tuple(f"d{i}" for i in rng.permutation(n)), scores)
    top = ranking.head(depth)
    units = index.tfidf(index.documents(top.docids)).toarray()
    picked, _ = plain(method, units, unit_range(top.scores), w, k)
    found = STAGES[method](index, relevance_weight=w, depth=depth, k=k)(ranking).docids
    assert found == (
        *(ranking.docids[i] for i in picked),
        *(d for i, d in enumerate(ranking.docids) if i not in picked),
    )


@pytest.mark.parametrize("exponent", [-170, 170])
@pytest.mark.parametrize("method", STAGES)
def test_the_length_of_vectors_changes_no_pick(method, exponent):
    """Squares of such lengths are 0 or infinite."""
    rng = np.random.default_rng(5)
    rows, docids = rng.standard_normal((30, 8)), tuple(f"d{i}" for i in range(30))
    ranking = Ranking("q", "", docids, np.sort(rng.random(30))[::-1])
    scaled = rows * np.where(rng.random((30, 1)) < 0.5, 10.0**exponent, 1.0)
    expected = STAGES[method](vectors=ArrayVectors(docids, rows), relevance_weight=0.3)(ranking)
    assert STAGES[method](vectors=ArrayVectors(docids, scaled), relevance_weight=0.3)(ranking) == expected


@pytest.mark.parametrize("method", STAGES)
def test_agrees_with_pyversity(method):
    """Where no cosine is negative; pyversity raises those to 0 in MMR. Its DPP weighs exp(beta z), z the z-score."""
    pyversity = pytest.importorskip("pyversity")
    rng = np.random.default_rng(0)
    rows, scores = rng.random((200, 32)).astype(np.float32), np.sort(rng.random(200))[::-1]
    ranking = Ranking("q", "", tuple(map(str, range(200))), scores)
    odds = 0.6 / 0.4 if method != "dpp" else 2 * 0.6 * np.ptp(scores) / scores.std()
    weight = odds / (1 + odds)
    stage = STAGES[method](vectors=ArrayVectors(ranking.docids, rows), relevance_weight=weight, depth=200, k=25)
    theirs = getattr(pyversity, method)(rows, unit_range(scores), 25, diversity=0.4)
    assert [int(docid) for docid in stage(ranking).docids[:25]] == theirs.indices.tolist()
