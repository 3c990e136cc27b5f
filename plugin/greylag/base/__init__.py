"""The ground that all wings stand on: rankings, pipelines, errors, and what touches the operating system.

Nothing here knows an index, a feature, a measure or a model. `ranking` has the values that flow through a pipeline,
`pipeline` what composes them, `core` the checks of others' values and the grammar of options, `runtime` files, workers
and interrupted work.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
