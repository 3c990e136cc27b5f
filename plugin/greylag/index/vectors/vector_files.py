"""Files of vectors: JSON lines, as Pyserini's encoders write them, NumPy's archives, or an array with ids beside it."""

from __future__ import annotations

import os
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import numpy as np

from greylag.base import FormatError, is_name, map_array, read_arrays, read_bytes, read_json_lines
from greylag.index.vectors.dense import BLOCK_ROWS, ArrayVectors, Dense

IDS = "{}.ids", "{}.ids.txt", "{}.txt", "{}.ids.npy", "ids.txt", "ids.npy", "docid"
"""The names of ids beside an array in the file ``{}.npy``; the last one is FAISS's of Pyserini."""
_KEPT = tuple(map(np.dtype, ("int8", "uint8", "float16", "float32", "float64")))


def read_vectors(path: str | Path) -> tuple[tuple[str, ...], Dense]:
    """Read vectors and their identifiers; `FormatError` unless they are finite and of one length.

    A file that ends in ``.npz`` is a NumPy archive with the arrays ``ids``, n strings or integers, and ``vectors``, n x
    m numbers. One in ``.npy`` is the array of vectors alone, with the ids in one of `IDS` in its folder: a line each,
    or an array. A folder has one such array. Any other file is JSON lines, possibly gzipped, with ``id`` and ``vector``
    in each; other keys, such as ``contents``, are ignored.

    Returns
    -------
    ids : tuple of str, length n
    vectors : array, shape (n, m)
        Of the file's type, if it is float or has 8 bits; else float64. In an array alone, and in a large archive that
        is not compressed, as `numpy.savez` writes it, they are mapped.
    """
    if (array := array_of(path)) is not None:
        file, names = array
        vectors, ids = map_array(file, "fiu", 2), _read_ids(names)
    elif str(path).endswith(".npz"):
        names, vectors = read_arrays(path, ids=("Uiu", 1), vectors=("fiu", 2))
        ids = tuple(map(str, names.tolist()))
    else:
        ids, vectors = _read_vector_lines(path)
    if len(vectors) != len(ids) or not vectors.size:
        raise FormatError(path, None, f"{len(ids)} ids, and vectors of shape {vectors.shape}: give one for each id")
    for identifier in ids:
        _check_id(path, None, identifier)
    if vectors.dtype not in _KEPT:
        with np.errstate(over="ignore"):  # of longer floats, to infinity
            vectors = vectors.astype(np.float64)
    for first in range(0, len(vectors), BLOCK_ROWS):  # as a mapped file may be larger than memory
        finite = np.isfinite(vectors[first : first + BLOCK_ROWS]).all(axis=1)
        if not finite.all():
            example = ids[first + int(np.argmin(finite))]
            raise FormatError(path, None, f"the vector of {example!r} has a coordinate that is not finite")
    if len(set(ids)) < len(ids):
        raise FormatError(path, None, f"{Counter(ids).most_common(1)[0][0]!r} has two vectors; keep one")
    return ids, vectors


def open_vectors(path: str | Path) -> ArrayVectors:
    """Open the vectors of documents in a file."""
    return ArrayVectors(*read_vectors(path))


def array_of(path: str | Path) -> tuple[Path, Path] | None:
    """Return the files of an array and of its ids, if a path is a folder or an array alone; else None."""
    given = Path(path)
    if not os.path.isdir(given) and given.suffix != ".npy":
        return None
    ids = {*given.glob("*.ids.npy"), given / "ids.npy"}
    files = sorted({*given.glob("*.npy")} - ids) if os.path.isdir(given) else [given]
    if len(files) != 1:
        raise FormatError(path, None, f"has {len(files)} arrays of vectors (.npy): name a file, or leave one there")
    places = [files[0].parent / name.format(files[0].stem) for name in IDS]
    there = [place for place in places if os.path.isfile(place)]
    if not there:
        beside = list[str]()
        with suppress(OSError):
            beside = [place.name for place in files[0].parent.iterdir() if place != files[0] and place.is_file()]
        found = f"; {beside[0]!r:.60} beside it is not read" if len(beside) == 1 and files[0].is_file() else ""
        raise FormatError(files[0], None, f"has no ids: write them to {places[0].name}, one a line{found}")
    if len(there) > 1:
        raise FormatError(files[0], None, f"has ids in {there[0].name} and in {there[1].name}: leave one of them there")
    return files[0], there[0]


def _read_ids(path: Path) -> tuple[str, ...]:
    """Read identifiers: a line each, or an array."""
    if path.suffix == ".npy":
        return tuple(map(str, map_array(path, "Uiu", 1).tolist()))
    try:
        lines = read_bytes(path).decode("utf-8-sig").split("\n")
    except UnicodeDecodeError as error:
        raise FormatError(path, None, f"not UTF-8: {error.reason} at byte {error.start}") from None
    ids = tuple(line.removesuffix("\r") for line in (lines if lines[-1] else lines[:-1]))
    for number, identifier in enumerate(ids, 1):
        _check_id(path, number, identifier)
    return ids


def _check_id(path: str | Path, line: int | None, identifier: str) -> None:
    if not is_name(identifier):
        raise FormatError(path, line, f"id {identifier!r:.60} is empty or has white space")


def _read_vector_lines(path: str | Path) -> tuple[tuple[str, ...], Any]:
    ids: list[str] = []
    rows: list[list[float]] = []
    for number, record in read_json_lines(path):
        identifier, vector = record.get("id"), record.get("vector")
        if not isinstance(identifier, str) or not isinstance(vector, list) or not all(map(_is_number, vector)):
            raise FormatError(path, number, 'not of the form {"id": TEXT, "vector": [NUMBER, ...]}')
        if rows and len(vector) != len(rows[0]):
            raise FormatError(path, number, f"a vector of {len(vector)} coordinates after one of {len(rows[0])}")
        ids.append(identifier)
        try:
            rows.append(list(map(float, vector)))
        except OverflowError:
            raise FormatError(path, number, "a coordinate is beyond the range of float64") from None
    return tuple(ids), np.array(rows, dtype=np.float64).reshape(len(rows), -1)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
