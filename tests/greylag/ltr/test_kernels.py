"""Compiled measures, compared with their sums written out."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.ltr import kernels


@pytest.mark.parametrize("code", range(5))
@pytest.mark.parametrize("depth", [2, 100])
def test_measures_are_sums_of_terms(code: int, depth: int) -> None:
    rng = np.random.default_rng(code)
    scores, gains = rng.integers(4, size=30).astype(float), np.maximum(0, rng.integers(-2, 3, size=30)) / 4
    normalisers = np.array([0.5, 2.0])
    divisors = kernels.divisors(code, depth, 30)
    found = kernels.evaluate(code, divisors, np.array([0, 12, 30]), scores, gains, normalisers)
    for q, rows in enumerate((range(12), range(12, 30))):
        ranked = sorted(rows, key=lambda row: -scores[row])
        relevant = [(rank, gains[row]) for rank, row in enumerate(ranked, 1) if gains[row] > 0]
        total = 0.0
        for count, (rank, gain) in enumerate(relevant, 1):
            reach = np.prod([1 - above for _, above in relevant[: count - 1]])
            term = [count / rank, gain / np.log2(rank + 1), (count == 1) / rank, 1.0, gain * reach / rank][code]
            total += term if rank <= depth else 0.0
        assert found[q] == pytest.approx(total * normalisers[q], abs=1e-12)
