"""Every name is understood, and nothing else."""

from __future__ import annotations

from typing import Any, get_args

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.manifold import Confidence, Graph, ManifoldRanker, affinity_graph


def test_every_graph_can_be_made() -> None:
    points = np.random.default_rng(0).normal(size=(8, 3))
    for graph in get_args(Graph):
        assert affinity_graph(points, graph=graph, sigma=1.0).shape == (8, 8)


@pytest.mark.parametrize(("option", "names"), [("graph", Graph), ("confidence", Confidence)])
def test_other_names_are_refused_with_those_that_exist(option: str, names: Any) -> None:
    index = PositionalIndex.from_texts({"d": "a dog"})
    for name in get_args(names):
        ManifoldRanker(index, **{option: name})
    with pytest.raises(ParameterError, match=", ".join(get_args(names))):
        ManifoldRanker(index, **{option: "nearest"})
