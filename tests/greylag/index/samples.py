"""Small collections, their Lucene index, and their index in shards without Lucene."""

import itertools
import json
import shutil

from greylag.index.analysis import analyze
from greylag.index.invert import invert
from greylag.index.lucene.build import build_index
from greylag.index.merge import merge, parts_of
from greylag.index.positional import PositionalIndex
from greylag.index.shards import Shard
from greylag.index.tables import fingerprint

TEXTS = {
    "d3": "New York city and the Bank of America's tower",
    "d1": "the big apple: New York, New Jersey",
    "d2": "York minster, york; YORK 3.5 re-indexed",
}


def make_index(folder, texts):
    docs = folder / "docs.jsonl"
    docs.write_text("".join(json.dumps({"id": docid, "contents": text}) + "\n" for docid, text in texts.items()))
    shutil.rmtree(folder / "index", ignore_errors=True)
    build_index(docs, folder / "index")
    return folder / "index"


def split(texts, cuts):
    """Texts cut into consecutive parts."""
    places = [0, *sorted(min(cut, len(texts)) for cut in cuts), len(texts)]
    pairs = list(texts.items())
    return [dict(pairs[first:end]) for first, end in itertools.pairwise(places)]


def from_shards(collections):
    """The index of several collections of texts as one."""
    shards = [Shard(**invert(texts)) for texts in collections]
    arrays = merge(shards, [f"shard {number}" for number in range(len(shards))])
    numbers = arrays.pop("numbers")
    return PositionalIndex(
        **arrays,
        fingerprint=fingerprint(arrays),
        parts=parts_of(shards, numbers),
        analyze=analyze,
        read_words=lambda: None,
    )
