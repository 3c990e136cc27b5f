"""Models that rank, the stages that apply them, explanations of scores, and export to search engines.

`explanation` has a loop of its own, and so checks the extractor: contributions add up to the score within 1e-9.
`export` refuses what an engine would score differently. `manifold` ranks by scores that spread over a graph.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
