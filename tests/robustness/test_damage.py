"""Damaged files of an export and of the store of window counts: named, and made again or refused."""

import os
import random
import shutil
from pathlib import Path

import pytest

from greylag.errors import CollectionError, GreylagError
from greylag.features import statistics
from greylag.index.array_folder import _seal, _unseal
from greylag.index.export import verify_export
from greylag.index.tables import DTYPES
from greylag.runtime.files import file_stamp
from tests.robustness.source import TEXTS, MemorySource, outcome

STORE = "windows.sqlite"
statistics._MAX_UNSAVED_POSTINGS = 0  # or nothing would be stored of so few documents


def _flip(path, rng):
    content = bytearray(path.read_bytes())
    content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
    path.write_bytes(content)


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
    "flipped": _flip,
    "overwritten": _zero,
    "random": lambda path, rng: path.write_bytes(rng.randbytes(path.stat().st_size)),
    "replaced": _replace,
    "another version": _older,
    "removed": lambda path, rng: path.unlink(),
    "a folder": _folder,
}


def try_damage(name, kind, place, rng, expected):
    """Damage one file of a copy of an export; whether it is named and the export gives what it gave."""
    copy = Path(shutil.copytree(place, place.with_name("copy")))
    try:
        source = MemorySource(copy / "index", TEXTS)
        outcome(source.open())
        (folder,) = (copy / "index.greylag").iterdir()
        before = (folder / name).read_bytes()
        DAMAGE[kind](folder / name, rng)
        same = (folder / name).is_file() and (folder / name).read_bytes() == before
        if name not in (STORE, ".greylag") and (not same or kind == "another version"):
            try:
                verify_export(source)
            except CollectionError as error:
                if (name not in str(error) and "another version" not in str(error)) or "\n" in str(error):
                    return False
            else:
                return False
        return outcome(source.open()) == expected
    finally:
        shutil.rmtree(copy)


def try_rot(name, kind, place, rng):
    """Damage a file such that only its checksum shows it: whether it is named, and using it does not end the process.

    What the disk itself changes has neither another size nor another time of change.
    """
    copy = Path(shutil.copytree(place, place.with_name("copy")))
    try:
        source = MemorySource(copy / "index", TEXTS)
        (folder,) = (copy / "index.greylag").iterdir()
        before = (folder / name).read_bytes()
        DAMAGE[kind](folder / name, rng)
        meta = _unseal((folder / "meta.json").read_bytes())
        stamps = {array: file_stamp(folder / f"{array}.npy") for array in meta["stamps"]}
        (folder / "meta.json").write_text(_seal({**meta, "stamps": stamps}))
        if before == (folder / name).read_bytes():
            return True
        try:
            verify_export(source)
        except CollectionError as error:
            return f"{name} is damaged" in str(error) and _survives(source)
        return False
    finally:
        shutil.rmtree(copy)


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
def test_a_damaged_file_is_named_and_made_again(name, original):
    place, expected = original
    for kind in DAMAGE:
        assert try_damage(name, kind, place, random.Random(kind), expected), kind


@pytest.mark.parametrize("name", DTYPES)
def test_damage_that_only_a_checksum_shows_ends_no_process(name, original):
    place, _ = original
    for kind in ("flipped", "overwritten", "random"):
        assert try_rot(f"{name}.npy", kind, place, random.Random(kind)), kind
