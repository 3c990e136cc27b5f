"""Ranking on data manifolds: affinity graphs of points, rankings on them, and a reranking stage.

The stage uses conjugate gradients and rounds f* to 1e-10 of its highest value, so equal documents keep their order.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
