"""Exact optimisation of a measure along a line: feature matrices, objectives and the search itself.

Metzler 2007, section 4, leaves the learning method open, so an exact search is no departure. `reference` is the search
by its definition, to read first and to compare with; `line_search` finds the same without sorting all crossings.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
