"""Passages in memory, and data of other packages: `rerank` of texts, `HybridRetriever` for a service, adapters.

Texts and scores come in, a list goes out, without a JVM.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
