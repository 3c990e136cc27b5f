"""Coverage of words against its definition."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_matrix

from greylag.diversity import Coverage, unweighted_coverage
from greylag.diversity.coverage import CoverageGain
from greylag.errors import ParameterError
from greylag.greedy import greedy_picks
from tests.greylag.diversity import samples


def distinct_words(tf: np.ndarray, picked: list[int]) -> float:
    return float((tf[picked] > 0).any(axis=0).sum())


@pytest.mark.parametrize("seed", range(15))
def test_gains_are_rises_of_the_value(seed: int) -> None:
    tf = samples.frequencies(seed)
    gain, dense, picked = unweighted_coverage(tf), tf.toarray(), []  # type: ignore[var-annotated]
    for candidate in np.random.default_rng(seed).permutation(8)[:5].tolist():
        rises = [distinct_words(dense, [*picked, i]) - distinct_words(dense, picked) for i in range(8)]
        np.testing.assert_allclose(gain.gains(), rises, atol=1e-12)
        gain.add(candidate)
        picked.append(candidate)


def test_values_and_base() -> None:
    values = np.array([2.0, 5.0])
    gain = CoverageGain(csr_matrix(np.array([[1.0, 0.0], [1.0, 1.0]])), values, np.array([0.5, 0.0]))
    assert gain.gains().tolist() == [2.5, 7.0]
    gain.add(0)
    assert gain.gains().tolist() == [0.5, 5.0]
    assert values.tolist() == [2.0, 5.0]


@given(st.integers(0, 1 << 32), st.integers(1, 12), st.integers(1, 30))
def test_gains_are_those_of_scipy_to_the_bit(seed: int, n: int, columns: int) -> None:
    """Covered columns, whose entries are dropped, add 0 in scipy's product; values may be negative or 0."""
    rng = np.random.default_rng(seed)
    covered = csr_matrix((rng.random((n, columns)) < rng.random()).astype(float))
    values, base = rng.normal(size=columns) * (rng.random(columns) < 0.8), rng.normal(size=n)
    gain, before = CoverageGain(covered, values, base), covered.toarray()
    for pick in rng.permutation(n):
        np.testing.assert_array_equal(gain.gains(), covered @ values + base)
        gain.add(pick)
        values = np.where(covered[[pick]].toarray()[0] > 0, 0.0, values)
    np.testing.assert_array_equal(covered.toarray(), before)


def test_entries_other_than_1_are_refused() -> None:
    with pytest.raises(ParameterError, match=r"an entry 0\.5"):
        CoverageGain(csr_matrix([[1.0, 0.5]]), np.ones(2))


def test_stage_is_the_greedy_choice() -> None:
    index, ranking = samples.index(1, 15), samples.ranking(2, 15)
    tf = index.term_frequencies(index.documents(ranking.docids))
    picked = greedy_picks(unweighted_coverage(tf), 4)
    assert Coverage(index, k=4)(ranking).docids[:4] == tuple(ranking.docids[i] for i in picked)
