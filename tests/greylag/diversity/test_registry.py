"""The table of diversification methods."""

from __future__ import annotations

import greylag.diversity
from greylag.diversity import DIVERSIFIERS, DiversityStage, diversifier


def test_methods_are_public_stages() -> None:
    for method, name in DIVERSIFIERS.items():
        assert diversifier(method) is getattr(greylag.diversity, name)
        assert issubclass(diversifier(method), DiversityStage)
