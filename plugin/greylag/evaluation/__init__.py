"""Evaluation of runs: measures of relevance and diversity, and tests of their differences.

`measures` is the one grammar of measures, on which learning builds; `subtopics` the one definition of subtopic coverage
and loss, for evaluation and for SVM-div. `submission` checks TREC's rules and repairs nothing.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
