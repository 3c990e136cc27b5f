"""Vectors of documents and queries: of an index, or embeddings in an array, from a function, or of FAISS."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
