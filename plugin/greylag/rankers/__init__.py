"""Models that rank, the stages that apply them, explanations of scores, and export to search engines."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
