"""``greylag compile``."""

import os
import re

import pytest

from greylag import PositionalIndex
from tests.processes import python


@pytest.mark.long
def test_all_is_compiled_ahead(command, refused):
    code, out, _ = command("compile")
    assert code == 0
    lines = out.splitlines()
    assert all(re.fullmatch(r" *\d+\.\d s  [a-zA-Z0-9 ]+", line) for line in lines)
    assert {"reranking of passages", "features of texts", "features of index files"} <= {line[10:] for line in lines}
    assert "unexpected extra argument" in refused("compile", "search")


COUNT = """
import sys
from numba.core.event import Listener, register
from greylag.__main__ import main
class Counting(Listener):
    def on_start(self, event):
        function = event.data["dispatcher"].py_func
        if function.__module__.startswith("greylag"):
            print("compiled", function.__module__, function.__name__)
    def on_end(self, event):
        pass
register("numba:compile", Counting())
sys.argv[0] = "greylag"
main()
"""


@pytest.mark.long
def test_nothing_is_left_to_compile_for_ranking(made, tmp_path):
    """In a cache of its own, in which nothing is at first; the files of the index are there."""
    PositionalIndex.from_lucene(made / "index").words  # noqa: B018
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def compiled(*words):
        done = python("-c", COUNT, *words, env=environment, check=True)
        assert "greylag compile does this ahead" not in done.stderr
        return [line for line in done.stdout.splitlines() if line.startswith("compiled")]

    given = "--index", made / "index", "--topics", made / "topics.tsv"
    assert compiled("compile")
    assert compiled("search", *given, "--out", tmp_path / "run") == []
    again = "rerank", *given, "--run", tmp_path / "run", "--out", tmp_path / "out"
    for more in ((), ("--stage", "mmr"), ("--stage", "rm3"), ("--stage", "manifold"), ("--stage", "dpp")):
        assert compiled(*again, *more) == []
