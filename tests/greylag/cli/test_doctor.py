"""The checks of an installation and of an index.

Tests `greylag.lucene.doctor`.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

from tests.greylag.cli.conftest import Command, Refused


def test_checks_and_exit_codes(command: Command, refused: Refused, made: Path, tmp_path: Path) -> None:
    code, out, _ = command("doctor", "--index", made / "index")
    assert code == 0
    *lines, last = out.splitlines()
    assert last == "greylag is ready"
    assert [line.split(":")[0].split() for line in lines] == [
        ["note" if name == "import" and "first, starts" not in out else "ok", name]
        for name in ("versions", "Java", "Pyserini", "JVM", "import", "index", "positions", "integrity", "export")
    ]
    again = shutil.copytree(made / "index", tmp_path / "again")
    code, out, _ = command("doctor", "--index", made / "index", "--index", again)
    assert code == 1
    assert re.search(r"ok +positions: .*\n.*\nmissing +export: |missing +index: the docid .* is in .* and in", out)
    assert "there is no such folder" in refused("doctor", "--index", tmp_path / "none")
    code, out, _ = command("doctor", "--index", tmp_path)
    assert code == 1
    assert re.search(r"missing +index: .* is not a Lucene index", out)
    assert re.fullmatch(r"greylag is not ready: index missing .*", out.splitlines()[-1])
