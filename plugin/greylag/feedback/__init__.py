"""Relevance feedback: stages that rerank by judged documents, and sessions that simulate rounds of it."""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
