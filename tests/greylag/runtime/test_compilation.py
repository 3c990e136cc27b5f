"""Compiled loops, with a cache that cannot be written or is damaged."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

import greylag

MODULE = """
import logging, sys
logging.basicConfig(format="%(message)s")
from greylag.runtime.compilation import compiled

@compiled(error_model="numpy")
def twice(x):
    return 2 * x

print(twice(21), sum(twice.stats.cache_hits.values()))
"""


def run(folder: Path, **environment: str) -> tuple[str, str]:
    """What a compiled module prints, and its warnings."""
    plugin = str(Path(greylag.__file__).parents[1])
    path = os.environ["PATH"]
    done = subprocess.run(
        [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(folder)!r}); import module"],
        env={"PATH": path, "PYTHONPATH": plugin, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        cwd=folder.parent,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "module.py").write_text(MODULE)
    return tmp_path / "package"


def test_a_damaged_cache_is_replaced(folder: Path) -> None:
    assert run(folder) == ("42 0\n", "")
    assert run(folder) == ("42 1\n", "")
    (cache,) = (folder / "__pycache__").glob("*.nbi")
    cache.write_bytes(b"")
    printed, warning = run(folder)
    assert printed == "42 0\n"
    assert warning.startswith("Numba's cache failed (EOFError")
    assert run(folder) == ("42 1\n", "")


EVERYTHING = """
import sys
import numpy as np
from greylag.runtime.compilation import compiled

@compiled()
def inner(x):
    if x.size == 0:
        raise ValueError("nothing")
    return np.append(x, x.sum())

@compiled()
def outer(word, x):
    numbers = {word: 7}
    return numbers[word], hash(word), inner(x).max(), x @ x, np.log1p(x[0])

print(outer("dog", np.array([3.0, 1.0])) == (7, hash("dog"), 4.0, 10.0, np.log(4.0)))
without = "numba.typed.typedlist" not in sys.modules
try: inner(np.empty(0))
except ValueError as error: print(error)
print(without, sum(outer.stats.cache_hits.values()), sum(inner.stats.cache_hits.values()))
"""


def test_cached_code_runs_without_the_compiler(folder: Path) -> None:
    """Memory, hashes of texts, BLAS, log1p and exceptions work."""
    (folder / "module.py").write_text(EVERYTHING)
    assert run(folder)[0] == "True\nnothing\nFalse 0 0\n"
    assert run(folder)[0] == "True\nnothing\nTrue 1 1\n"


def test_compiling_is_announced_once(folder: Path) -> None:
    more = "\n\n@compiled()\ndef thrice(x):\n    return 3 * x\n\nthrice(1)\n"
    (folder / "module.py").write_text(MODULE.replace("basicConfig(", "basicConfig(level=logging.INFO, ") + more)
    announced = "compiling for this machine; this happens once after an installation or an update\n"
    assert run(folder) == ("42 0\n", announced)
    assert run(folder) == ("42 1\n", "")


def test_without_a_place_for_a_cache(folder: Path) -> None:
    (folder / "__pycache__").write_text("not a folder")
    (folder.parent / "home").write_text("not a folder")
    expected = (
        "compiled code cannot be cached, so every process compiles it again; set NUMBA_CACHE_DIR to a writable folder"
    )
    assert run(folder, HOME=str(folder.parent / "home")) == ("42 0\n", f"{expected}\n")
    assert run(folder, HOME="~") == ("42 0\n", f"{expected}\n")
    assert sorted(os.listdir(folder.parent)) == ["home", "package"]
    for hits in (0, 1):
        assert run(folder, HOME="~", NUMBA_CACHE_DIR=str(folder.parent / "cache")) == (f"42 {hits}\n", "")


def test_a_full_disk_is_no_error(folder: Path) -> None:
    code = MODULE.replace("print(", "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (9, 9))\nprint(", 1)
    (folder / "module.py").write_text(code)
    printed, warning = run(folder)
    assert printed == "42 0\n"
    assert warning.startswith("Numba's cache failed (OSError: [Errno 27] File too large")
