"""``python -m tests.studies [NAME ...]``: every study whose data are at hand, checked against the scores it expects.

Writes `TABLE`, a row per study: commit, digest of the code, seconds, figures that differ. A study that was checked with
the code as it is, without a difference, is not run again, so that a call that was stopped goes on where it was.
"""

import ast
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from greylag.studies.study import load

ROOT = Path(__file__).parents[1]
TABLE = ROOT / "configs" / "CHECKED.md"
WORK = ROOT / "build" / "studies"
CODE = "plugin/greylag", "plugin/greylag_papers"
# Last digits depend on the processor, and change figures of maximum entropy, ensembles on scenes and coordinate ascent.
PROCESSOR = {"OPENBLAS_CORETYPE": "Haswell", "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR"}
HEADER = """\
# Studies, as they were last checked

`make studies` runs every experiment file whose data are at hand, compares all figures with those that it expects, and
writes this table. The digest is of the code of `plugin/greylag` and `plugin/greylag_papers` without comments and
docstrings: `make studies` names the studies that were not checked since it changed. OpenBLAS and NumPy take their loops
for AVX2 (`OPENBLAS_CORETYPE=Haswell`, `NPY_DISABLE_CPU_FEATURES`), as the last digits of others change figures of some.

| file | commit | code | time | figures | differing |
|---|---|---|---|---|---|
"""


class Row(NamedTuple):
    """A checked study."""

    file: str
    commit: str
    code: str
    time: str
    figures: int
    differing: str  # a number, or why there is none

    @property
    def holds(self) -> bool:
        """No figure differs."""
        return self.differing == "0"


def code_digest() -> str:
    """Digest the library's code as it runs: without comments, docstrings and layout."""
    digest = hashlib.sha256()
    for path in sorted(path for folder in CODE for path in (ROOT / folder).rglob("*.py")):
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            body = getattr(node, "body", None)
            if isinstance(body, list):
                node.body = [one for one in body if not _is_text(one)]
        digest.update(f"{path.relative_to(ROOT)}\n{ast.unparse(tree)}".encode())
    return digest.hexdigest()[:12]


def _is_text(node: ast.AST) -> bool:
    """Return whether a statement is a string alone, as a docstring is."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def read_table() -> dict[str, Row]:
    """Read the rows of `TABLE` by file."""
    lines = TABLE.read_text(encoding="utf-8").splitlines() if TABLE.exists() else []
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if line.startswith("| `")]
    return {row[0].strip("`"): Row(row[0].strip("`"), *row[1:4], int(row[4]), row[5]) for row in rows}


def write_table(rows: dict[str, Row]) -> None:
    """Write `TABLE`, sorted by file."""
    lines = [f"| `{row.file}` | " + " | ".join(map(str, row[1:])) + " |\n" for _, row in sorted(rows.items())]
    TABLE.write_text(HEADER + "".join(lines), encoding="utf-8")


def studies() -> Iterator[tuple[Path, int]]:
    """Yield the experiment files that expect scores, with the number of these."""
    for path in sorted([*(ROOT / "configs").glob("*.yaml"), *(ROOT / "plugin/greylag/demo").glob("*.yaml")]):
        expected = load(path)[1].expected
        if expected:
            yield path, sum(map(len, expected.values()))


def check(path: Path, figures: int, code: str) -> Row:
    """Run a study, and count the figures that are not as expected."""
    commit = subprocess.check_output(["git", "rev-parse", "--short=8", "HEAD"], cwd=ROOT, text=True)
    settings = load(path)[1]
    missing = [name for name in settings.paths() if not name.exists()]
    if missing or not settings.data_folder.exists():
        return Row(path.name, commit.strip(), code, "", figures, "no data")
    start, log = time.monotonic(), WORK / f"{path.stem}.log"
    with log.open("w") as output:
        command = [sys.executable, "-m", "greylag", "experiment", path, "--check", "--out", WORK / path.stem]
        ended = subprocess.run(
            command, check=False, cwd=ROOT, env=os.environ | PROCESSOR, stdout=output, stderr=subprocess.STDOUT
        ).returncode
    lines = log.read_text(encoding="utf-8").splitlines()
    differing = sum(", got " in line or ": measured, but not" in line for line in lines)
    # Exit code 1 without a figure that differs is a defect, as is a study that stopped.
    word = str(differing) if ended == (differing > 0) else f"stopped: {lines[-1] if lines else ended}"
    return Row(path.name, commit.strip(), code, str(timedelta(seconds=round(time.monotonic() - start))), figures, word)


def main(names: list[str]) -> int:
    """Check the studies of these names, by default all, the shortest first; return the exit code."""
    WORK.mkdir(parents=True, exist_ok=True)
    code, rows = code_digest(), read_table()
    every = dict(studies())
    rows = {path.name: rows[path.name] for path in every if path.name in rows}
    wanted = [path for path in every if not names or path.name in names or path.stem in names]
    for path in sorted(wanted, key=lambda path: rows[path.name].time.zfill(8) if path.name in rows else ""):
        if path.name not in rows or rows[path.name].code != code or not rows[path.name].holds:
            rows[path.name] = check(path, every[path], code)
            write_table(rows)
            print(*rows[path.name], sep="\t", flush=True)
    stale = [path.name for path in every if path.name not in rows or rows[path.name].code != code]
    failed = [row.file for row in rows.values() if not row.holds]
    print(f"{len(rows) - len(failed)} of {len(every)} studies are as expected")
    print(*(f"not as expected: {name}" for name in failed), sep="\n")
    print(*(f"not checked with this code: {name}" for name in stale), sep="\n")
    return bool(stale or [row for row in rows.values() if row.differing not in ("0", "no data")])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
