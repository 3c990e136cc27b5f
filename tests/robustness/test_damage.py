"""Damaged files of an export and of the store of window counts: named, and made again or refused."""

import os
import random
import shutil
from dataclasses import replace

import pytest

from greylag.base import CollectionError, GreylagError
from greylag.base.runtime.files import file_stamp
from greylag.features import statistics
from greylag.index import array_folder
from greylag.index.array_folder import Manifest
from greylag.index.export import verify_export
from greylag.index.tables import DTYPES
from tests.robustness.source import TEXTS, MemorySource, flip, outcome

STORE = "windows.sqlite"
statistics._MAX_UNSAVED_POSTINGS = 0  # or nothing would be stored of so few documents


def _zero(path, rng):
    content = bytearray(path.read_bytes())
    first = rng.randrange(len(content))
    content[first : first + 64] = b"\xff" * len(content[first : first + 64])
    path.write_bytes(content)


def _replace(path, rng):
    other = rng.choice([other for other in sorted(path.parent.iterdir()) if other != path and other.is_file()])
    path.write_bytes(other.read_bytes())


def _older(path, rng):
    path.with_name("meta.json").write_text('{"schema": 2, "files": {}}')


def _folder(path, rng):
    path.unlink()
    path.mkdir()


DAMAGE = {
    "truncated": lambda path, rng: path.write_bytes(path.read_bytes()[: rng.randrange(path.stat().st_size)]),
    "emptied": lambda path, rng: path.write_bytes(b""),
    "grown": lambda path, rng: path.write_bytes(path.read_bytes() + rng.randbytes(rng.randrange(1, 99))),
    "flipped": flip,
    "overwritten": _zero,
    "random": lambda path, rng: path.write_bytes(rng.randbytes(path.stat().st_size)),
    "replaced": _replace,
    "another version": _older,
    "removed": lambda path, rng: path.unlink(),
    "a folder": _folder,
}


def damaged(name, kind, place, folder):
    """A source whose export is a copy with a damaged file, the file, and whether it has changed."""
    copy = shutil.copytree(place, folder / kind)
    source = MemorySource(copy / "index", TEXTS)
    outcome(source.open())
    (export,) = (copy / "index.greylag").iterdir()
    path, before = export / name, (export / name).read_bytes()
    DAMAGE[kind](path, random.Random(kind))
    return source, path, not path.is_file() or path.read_bytes() != before


def verified(source):
    """The error of a check of the export."""
    try:
        verify_export(source)
    except CollectionError as error:
        return str(error)
    return ""


def _survives(source):
    """Whether using an export in a process of its own ends well or with one line."""
    child = os.fork()
    if child == 0:
        try:
            outcome(source.open())
        except GreylagError as error:
            os._exit("\n" in str(error))
        except BaseException:
            os._exit(2)
        os._exit(0)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """An export, and what it gives."""
    place = tmp_path_factory.mktemp("export") / "original"
    place.mkdir()
    return place, outcome(MemorySource(place / "index", TEXTS).open())


@pytest.mark.parametrize("name", [*(f"{name}.npy" for name in DTYPES), "meta.json", STORE])
def test_a_damaged_file_is_named_and_made_again(name, original, tmp_path):
    place, expected = original
    for kind in DAMAGE:
        source, _, changed = damaged(name, kind, place, tmp_path)
        if name != STORE and (changed or kind == "another version"):
            error = verified(source)
            assert (name in error or "another version" in error) and "\n" not in error, (kind, error)  # noqa: PT018
        assert outcome(source.open()) == expected, kind


@pytest.mark.parametrize("name", DTYPES)
def test_damage_that_only_a_checksum_shows_ends_no_process(name, original, tmp_path, monkeypatch):
    """What the disk itself changes has neither another size nor another time of change."""
    monkeypatch.setattr(array_folder, "CHECKED_BYTES", 0)  # as of the largest files of a large index
    for kind in ("flipped", "overwritten", "random"):
        source, path, changed = damaged(f"{name}.npy", kind, original[0], tmp_path)
        meta = path.with_name("meta.json")
        known = Manifest.parse(meta.read_bytes())
        stamps = {array: file_stamp(path.with_name(f"{array}.npy")) for array in known.stamps}
        meta.write_text(replace(known, stamps=stamps).seal())
        if changed:
            assert f"{path.name} is damaged" in verified(source), kind
            assert _survives(source), kind
