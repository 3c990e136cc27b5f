"""Models that rank, the recipes that train them, cross-validation, and explanations of scores."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
