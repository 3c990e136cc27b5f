"""The positional index, RM3, which reads it to search, and text analysis without a JVM."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
