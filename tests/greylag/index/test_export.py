"""Exports of Lucene indexes and folders of arrays: content, location, and failures.

Tests `array_folder` and `invert`.
"""

import logging
import os
import shutil
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from greylag.base import CollectionError, GreylagError
from greylag.base.pipeline import run_step
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.index import array_folder
from greylag.index.array_folder import Manifest
from greylag.index.lucene import bulk_calls
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.positional import PositionalIndex
from tests.greylag.index.samples import TEXTS, make_index
from tests.processes import python
from tests.refusals import refuses


def exports(index):
    folder = index.with_name("index.greylag")
    return sorted(folder.iterdir()) if folder.exists() else []


def flip(path):
    content = path.read_bytes()
    path.write_bytes(content[:-1] + bytes([content[-1] ^ 1]))


def test_an_export_equals_the_index_from_texts(index):
    exported, made = PositionalIndex.from_lucene(index), PositionalIndex.from_texts(TEXTS)
    assert exported.fingerprint == made.fingerprint
    numbers = exported.documents(list(TEXTS))
    for number, own in zip(numbers, made.documents(list(TEXTS)), strict=True):
        for mine, theirs in zip(made.token_stream(own), exported.token_stream(number), strict=True):
            np.testing.assert_array_equal(mine, theirs)
    assert exported.analyze("Banks of America") == made.analyze("Banks of America")


def test_an_export_block_by_block_has_the_same_bytes(tmp_path, monkeypatch):
    def small_blocks(self):
        yield from bulk_calls.postings_blocks(self._terms("contents"), 500)

    words = np.random.default_rng(0).integers(30, size=(200, 20))
    index = make_index(tmp_path, {f"d{i}": " ".join(f"w{word}" for word in text) for i, text in enumerate(words)})
    PositionalIndex.from_lucene(index)
    (folder,) = exports(index)
    whole = {path.name: path.read_bytes() for path in folder.glob("*.npy")}
    shutil.rmtree(folder)
    monkeypatch.setattr(LuceneIndex, "postings_blocks", small_blocks)
    PositionalIndex.from_lucene(index)
    assert {path.name: path.read_bytes() for path in folder.glob("*.npy")} == whole


def test_an_index_is_exported_once(index, caplog):
    PositionalIndex.from_lucene(index)
    (before,) = exports(index)
    stamp = (before / "meta.json").stat().st_mtime_ns
    PositionalIndex.from_lucene(index)
    assert exports(index) == [before]
    assert (before / "meta.json").stat().st_mtime_ns == stamp
    assert not caplog.records


@pytest.mark.parametrize(("folder", "path"), [(".", "."), ("inner", "..")])
def test_an_index_by_a_path_without_its_name(index, folder, path, monkeypatch):
    (index / folder).mkdir(exist_ok=True)
    monkeypatch.chdir(index / folder)
    before = sorted(index.rglob("*"))
    PositionalIndex.from_lucene(path)
    assert len(exports(index)) == 1
    assert sorted(index.rglob("*")) == before


def test_a_changed_index_is_exported_again_with_a_warning(index, caplog):
    old = PositionalIndex.from_lucene(index)
    (before,) = exports(index)
    make_index(index.parent, {**TEXTS, "d4": "more"})
    with caplog.at_level(logging.WARNING):
        new = PositionalIndex.from_lucene(index)
    assert "changed: exporting positions again" in caplog.text
    assert (old.n_documents, new.n_documents) == (3, 4)
    (after,) = exports(index)
    assert after != before
    assert old.term_frequencies([0]).sum() > 0  # an open export stays usable


def test_totals_must_equal_lucenes(index, monkeypatch):
    blocks = LuceneIndex.postings_blocks

    def shortened(self):
        for block in blocks(self):
            positions = block.positions[: -block.tfs[-1]]
            yield type(block)(block.terms[:-1], block.df[:-1], block.docs[:-1], block.tfs[:-1], positions)

    monkeypatch.setattr(LuceneIndex, "postings_blocks", shortened)
    refuses(lambda: PositionalIndex.from_lucene(index), CollectionError, "Lucene counts", "|")
    assert exports(index) == []


def test_the_cache_folder_is_used_if_the_index_folder_is_not_writable(index, tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    shutil.rmtree(PositionalIndex.from_lucene(index).folder.parent)
    assert not (tmp_path / "cache").exists()
    index.with_name("index.greylag").write_text("not a folder")
    assert PositionalIndex.from_lucene(index).folder.is_relative_to(tmp_path / "cache" / "greylag")


def test_concurrent_exports(index):
    code = f"from greylag import PositionalIndex; print(PositionalIndex.from_lucene({str(index)!r}).fingerprint)"
    with ThreadPoolExecutor(2) as pool:
        jobs = [pool.submit(python, "-c", code) for _ in "12"]
    assert {job.result().stdout for job in jobs} == {PositionalIndex.from_lucene(index).fingerprint + "\n"}
    assert len(exports(index)) == 1


def test_window_counts_are_stored_with_the_export(index, monkeypatch):
    monkeypatch.setattr("greylag.features.statistics._MAX_UNSAVED_POSTINGS", 0)  # or they would take too little time
    run = run_step(LuceneIndex(index).bm25(), {"1": "new york city"})
    positional = PositionalIndex.from_lucene(index)
    first = FeatureExtractor(positional, candidate_pool())(run["1"])
    assert (exports(index)[0] / "windows.sqlite").exists()
    with monkeypatch.context() as patch:
        patch.delattr("greylag.features.statistics.collection_counts")
        again = FeatureExtractor(positional, candidate_pool())(run["1"])
    np.testing.assert_array_equal(first, again)


def test_a_flipped_bit_is_found_even_if_the_time_of_modification_is_not_changed(index, caplog):
    folder = PositionalIndex.from_lucene(index).folder
    file = folder / "block_places.npy"
    status, content = file.stat(), file.read_bytes()
    file.write_bytes(content[:-1] + bytes([content[-1] ^ 128]))
    os.utime(file, ns=(status.st_atime_ns, status.st_mtime_ns))
    PositionalIndex.from_lucene(index)
    assert "block_places.npy is damaged: its checksum differs: exporting positions of" in caplog.text
    assert file.read_bytes() == content


def test_a_large_copied_export_is_checked_once(index, tmp_path, monkeypatch, caplog):
    monkeypatch.setattr(array_folder, "CHECKED_BYTES", 0)
    PositionalIndex.from_lucene(index)
    for name in ("index", "index.greylag"):
        shutil.copytree(index.with_name(name), tmp_path / "copy" / name)
    PositionalIndex.from_lucene(tmp_path / "copy" / "index")
    compared = []
    checksum = array_folder._checksum
    monkeypatch.setattr(array_folder, "_checksum", lambda path: compared.append(path) or checksum(path))
    PositionalIndex.from_lucene(tmp_path / "copy" / "index")
    assert not compared
    sizes = sorted(path.stat().st_size for path in exports(tmp_path / "copy" / "index")[0].glob("*.npy"))
    monkeypatch.setattr(array_folder, "CHECKED_BYTES", sum(sizes[:5]))
    PositionalIndex.from_lucene(tmp_path / "copy" / "index")
    assert [path.stat().st_size for path in compared] == sizes[:5]
    assert not caplog.records


def test_another_indexs_export_is_not_used(index, tmp_path, caplog):
    (tmp_path / "other").mkdir()
    other = PositionalIndex.from_lucene(make_index(tmp_path / "other", {"x": "snow goose"}))
    expected = PositionalIndex.from_lucene(index)
    shutil.rmtree(expected.folder)
    shutil.copytree(other.folder, expected.folder)
    assert PositionalIndex.from_lucene(index).fingerprint == expected.fingerprint
    assert "it belongs to another index" in caplog.text


def test_a_changed_lucene_file_is_checked_when_the_export_is_opened(index):
    PositionalIndex.from_lucene(index)
    flip(next(index.glob("*.doc")))
    for _ in "12":  # with an export, and without one
        with pytest.raises(CollectionError):
            PositionalIndex.from_lucene(index)
        shutil.rmtree(index.with_name("index.greylag"), ignore_errors=True)
    assert exports(index) == []


def test_what_is_not_read_back_as_written_is_an_error(index, monkeypatch):
    def damaging(path, **_):
        if path.name == "positions.npy":
            flip(path)

    monkeypatch.setattr("greylag.index.array_folder.sync", damaging)
    refuses(lambda: PositionalIndex.from_lucene(index), CollectionError, "positions.npy")
    assert exports(index) == []


OTHER = [{"note": [1]}, {"stamps": {}}, {"stamps": 1}, {"checksums": {}}, {"files": None}]  # with the right checksum


@pytest.mark.parametrize(
    "content", [None, "", "{}", "[]", '{"schema": 2}', '{"schema": 2, "files": 1}', '{"schema": 1}', *OTHER]
)
def test_damaged_metadata_is_made_again(index, content, caplog):
    expected = PositionalIndex.from_lucene(index)
    meta = expected.folder / "meta.json"
    sealed = replace(Manifest.parse(meta.read_bytes()), **content).seal() if isinstance(content, dict) else content
    meta.unlink() if sealed is None else meta.write_text(sealed)
    assert PositionalIndex.from_lucene(index).fingerprint == expected.fingerprint
    if content not in OTHER:
        assert len(caplog.messages) == 1
        assert PositionalIndex.verify_export(index).endswith("all files have their checksums")


def test_there_may_be_no_export_to_verify(index):
    assert PositionalIndex.verify_export(index) == f"{index}.greylag: none yet, it is made on first use"


def test_folders_that_greylag_did_not_make_are_kept(index):
    other = index.with_name("index.greylag") / "0" / "thesis.txt"
    other.parent.mkdir(parents=True)
    other.write_text("mine")
    PositionalIndex.from_lucene(index)
    assert other.read_text() == "mine"


def test_a_user_without_home(index, monkeypatch):
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)
    assert PositionalIndex.from_lucene(index).n_documents == 3
    shutil.rmtree(index.with_name("index.greylag"))
    index.with_name("index.greylag").touch()
    with pytest.raises(CollectionError, match=r"writable: .*index\.greylag$"):
        PositionalIndex.from_lucene(index)


def test_a_full_disk_is_one_error_and_leaves_nothing(index, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(GreylagError):
        PositionalIndex.from_lucene(index)
    assert exports(index) == []
