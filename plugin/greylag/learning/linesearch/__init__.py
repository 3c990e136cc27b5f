"""Exact optimisation of a measure along a line: feature matrices, objectives and the search itself.

Metzler 2007, section 4, leaves the learning method open, so an exact search is no departure. `line_search` finds what
the search by its definition finds (`tests/greylag/learning/linesearch/reference.py`), without sorting all crossings.
"""
