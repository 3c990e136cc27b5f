"""Studies: from an experiment file to runs, models, scores and a report.

A study is settings, a function that opens what they name, and a pure function from these to an `Outcome`. `load` reads
an experiment file, and `run_study` runs its study; a finished one is not run again while settings, inputs, code and
versions are the same.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
