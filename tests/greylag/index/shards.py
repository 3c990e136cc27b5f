"""Collections in shards, without Lucene."""

from __future__ import annotations

import itertools
from collections.abc import Mapping, Sequence

from greylag.index.analysis import analyze
from greylag.index.invert import invert
from greylag.index.merge import merge, parts_of
from greylag.index.positional import PositionalIndex
from greylag.index.shards import Shard
from greylag.index.tables import fingerprint


def split(texts: Mapping[str, str], cuts: Sequence[int]) -> list[dict[str, str]]:
    """Texts cut into consecutive parts."""
    places = [0, *sorted(min(cut, len(texts)) for cut in cuts), len(texts)]
    pairs = list(texts.items())
    return [dict(pairs[first:end]) for first, end in itertools.pairwise(places)]


def from_shards(collections: Sequence[Mapping[str, str]]) -> PositionalIndex:
    """The index of several collections of texts as one."""
    shards = [Shard(**invert(texts)) for texts in collections]
    arrays = merge(shards, [f"shard {number}" for number in range(len(shards))])
    numbers = arrays.pop("numbers")
    return PositionalIndex(**arrays, fingerprint=fingerprint(arrays), parts=parts_of(shards, numbers), analyze=analyze)
