"""Learning to rank: training data, objectives, learners of linear models, tuning, cross-validation and stages."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
