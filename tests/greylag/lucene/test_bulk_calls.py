"""Postings from Lucene, compared with Anserini's reader and with counting."""

from __future__ import annotations

import hashlib
import tempfile
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import CollectionError
from greylag.lucene import bulk_calls
from greylag.lucene.build import build_index
from greylag.lucene.jvm import java_class
from greylag.lucene.lucene_index import LuceneIndex
from greylag.lucene.method_handles import method, run
from greylag.ranking import Query
from tests.greylag.lucene import oracle
from tests.greylag.lucene.samples import brute_postings, exported, write_json
from tests.robustness.places import largest_file


@pytest.mark.parametrize("limit", [1, 13, 100, 10**6])
def test_blocks_have_whole_terms_and_bounded_size(small: LuceneIndex, limit: int) -> None:
    blocks, whole = list(bulk_calls.postings_blocks(small._terms("contents"), limit)), next(small.postings_blocks())
    assert all(len(block.terms) == 1 or len(block.positions) <= limit for block in blocks)
    assert [term for block in blocks for term in block.terms] == whole.terms
    for name in ("df", "docs", "tfs", "positions"):
        np.testing.assert_array_equal(np.concatenate([getattr(b, name) for b in blocks]), getattr(whole, name))


def test_blocks_are_as_large_as_possible() -> None:
    assert list(bulk_calls._runs(np.array([2, 2, 5, 1, 1, 1, 1]), 4)) == [(0, 2), (2, 3), (3, 7)]
    assert list(bulk_calls._runs(np.array([], dtype=np.int64), 4)) == []


def test_postings_equal_lucenes(cacm: LuceneIndex) -> None:
    found = {}
    for block in cacm.postings_blocks():
        ends, starts = np.cumsum(block.df), np.cumsum(block.tfs) - block.tfs
        assert [a.dtype for a in (block.df, block.docs, block.tfs, block.positions)] == [np.int64] + 3 * [np.int32]
        assert block.terms == sorted(block.terms)
        for term, first, last in zip(block.terms, ends - block.df, ends, strict=True):
            found[term] = (block, first, last, starts)
    for term in [*sorted(found, key=lambda term: hashlib.sha256(term).digest())[:150], b"1", b"system"]:
        block, first, last, starts = found[term]
        ours = [
            (int(block.docs[p]), int(block.tfs[p]), block.positions[starts[p] : starts[p] + block.tfs[p]].tolist())
            for p in range(first, last)
        ]
        assert ours == oracle.postings(cacm.path, term.decode())


def test_postings_equal_counting_in_the_texts(documents: dict[str, str], small: LuceneIndex) -> None:
    assert exported(small.postings_blocks(), small.docids()) == brute_postings(documents)


def test_unicode_is_preserved(tmp_path: Path) -> None:
    documents = {"ü": "goose naïve\0日本", "𝔘😀": "goose 😀 𝔘nicode"}
    build_index(write_json(tmp_path / "docs.jsonl", documents), tmp_path / "index")
    index = LuceneIndex(tmp_path / "index")
    assert index.bm25()(Query("1", "😀 goose")).docids == ("𝔘😀", "ü")
    assert sorted(index.docids()) == sorted(documents)
    terms = {term for text in documents.values() for term in index.analyze(text)}
    assert terms == {"goos", "naïv", "日", "本", "😀", "𝔘nicod"}
    assert next(index.postings_blocks()).terms == sorted(term.encode() for term in terms)


def test_phrases_can_be_counted_from_positions(cacm: LuceneIndex) -> None:
    postings = exported(cacm.postings_blocks(), cacm.docids())
    for text in (
        "time sharing",
        "operating system",
        "programming language",
        "numerical analysis",
        "information retrieval",
    ):
        first, second = cacm.analyze(text)
        adjacent = [
            docid
            for docid, positions in postings[first].items()
            if {position + 1 for position in positions} & set(postings[second].get(docid, ()))
        ]
        assert len(adjacent) == oracle.phrase_document_frequency(cacm.path, [first, second]) > 5


def test_a_failed_transfer_is_one_error(small: LuceneIndex, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> bulk_calls.Handle:
        return method("java.util.Iterator", "next", "java.lang.Object")

    monkeypatch.setattr(bulk_calls, "_dictionary_routine", fail)
    monkeypatch.setattr(bulk_calls, "run", lambda *_: run(fail(), java_class("java.util.ArrayList")().iterator()))
    with pytest.raises(CollectionError, match=r"is the disk full\? \(NoSuchElementException") as caught:
        next(bulk_calls.postings_blocks(small._terms("contents")))
    assert "\n" not in str(caught.value)


def test_a_full_folder_for_temporary_files_is_one_line_and_stays_empty(
    small: LuceneIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    terms = small._terms("contents")
    expected = next(bulk_calls.postings_blocks(terms)).terms
    with largest_file(16), pytest.raises(CollectionError, match=r"is the disk full\? \(IOException") as caught:
        next(bulk_calls.postings_blocks(terms))
    assert f"written to {tmp_path}/" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not any(tmp_path.iterdir())
    assert next(bulk_calls.postings_blocks(terms)).terms == expected
