"""Structured prediction: models, which define predictions, and learners, which find their weights.

A model predicts an object, such as a set of documents, from weighted joint features. Every learner works with every
model that has the methods it needs.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
