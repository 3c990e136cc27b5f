"""Features of the Markov random field model: specifications, cliques, windows, weightings and extraction.

Counts do not depend on mu, k1 and b, so a grid of these counts once. A document for which a feature has no value takes
the least value of the query's other documents, in training and in ranking.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
