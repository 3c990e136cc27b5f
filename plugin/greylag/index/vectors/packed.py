"""An index as arrays by name, with its words and its latent semantics, that a file can have beside others."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

import numpy as np

from greylag.base import ParameterError
from greylag.index.multilingual import analysis_of
from greylag.index.positional import PositionalIndex
from greylag.index.shards import Shard
from greylag.index.tables import DTYPES
from greylag.index.vectors.latent import Basis, basis_of, load_basis
from greylag.index.words import WORD_DTYPES, CollectionWords, Words

_LATENT = {"latent.rows": "int64", "latent.right": "float64", "latent.changed": "int64"}


def packed_index(index: PositionalIndex) -> dict[str, Any]:
    """Return the arrays of an index of texts, those of its words, and its latent semantics."""
    (part,), words = index.parts, index.words
    assert words is not None
    arrays = {f"index.{name}": np.asarray(getattr(part.shard, name), kind) for name, kind in DTYPES.items()}
    arrays |= {f"words.{name}": getattr(words.parts[0], name) for name in WORD_DTYPES}
    rows, right, changed = basis_of(index)
    latent = dict(zip(_LATENT, (rows, right, np.array([changed])), strict=True))
    return {**arrays, **latent, "fingerprint": np.frombuffer(index.fingerprint.encode(), np.uint8)}


def opened_index(arrays: Mapping[str, Any], language: str) -> PositionalIndex:
    """Return the index of `packed_index`; `ParameterError` if an array is missing or of another type."""
    try:
        kinds = {f"index.{name}": kind for name, kind in DTYPES.items()}
        kinds |= {f"words.{name}": kind for name, kind in WORD_DTYPES.items()}
        kinds |= {**_LATENT, "fingerprint": "uint8"}
        checked = {name: arrays[name] for name, kind in kinds.items() if arrays[name].dtype == kind}
        fingerprint = checked["fingerprint"].tobytes().decode()
        shard = Shard(**{name: checked[f"index.{name}"] for name in DTYPES}, fingerprint=fingerprint)
        words = Words(**{name: checked[f"words.{name}"] for name in WORD_DTYPES})
        rows, right, (changed,) = map(checked.__getitem__, _LATENT)
    except (KeyError, ValueError) as error:
        raise ParameterError(f"has no index: {error}") from None
    index = PositionalIndex.of_shard(shard, analysis_of(language), partial(CollectionWords, (words,)))
    load_basis(index, Basis(rows, right, int(changed)))
    return index
