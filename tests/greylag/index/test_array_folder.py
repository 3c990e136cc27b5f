"""Folders of arrays; exports of indexes are tested in `test_export`."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from greylag.errors import CollectionError
from greylag.index.array_folder import ArraySource, Writer, open_arrays, places, verify_arrays
from greylag.index.invert import invert
from greylag.index.tables import DTYPES


def source_of(folder: Path, texts: dict[str, str], made: list[str]) -> ArraySource:
    def write(writer: Writer) -> None:
        made.append(str(texts))
        arrays = invert(texts)
        for name in DTYPES:
            writer.append(name, arrays[name])

    return ArraySource(
        name="texts",
        making="writing arrays",
        places=[folder / "texts"],
        fingerprint=f"{len(texts):016d}",
        dtypes=DTYPES,
        write=write,
        files=[],
        check=lambda: None,
    )


def test_arrays_are_made_once_and_again_if_damaged(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    made: list[str] = []
    source = source_of(tmp_path, {"1": "new york", "2": "york"}, made)
    assert verify_arrays(source) == f"{tmp_path / 'texts'}: none yet, it is made on first use"
    expected = invert({"1": "new york", "2": "york"})
    for _ in "12":
        opened = open_arrays(source)
        assert opened["fingerprint"] == expected["fingerprint"]
        for name in DTYPES:
            np.testing.assert_array_equal(opened[name], expected[name])
    assert len(made) == 1
    assert verify_arrays(source).endswith("all files have their checksums")
    file = opened["folder"] / "terms.npy"
    assert np.load(file).tobytes() == b"newyork"
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(CollectionError, match=r"terms\.npy is damaged: its checksum differs"):
        verify_arrays(source)
    assert open_arrays(source)["terms"].tobytes() == b"newyork"
    assert len(made) == 2
    assert "writing arrays of texts again" in caplog.text


def test_places(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", "/cache")
    beside, cached = places("index.greylag", Path("/data"), "/data/index")
    assert beside == Path("/data/index.greylag")
    assert cached.parent == Path("/cache/greylag")
    assert cached.name.startswith("index-")
