"""Recipes that train models that rank or diversify, and cross-validation.

Baselines are fitted and ranked by the code of learned models, so a comparison compares features alone. `cross_fitting`
gives tuned and learned columns values in which a query's own judgements have no share. `automatic` learns around the
general model's weights, and prefers other learners, baselines and averages only if they clearly lead in
cross-validation.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
