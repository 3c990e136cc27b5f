"""Exact optimisation of a measure along a line: feature matrices, objectives and the search itself."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
