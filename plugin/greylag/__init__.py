"""Dependence features, feature selection and learned diversity for Pyserini pipelines.

The names here are those that most programs need; the others are imported from their packages, such as
`greylag.diversity`. Names are loaded when they are first used: importing greylag itself loads neither a JVM nor NumPy.
"""

import lazy_loader as _lazy

__version__ = "0.1.0"

_getattr, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)


def __getattr__(name: str) -> object:
    """Load a public name; of one that a wing has, say where it is."""
    try:
        return _getattr(name)
    except AttributeError as error:
        from pathlib import Path

        for stub in sorted(Path(__file__).parent.glob("*/__init__.pyi")):
            public = stub.read_text(encoding="utf-8").partition("# isort: split")[0]
            if f" import {name} as {name}\n" in public:
                where = f"write: from greylag.{stub.parent.name} import {name}"
                raise AttributeError(f"module 'greylag' has no attribute {name!r}; {where}") from None
        raise error
