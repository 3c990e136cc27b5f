"""Vectors of documents and queries: TF-IDF of an index, embeddings in an array, from a function or in a FAISS index."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
