"""Dependence features, feature selection and learned diversity for Pyserini pipelines.

The names here are those that most programs need; the others are imported from their packages, such as
`greylag.diversity`. Names are loaded when they are first used: importing greylag itself loads neither a JVM nor NumPy.
"""

import lazy_loader as _lazy

__version__ = "0.1.0"

_getattr, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Load a public name; of one that a wing or another package has, say what to write."""
    if name in __all__:
        return _getattr(name)
    from greylag.base import refuse_name

    return refuse_name(__name__, name)
