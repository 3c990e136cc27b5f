"""Counts of windows from a file are checked, or counted again."""

from dataclasses import replace

import numpy as np

from greylag.base.runtime.cache import Cache
from greylag.features import statistics
from greylag.features.spec import Window
from greylag.index.positional import PositionalIndex
from greylag.index.shards import Part


def test_planted_counts_are_counted_again(tmp_path, monkeypatch):
    monkeypatch.setattr(statistics, "_MAX_UNSAVED_POSTINGS", 0)
    index = PositionalIndex.from_texts({"a": "heat wave heat wave", "b": "heat wave", "c": "cold wave"})
    shard = replace(index.parts[0].shard, folder=tmp_path)
    cliques = np.array([index.query_terms("heat wave")])
    table = statistics.CliqueTable(True, cliques, (Window("O", 1),), "indri")
    (expected,) = statistics._ShardStatistics(Part(shard)).counts([table])
    assert expected.ravel().tolist() == [3, 2]
    for planted in (
        "text", [], expected.tolist(), expected[:1], expected.astype(float), expected.astype(np.int32),
        expected * np.nan, -expected, expected + (1 << 40), expected[::-1].copy(), expected.astype(str),
    ):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(Cache, "load", lambda self, key, planted=planted: planted)
            (counts,) = statistics._ShardStatistics(Part(shard)).counts([table])
        assert counts.dtype == np.int64
        assert counts.tolist() == expected.tolist(), planted
