"""Files of the field, scores, comparisons and reports: all that an organiser, a gate or a table of a paper needs.

This wing imports `greylag.base` alone: no index, no features, no learning. `trec` reads and writes files, `scoring` has
measures and tests, `fusion` joins rankings, and `reports` compares runs and prints.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
