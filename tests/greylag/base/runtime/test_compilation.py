"""Compiled loops, with and without a folder for the cache."""

import gc
import os
from collections import defaultdict
from pathlib import Path
from types import SimpleNamespace

import pytest
from numba.core.event import Listener, install_listener
from tests.processes import python

import greylag
from greylag.base.runtime import compilation

MODULE = """
import logging, sys
logging.basicConfig(format="%(message)s")
from greylag.base.runtime.compilation import compiled

@compiled(error_model="numpy")
def twice(x):
    return 2 * x

print(twice(21), sum(twice.stats.cache_hits.values()))
"""


def run(folder, **environment):
    """What a compiled module prints, and its warnings."""
    plugin = str(Path(greylag.__file__).parents[1])
    path = os.environ["PATH"]
    done = python(
        "-c",
        f"import sys; sys.path.insert(0, {str(folder)!r}); import greylag_module",
        env={"PATH": path, "PYTHONPATH": plugin, "PYTHONDONTWRITEBYTECODE": "1", **environment},
        cwd=folder.parent,
        check=True,
    )
    return done.stdout, done.stderr


@pytest.fixture
def folder(tmp_path):
    (tmp_path / "package").mkdir()
    (tmp_path / "package" / "greylag_module.py").write_text(MODULE)
    return tmp_path / "package"


def test_compiling_is_announced_once(folder):
    more = "\n\n@compiled()\ndef thrice(x):\n    return 3 * x\n\nthrice(1)\n"
    (folder / "greylag_module.py").write_text(MODULE.replace("basicConfig(", "basicConfig(level=logging.INFO, ") + more)
    announced = "compiling loops on first use; greylag compile does this ahead of time\n"
    assert run(folder) == ("42 0\n", announced)
    assert run(folder) == ("42 1\n", "")


def test_compiling_is_announced_where_logging_is_not_set_up(folder):
    bare = MODULE.replace('logging.basicConfig(format="%(message)s")', "")
    (folder / "greylag_module.py").write_text(bare)
    assert run(folder) == ("42 0\n", "compiling loops on first use; greylag compile does this ahead of time\n")
    assert run(folder) == ("42 1\n", "")


def test_no_thread_compiles_a_function_whose_callees_are_not_ready(monkeypatch):
    """Until the last function of a module has its place there, none of them can be called without waiting."""
    seen = []

    def njit(**_):
        seen.append([loop._dispatcher is not None for loop in loops])
        return lambda function: function

    monkeypatch.setattr(compilation, "_numba", lambda: SimpleNamespace(njit=njit))
    monkeypatch.setattr(compilation, "_waiting", defaultdict(list))
    module = {"__name__": "some_module"}
    exec("def twice(x): return 2 * x\ndef four_times(x): return twice(twice(x))", module)
    loops = [compilation.compiled()(module[name]) for name in ("four_times", "twice")]
    module |= {"four_times": loops[0], "twice": loops[1]}
    assert loops[0](3) == 12
    assert seen == [[False, False], [False, False]]


@pytest.mark.parametrize("before", [True, False])
def test_no_cycles_are_looked_for_while_a_function_is_compiled(before):
    seen = []

    class Seen(Listener):
        def on_start(self, event):
            seen.append(gc.isenabled())

        def on_end(self, event):
            pass

    numba = compilation._numba()
    inner = numba.njit(lambda x: x + 1)
    (gc.enable if before else gc.disable)()
    with install_listener("numba:compile", Seen()):
        numba.njit(lambda x: 2 * inner(x))(3)
    after = gc.isenabled()
    gc.enable()
    assert seen == [False, False]
    assert after == before


def test_other_loops_of_a_process_have_linear_algebra(folder):
    """Although greylag's own do without SciPy's, which Numba would import at once."""
    more = """
import numba, numpy as np
print("scipy.linalg" in sys.modules)
square = numba.njit(lambda x: (np.cov(x), x @ x, np.linalg.inv(x)))(np.array([[1.0, 2.0], [3.0, 5.0]]))
print(*(part.ravel().round(9).tolist() for part in square))
"""
    (folder / "greylag_module.py").write_text(MODULE + more)
    lines = run(folder)[0].splitlines()
    assert lines == ["42 0", "False", "[0.5, 1.0, 1.0, 2.0] [7.0, 12.0, 18.0, 31.0] [-5.0, 2.0, 3.0, -1.0]"]


def test_without_a_place_for_a_cache(folder):
    (folder / "__pycache__").write_text("not a folder")
    (folder.parent / "home").write_text("not a folder")
    expected = (
        "compiled code cannot be cached, so every process compiles it again; set NUMBA_CACHE_DIR to a writable folder"
    )
    home = str(folder.parent / "home")
    assert run(folder, HOME=home) == ("42 0\n", f"{expected}\n")
    for hits in (0, 1):
        assert run(folder, HOME=home, NUMBA_CACHE_DIR=str(folder.parent / "cache")) == (f"42 {hits}\n", "")
