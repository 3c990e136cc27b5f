"""Archives of NumPy: what is damaged or foreign is refused in one line, whoever reads it."""

import io
import pickle
import random
import zipfile

import numpy as np
import pytest
from tests.refusals import refuses

from greylag.base import FormatError, read_arrays
from greylag.base.runtime import archives
from greylag.index import read_vectors
from greylag.learning.letor import read_scores

IDS, VECTORS = np.array(["d1", "d2", "d3"]), np.arange(60, dtype=np.float64).reshape(3, 20)
ARRAYS = {"ids": IDS, "qids": IDS, "docids": IDS, "vectors": VECTORS}
METHODS = (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA)


@pytest.fixture(autouse=True, params=[archives._MAPPED_BYTES, -1], ids=["read", "mapped"])
def limit(request, monkeypatch):
    monkeypatch.setattr(archives, "_MAPPED_BYTES", request.param)


def npy(array):
    file = io.BytesIO()
    np.save(file, array)
    return file.getvalue()


def packed(method=zipfile.ZIP_STORED, **members):
    """An archive of `ARRAYS`, of which `members` replace some, by arrays or bytes."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", method) as archive:
        for name, array in {**ARRAYS, **members}.items():
            archive.writestr(f"{name}.npy", array if isinstance(array, bytes) else npy(array))
    return file.getvalue()


def every(**changed):
    """An archive in which all arrays are changed alike."""
    return packed(**{name: changed["by"](array) for name, array in ARRAYS.items()})


def garbled(method):
    """An archive in whose members bytes are overwritten: each begins with a local header."""
    content = bytearray(packed(method))
    for part in content.split(b"PK\3\4")[1:]:
        at = content.index(part) + 50
        content[at : at + 12] = b"\xff" * 12
    return bytes(content)


def marked(offset, value):
    """An archive with two bytes changed in all headers, local ones and those of the directory."""
    content = bytearray(packed())
    for magic, place in ((b"PK\3\4", offset), (b"PK\1\2", offset + 2)):
        at = -1
        while (at := content.find(magic, at + 1)) >= 0:
            content[at + place : at + place + 2] = value.to_bytes(2, "little")
    return bytes(content)


def header(old, new):
    """An archive with another text in the header of each array, and the checksum that fits it."""

    def changed(array):
        content = npy(array)
        assert old in content[:128]
        return content[:128].replace(old, new)[:128].ljust(128) + content[128:]

    return every(by=changed)


DAMAGED = {
    "empty": b"",
    "text": b"not an archive",
    "begun": b"PK\3\4",
    "truncated": packed()[:-40],
    "an array alone": npy(VECTORS),
    "a pickle": pickle.dumps({"ids": ["d1"]}),
    **{f"garbled, method {method}": garbled(method) for method in METHODS},
    "an unknown method": marked(8, 77),
    "encrypted": marked(6, 1),
    "no arrays": every(by=lambda _: b"not an array"),
    "half an array": every(by=lambda array: npy(array)[:140]),
    "more than an array": every(by=lambda array: npy(array) + b"\0"),
    "another version": every(by=lambda array: npy(array).replace(b"NUMPY\1", b"NUMPY\7")),
    "no header": header(b"{'descr'", b"{'descr("),
    "no mapping": header(b"{'descr': ", b"['descr', "),
    "another key": header(b"'shape'", b"'shave'"),
    "a text for a flag": header(b"False", b"'no' "),
    "a huge array": header(b"(3", b"(3" + b"0" * 14),
    "a shorter array": header(b"(3", b"(2"),
    "objects": every(by=lambda array: array.astype(object)),
    "records": every(by=lambda _: np.zeros(3, dtype=[("a", "<i4")])),
    "bytes": every(by=lambda array: array.astype("S9")),
    "more dimensions": every(by=lambda array: array[None]),
    "other lengths": packed(ids=IDS[:2], docids=IDS[:2]),
    "other names": packed().replace(b"ids.npy", b"idx.npy"),
}
"""Content by what is wrong with it."""


@pytest.mark.parametrize("content", DAMAGED.values(), ids=DAMAGED)
def test_what_is_damaged_or_foreign_is_refused(content, tmp_path):
    path, scores = tmp_path / "x.npz", tmp_path / "scores"
    path.write_bytes(content)
    scores.write_text("1\n2\n3\n")
    refuses(lambda: read_vectors(path), FormatError, "x.npz")
    refuses(lambda: read_scores(scores, path), FormatError, "x.npz")


@pytest.mark.parametrize("method", METHODS)
def test_a_flipped_bit_is_refused_or_changes_nothing(method, tmp_path):
    path, rng, sound = tmp_path / "x.npz", random.Random(method), packed(method)
    for _ in range(150):
        content = bytearray(sound)
        content[rng.randrange(len(content))] ^= 1 << rng.randrange(8)
        path.write_bytes(content)
        try:
            ids, vectors = read_arrays(path, ids=("U", 1), vectors=("f", 2))
        except FormatError:
            continue
        assert (ids.tolist(), vectors.tobytes()) == (IDS.tolist(), VECTORS.tobytes())


def test_an_archive_that_unpacks_to_much_more_is_refused_before_it_is_read(tmp_path, monkeypatch):
    monkeypatch.setattr(archives, "MAX_ARCHIVE_BYTES", 1 << 20)
    path = tmp_path / "x.npz"
    np.savez_compressed(path, a=np.zeros(10**6))
    refuses(lambda: read_arrays(path, a=("f", 1)), FormatError, "unpacks 8,000,")
    np.savez(path, a=np.zeros(10**6))
    assert read_arrays(path, a=("f", 1))[0].shape == (10**6,)


@pytest.mark.parametrize("name", [".", "absent.npz", "nul\0.npz"])
def test_what_is_no_file_is_refused(name, tmp_path):
    refuses(lambda: read_arrays(tmp_path / name, ids=("U", 1)), FormatError, str(tmp_path))
