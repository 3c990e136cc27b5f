"""Diversification: stages that pick documents greedily, and SVM-div with the tools to train it."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
