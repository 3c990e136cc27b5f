"""Ranking on data manifolds: affinity graphs of points, rankings on them, and a reranking stage."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
