"""Files of vectors."""

from __future__ import annotations

import gzip
from pathlib import Path

import numpy as np
import pytest

from greylag.errors import FormatError
from greylag.vectors import read_vectors


def test_both_forms_hold_the_same(tmp_path: Path) -> None:
    rows = [[0.5, -2.0], [1.0, 3.0]]
    np.savez(tmp_path / "v.npz", ids=np.array(["d1", "d2"]), vectors=np.array(rows, dtype=np.float32))
    lines = b'{"id": "d1", "contents": "x", "vector": [0.5, -2]}\n\n{"id": "d2", "vector": [1, 3.0]}\n'
    (tmp_path / "v.jsonl.gz").write_bytes(gzip.compress(lines))
    for name, kind in (("v.npz", np.float32), ("v.jsonl.gz", np.float64)):
        ids, vectors = read_vectors(tmp_path / name)
        assert (ids, vectors.tolist(), vectors.dtype) == (("d1", "d2"), rows, kind)
    np.savez(tmp_path / "whole.npz", ids=np.array([7, 8]), vectors=np.array([[1], [2]]))
    assert read_vectors(tmp_path / "whole.npz")[0] == ("7", "8")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "is empty"),
        ("\n \n", "is empty"),
        ('{"id": "a", "vector": [1%s]}' % ("0" * 400), "1: a coordinate is beyond the range of float64"),
        ('{"id": "a"}', "1: not of the form"),
        ('{"id": 3, "vector": [1]}', "1: not of the form"),
        ('{"id": "a", "vector": [true]}', "1: not of the form"),
        ('{"id": "a", "vector": ["1"]}', "1: not of the form"),
        ('{"id": "a", "vector": []}', "vectors of shape"),
        ('{"id": "a", "vector": [1]}\n{"id": "b", "vector": [1, 2]}', "2: a vector of 2 coordinates after one of 1"),
        ('{"id": "a", "vector": [1]}\n{"id": "a", "vector": [2]}', "'a' has two vectors; keep one"),
        ('{"id": "a b", "vector": [1]}', "id 'a b' is empty or has white space"),
        ('{"id": "a", "vector": [1e999]}', "not finite|JSON"),
    ],
)
def test_lines_that_are_no_vectors(tmp_path: Path, text: str, reason: str) -> None:
    (tmp_path / "v.jsonl").write_text(text)
    with pytest.raises(FormatError, match=reason):
        read_vectors(tmp_path / "v.jsonl")


def test_archives_that_hold_no_vectors(tmp_path: Path) -> None:
    file = tmp_path / "v.npz"
    for arrays, reason in (
        ({"ids": np.array(["a"])}, "not an archive with the arrays ids and vectors"),
        ({"ids": np.array(["a"]), "vectors": np.zeros(3)}, "1 ids, and vectors of shape"),
        ({"ids": np.array(["a", "b"]), "vectors": np.zeros((1, 2))}, "2 ids, and vectors of shape"),
        ({"ids": np.array(["a"]), "vectors": np.array([["x"]])}, "and type <U1"),
        ({"ids": np.array(["a"], dtype=object), "vectors": np.zeros((1, 2))}, "cannot be read as a NumPy archive"),
        ({"ids": np.array(["a"]), "vectors": np.array([[np.nan]])}, "the vector of 'a' has a coordinate that is not"),
    ):
        np.savez(file, **arrays)  # type: ignore[arg-type]
        with pytest.raises(FormatError, match=reason):
            read_vectors(file)
    file.write_bytes(b"not an archive")
    with pytest.raises(FormatError, match="cannot be read as a NumPy archive"):
        read_vectors(file)
