"""Studies: from an experiment file to runs, models, scores and a report.

`load` reads an experiment file, and `run_study` runs its study. `Study`, `Outcome` and `Context` are the contract of a
study.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
