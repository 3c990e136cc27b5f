"""Indexes that are damaged, absent or changed."""

from __future__ import annotations

import hashlib
import os
import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import CollectionError
from greylag.lucene import bulk_calls, open_index
from greylag.lucene.lucene_index import LuceneIndex
from greylag.ranking import Query


def test_fingerprint_identifies_the_newest_commit(small: LuceneIndex, tmp_path: Path) -> None:
    copy = Path(shutil.copytree(small.path, tmp_path / "copy"))
    commit = next(copy.glob("segments_*"))
    expected = hashlib.sha256(commit.name.encode() + commit.read_bytes()).hexdigest()
    assert LuceneIndex(copy).fingerprint == small.fingerprint == expected
    (copy / "segments_9").write_bytes(b"ninth")
    (copy / "segments_a").write_bytes(b"tenth")
    assert LuceneIndex(copy).fingerprint == hashlib.sha256(b"segments_atenth").hexdigest()


def test_missing_and_broken_indexes(small: LuceneIndex, tmp_path: Path) -> None:
    (tmp_path / "loop").symlink_to("loop")
    for path in (tmp_path, tmp_path / "absent", tmp_path / "loop", [tmp_path / "loop", small.path]):
        with pytest.raises(
            CollectionError, match=r"is not a Lucene index \(it contains no segments_N file\): build it"
        ):
            LuceneIndex(path)
    (tmp_path / "segments_1").write_bytes(b"nonsense")
    with pytest.raises(CollectionError, match=r"cannot be opened; .*\): build it") as caught:
        LuceneIndex(tmp_path).statistics()
    assert "\n" not in str(caught.value)


def test_a_damaged_file_is_found_on_opening_if_the_index_is_small(
    small: LuceneIndex, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    copy = Path(shutil.copytree(small.path, tmp_path / "copy"))
    (file,) = copy.glob("*.doc")
    content = bytearray(file.read_bytes())
    content[len(content) // 2] ^= 1
    file.write_bytes(content)
    with pytest.raises(CollectionError, match=r"copy is damaged \(CorruptIndexException: checksum failed"):
        LuceneIndex(copy).bm25()(Query("1", "x"))
    monkeypatch.setattr("greylag.lucene.open_index.SMALL", 1)
    large = LuceneIndex(copy)
    assert large.statistics().documents == small.statistics().documents
    with pytest.raises(CollectionError, match=r"copy is damaged \(CorruptIndexException: checksum failed"):
        large.check_integrity()


@pytest.mark.parametrize("broken", [0, 1, 2])
def test_what_was_opened_is_closed_if_a_check_fails(small: LuceneIndex, tmp_path: Path, broken: int) -> None:
    copies = [Path(shutil.copytree(small.path, tmp_path / str(n))) for n in range(2 + (broken == 2))]
    if broken < 2:
        (file,) = copies[broken].glob("*.doc")
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)

    def files() -> list[str]:
        held = [os.readlink(entry) for entry in Path("/proc/self/fd").iterdir() if entry.is_symlink()]
        mapped = Path("/proc/self/maps").read_text().splitlines()
        return [name for name in (*held, *mapped) if str(tmp_path) in name]

    index = LuceneIndex(copies)
    with pytest.raises(CollectionError):
        index.statistics()
    index.close()
    assert not files()


@pytest.mark.parametrize("moved", [0, None])
def test_a_document_without_an_id_or_with_several(
    small: LuceneIndex, monkeypatch: pytest.MonkeyPatch, moved: int | None
) -> None:
    """As many ids as documents do not mean that each document has one."""
    (block,) = bulk_calls.postings_blocks(small._terms("id"))
    if moved is None:
        more = replace(
            block, terms=[*block.terms, b"more"], df=np.append(block.df, 1), docs=np.append(block.docs, block.docs[:1])
        )
    else:
        docs = block.docs.copy()
        docs[moved] = docs[moved + 1]
        more = replace(block, docs=docs)
    monkeypatch.setattr(open_index, "postings_blocks", lambda _: iter([more]))
    with pytest.raises(CollectionError, match="a document has no id, or several: build it"):
        small.docids()
