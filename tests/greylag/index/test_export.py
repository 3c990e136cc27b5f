"""Exports of Lucene indexes: content, location, and failures."""

from __future__ import annotations

import logging
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import CollectionError
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.index.positional import PositionalIndex
from greylag.lucene.lucene_index import LuceneIndex
from greylag.ranking import Query, run_step
from tests.greylag.index.samples import TEXTS, make_index


def exports(index: Path) -> list[Path]:
    return sorted(path for path in index.with_name("index.greylag").iterdir())


def test_an_export_equals_the_index_from_texts(index: Path) -> None:
    exported, made = PositionalIndex.from_lucene(index), PositionalIndex.from_texts(TEXTS)
    assert exported.fingerprint == made.fingerprint
    numbers = exported.documents(list(TEXTS))
    for number, own in zip(numbers, made.documents(list(TEXTS)), strict=True):
        for mine, theirs in zip(made.token_stream(own), exported.token_stream(number), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert exported.analyze("Banks of America") == made.analyze("Banks of America")


def test_an_index_is_exported_once(index: Path, caplog: pytest.LogCaptureFixture) -> None:
    PositionalIndex.from_lucene(index)
    (before,) = exports(index)
    stamp = (before / "meta.json").stat().st_mtime_ns
    PositionalIndex.from_lucene(index)
    assert exports(index) == [before]
    assert (before / "meta.json").stat().st_mtime_ns == stamp
    assert not caplog.records


def test_a_changed_index_is_exported_again_with_a_warning(index: Path, caplog: pytest.LogCaptureFixture) -> None:
    old = PositionalIndex.from_lucene(index)
    (before,) = exports(index)
    make_index(index.parent, {**TEXTS, "d4": "more"})
    with caplog.at_level(logging.WARNING):
        new = PositionalIndex.from_lucene(index)
    assert "has changed: exporting its positions again" in caplog.text
    assert (old.n_documents, new.n_documents) == (3, 4)
    (after,) = exports(index)
    assert after != before
    assert old.term_frequencies([0]).sum() > 0  # an open export stays usable


def test_an_interrupted_export_leaves_nothing(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted(self: LuceneIndex) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(LuceneIndex, "postings_blocks", interrupted)
        with pytest.raises(KeyboardInterrupt):
            PositionalIndex.from_lucene(index)
    assert exports(index) == []
    assert PositionalIndex.from_lucene(index).n_documents == 3


def test_totals_must_equal_lucenes(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocks = LuceneIndex.postings_blocks

    def shortened(self: LuceneIndex):  # type: ignore[no-untyped-def]
        for block in blocks(self):
            yield type(block)(block.terms[:-1], block.df[:-1], block.docs[:-1], block.tfs[:-1], block.positions[:-1])

    monkeypatch.setattr(LuceneIndex, "postings_blocks", shortened)
    with pytest.raises(CollectionError, match=r"exported .* but Lucene counts"):
        PositionalIndex.from_lucene(index)
    assert exports(index) == []


def test_the_cache_folder_is_used_if_the_index_folder_is_not_writable(
    index: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index.with_name("index.greylag").write_text("not a folder")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    assert PositionalIndex.from_lucene(index).folder.is_relative_to(tmp_path / "cache" / "greylag")  # type: ignore[union-attr]


def test_concurrent_exports(index: Path) -> None:
    code = f"from greylag import PositionalIndex; print(PositionalIndex.from_lucene({str(index)!r}).fingerprint)"
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(subprocess.run, [sys.executable, "-c", code], capture_output=True, text=True) for _ in "12"]
    assert {job.result().stdout for job in jobs} == {PositionalIndex.from_lucene(index).fingerprint + "\n"}
    assert len(exports(index)) == 1


def test_window_counts_are_stored_with_the_export(index: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    run = run_step(LuceneIndex(index).bm25(), {"1": "new york city"})
    positional = PositionalIndex.from_lucene(index)
    first = FeatureExtractor(positional, candidate_pool())(run["1"])
    assert (exports(index)[0] / "windows.sqlite").exists()
    with monkeypatch.context() as patch:
        patch.delattr("greylag.features.statistics.WindowStatistics._compute")
        again = FeatureExtractor(positional, candidate_pool())(run["1"])
    np.testing.assert_array_equal(first, again)


def test_threads_may_search_at_once(index: Path) -> None:
    source = LuceneIndex(index).bm25()
    queries = [Query(str(i), text) for i, text in enumerate(["new york", "america", "minster city", "apple"] * 25)]
    expected = [source(query) for query in queries]
    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(LuceneIndex(index).bm25(), queries)) == expected
