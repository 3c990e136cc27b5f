"""``greylag compile``."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import fields, replace
from functools import partial
from typing import Any

import numpy as np
import typer

from greylag.base import Query, Ranking, unannounced
from greylag.cli.terminal import write_line
from greylag.evaluation import scan_features
from greylag.features import (
    FeatureExtractor,
    candidate_pool,
    find_stage,
    parse_features,
    registered_stages,
    required_parameters,
    stage_parameters,
)
from greylag.index import ArrayVectors, CollectionWords, PositionalIndex
from greylag.passages import Reranker

_TEXTS = {
    "1": "heat flow in a boundary layer of heated air",
    "2": "the boundary layer of a wing",
    "3": "geese fly in a wedge",
    "4": "the flow of heat, and heat again",
    "5": "grey geese heat the air",
    "6": "a wing in the flow",
    "7": "air",
}
_QUERY = Query("compile", "heat flow of the boundary layer")
_MORE = (
    "document:length,document:entropy,written:words,written:characters,latent,neighbours,FI/term/early,FI/term/LM-F-10"
)


def compile(context: typer.Context) -> None:
    """Compile the ranking loops ahead of time, for all processes. It takes half a minute or more.

    Otherwise, the first command that needs a loop compiles it, which takes seconds. Use it to build the image of a
    service, for example.
    """
    unannounced()
    # Numba compiles a function for the types of its arguments, and mapped arrays are read-only. So all is used
    # twice, on arrays of both kinds.
    index = PositionalIndex.from_texts(_TEXTS)
    work: list[tuple[str, Callable[[], Any]]] = [
        ("reading of features", partial(scan_features, b"1 qid:1 1:1\n", 1, 1.0, lambda *_: None)),
        ("reranking of passages", _use_passages),
        ("search by vectors", _use_vectors),
    ]
    for where, kind in (("texts", index), ("index files", _read_only(index))):
        work += [
            (f"features of {where}", partial(_use_features, kind)),
            (f"BM25 and stages of {where}", partial(_use_stages, kind)),
        ]
    for name, use in work:
        start = time.perf_counter()
        use()
        write_line(f"{time.perf_counter() - start:6.1f} s  {name}")


def _use_passages() -> None:
    texts = [*_TEXTS.values()]
    Reranker("mmr").rank(_QUERY.text, texts, [*range(len(texts))])
    Reranker("general", background=PositionalIndex.from_texts(_TEXTS)).rank(_QUERY.text, texts)


def _use_vectors() -> None:
    for kind in ("int8", "uint8", "float16", "float32", "float64"):
        ArrayVectors([*_TEXTS], np.ones((len(_TEXTS), 2), kind)).nearest(np.ones((1, 2)), 1)


def _use_features(index: PositionalIndex) -> None:
    ranking = Ranking(_QUERY.qid, _QUERY.text, tuple(_TEXTS), np.zeros(len(_TEXTS)))
    FeatureExtractor(index, (*candidate_pool("full"), *parse_features(_MORE)))(ranking)


def _use_stages(index: PositionalIndex) -> None:
    ranking = index.bm25(10)(_QUERY)
    for stage in map(find_stage, registered_stages()):
        known = {"index": index} if "index" in stage_parameters(stage) else {}
        if not {*required_parameters(stage), *stage.needs} - {"index", "vectors"}:
            stage(**known)(ranking)


def _read_only(index: PositionalIndex) -> PositionalIndex:
    """Make the arrays of an index read-only, as if mapped from files."""
    (part,), words = index.parts, index.words
    assert words is not None
    locked = CollectionWords(tuple(map(_locked, words.parts)))
    return PositionalIndex.of_shard(_locked(part.shard), index.analyze, lambda: locked)


def _locked(tables: Any) -> Any:
    """Make the arrays of a dataclass read-only."""
    arrays = {field.name: getattr(tables, field.name) for field in fields(tables)}
    locked = {name: array.view() for name, array in arrays.items() if isinstance(array, np.ndarray)}
    for array in locked.values():
        array.flags.writeable = False
    return replace(tables, **locked)
