"""Tables of scores, charts, pages of queries, and the metadata of runs."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
