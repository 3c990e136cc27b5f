"""What manifold ranking can be told by name."""

from __future__ import annotations

from typing import Literal

Graph = Literal["connecting", "knn", "mutual_knn", "full"]
"""Which points are joined; see `greylag.manifold.affinity_graph`."""
Confidence = Literal["query", "scores"]
"""What scores spread from; see `greylag.manifold.ManifoldRanker`."""
