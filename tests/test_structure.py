"""The project's shape: which way imports point, what importing costs, what is public."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import greylag

PACKAGE = Path(greylag.__file__).parent
LEVELS = [
    {"errors"},
    {"ranking"},
    {"files"},
    {"folders"},
    {"trec"},
    {"evaluation"},
    {"lucene"},
    {"index"},
    {"model_files"},
    {"greedy"},
    {"features", "structured"},
    {"diversity"},
    {"selection"},
    {"ltr", "manifold"},
    {"experiments"},
    {"cli"},
]


def part_of(module: str) -> str:
    return module.split(".")[1] if "." in module else ""


def imports(path: Path) -> set[str]:
    found = set()
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("greylag"):
            found |= {node.module} if node.module != "greylag" else {f"greylag.{alias.name}" for alias in node.names}
    return {module for module in found if module != "greylag.__version__"}


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_imports_point_one_way(path: Path) -> None:
    level = {part: number for number, parts in enumerate(LEVELS) for part in parts}
    own = path.relative_to(PACKAGE).with_suffix("").parts[0]
    if own == "__init__":
        return
    for module in imports(path):
        other = part_of(module)
        if other != own:
            assert level[other] < level[own], f"{own} imports {module}"


def test_importing_greylag_loads_nothing_heavy() -> None:
    code = "import greylag, sys; print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    heavy = {"numpy", "jnius", "pyserini", "numba", "pandas", "sklearn", "matplotlib", "scipy", "typer", "pydantic"}
    assert not heavy & set(loaded)


def test_help_loads_nothing_heavy() -> None:
    code = (
        "import sys; sys.argv = ['greylag', '--help']; from greylag.cli import main\n"
        "try: main()\nexcept SystemExit: print(*sys.modules)"
    )
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "evaluate" in shown
    heavy = {"numpy", "jnius", "pyserini", "numba", "pandas", "sklearn", "matplotlib", "scipy", "pydantic"}
    assert not heavy & set(shown.split())


def test_public_names_are_sorted_and_there() -> None:
    assert greylag.__all__ == sorted(greylag.__all__)
    for name in greylag.__all__:
        assert getattr(greylag, name).__doc__
    assert set(greylag.__all__) <= set(dir(greylag))
    with pytest.raises(AttributeError, match="nothing"):
        greylag.nothing  # noqa: B018


@pytest.mark.parametrize("path", sorted(PACKAGE.rglob("*.py")), ids=lambda path: str(path.relative_to(PACKAGE)))
def test_modules_stay_short(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= 330


def test_only_the_index_touches_java() -> None:
    for path in PACKAGE.rglob("*.py"):
        if "jnius" in path.read_text():
            assert path.parent == PACKAGE / "lucene", path
