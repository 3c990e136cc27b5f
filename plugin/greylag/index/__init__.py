"""The positional index, RM3, which reads it to search, and text analysis without a JVM.

A `PositionalIndex` is exported from Lucene once, or inverted from texts, and memory-mapped. Statistics of windows are
counted over the whole collection on first use, and stored. Several shards are one index with one numbering. Models
carry the collection's fingerprint (docids, lengths, terms, df, cf), which does not depend on how it was indexed.
"""

import lazy_loader as _lazy

__getattr__, __dir__, __all__ = _lazy.attach_stub(__name__, __file__)
