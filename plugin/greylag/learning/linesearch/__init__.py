"""Exact optimisation of a measure along a line: feature matrices, objectives and the search itself.

Metzler 2007, section 4, leaves the learning method open, so an exact search is no departure. `line_search` finds what
the search by its definition finds (`tests/greylag/learning/linesearch/reference.py`), without sorting all crossings.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
