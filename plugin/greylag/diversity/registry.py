"""The diversification methods by name."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from greylag.diversity.stage import DiversityStage

DIVERSIFIERS: Mapping[str, str] = {
    "svmdiv": "SVMDiv",
    "cssvm": "CSSVM",
    "essential-pages": "EssentialPages",
    "coverage": "Coverage",
    "mmr": "MMR",
    "pm2": "PM2",
    "xquad": "XQuAD",
    "random": "RandomOrder",
}
"""The stages by name of method, as public names of `greylag.diversity`, which loads them on first use."""


def diversifier(method: str) -> type[DiversityStage]:
    """The stage class of a method in `DIVERSIFIERS`."""
    stage: type[DiversityStage] = getattr(import_module("greylag.diversity"), DIVERSIFIERS[method])
    return stage
