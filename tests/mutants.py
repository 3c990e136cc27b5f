"""``python -m tests.mutants COUNT [SEED]``: small faults in the code, which the tests of its own folder ought to find.

Each mutant is one change of the library's syntax tree: a comparison, a constant, arithmetic, a condition, a statement
that is left out. It runs in a copy of the project, against the test modules that name its module, and then against the
whole folder of tests. What no test finds is printed as a diff. mutmut and cosmic-ray draw no seeded sample and have one
command of tests for all modules; mutmut's trampolines cannot stand in a function that Numba compiles, either.
"""

import ast
import difflib
import os
import random
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from copy import copy
from pathlib import Path

ROOT = Path(__file__).parents[1]
COPIED = ("plugin", "tests", "configs", "qrels", "runs", "pyproject.toml", "README.md", "ARCHITECTURE.md", "Makefile")
PATIENCE = 3
"""A mutant that takes so many times as long as the tests take without it is found."""
COMPILING = 120
"""Seconds that Numba may need to compile a mutant."""
MEMORY = 4 << 30
"""Bytes of data of a process; a mutant that needs more is found."""
SWAPPED = {
    ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE, ast.GtE: ast.Gt, ast.Eq: ast.NotEq, ast.NotEq: ast.Eq,
    ast.In: ast.NotIn, ast.NotIn: ast.In, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.Add: ast.Sub, ast.Sub: ast.Add,
    ast.Mult: ast.Div, ast.Div: ast.Mult, ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult,
    ast.BitAnd: ast.BitOr, ast.BitOr: ast.BitAnd, ast.And: ast.Or, ast.Or: ast.And,
}  # fmt: skip
CALLED = {"sorted": "list", "min": "max", "max": "min", "any": "all", "all": "any"}
UNCHANGED = (ast.Raise, ast.Import, ast.ImportFrom)
"""Wording is not tested, and what is not imported ends every test."""


def mutants(node):
    """Nodes below this one with what may stand in place of each."""
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list"):
            continue
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and not isinstance(child, UNCHANGED) and not _is_docstring(child):
                yield from ((child, other) for other in others(child))
                if not isinstance(child, ast.JoinedStr):
                    yield from mutants(child)


def others(node):
    """What may stand in place of a node."""
    match node:
        case ast.Compare(ops=[operator]) | ast.BinOp(op=operator) | ast.BoolOp(op=operator) if (
            type(operator) in SWAPPED
        ):
            other = SWAPPED[type(operator)]()
            yield _changed(node, **({"ops": [other]} if isinstance(node, ast.Compare) else {"op": other}))
        case ast.Constant(value=bool()):
            yield ast.Constant(not node.value)
        case ast.Constant(value=int() | float()):
            yield from (ast.Constant(node.value + step) for step in (1, -1))
        case ast.UnaryOp(op=ast.Not()):
            yield node.operand
        case ast.If() | ast.IfExp() | ast.While():
            yield _changed(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.Call(func=ast.Name(id=name)) if name in CALLED:
            yield _changed(node, func=ast.Name(CALLED[name]))
        case ast.Expr() | ast.AugAssign() | ast.Continue() | ast.Break():
            yield ast.Pass()


def _changed(node, **fields):
    other = copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other


def _is_docstring(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def changed_source(source, node, other):
    """The source with another node in the place of one; of a statement with a body, the condition alone."""
    if isinstance(node, ast.If | ast.While) and isinstance(other, ast.If | ast.While):
        return changed_source(source, node.test, other.test)
    lines = [line.encode() for line in source.splitlines(keepends=True)]
    first = sum(map(len, lines[: node.lineno - 1])) + node.col_offset  # columns are bytes
    last = sum(map(len, lines[: node.end_lineno - 1])) + node.end_col_offset
    text = ast.unparse(other) if isinstance(other, ast.Pass) else f"({ast.unparse(other)})"
    content = b"".join(lines)
    return (content[:first] + text.encode() + content[last:]).decode()


def sample(place, count, seed):
    """Modules, by their path in the project, with their source and that of a mutant."""
    folder, found = place / "plugin/greylag", []
    for path in sorted(folder.rglob("*.py")):
        if path.name not in ("__init__.py", "__main__.py"):
            source = path.read_text(encoding="utf-8")
            found += [(path, source, *pair) for pair in mutants(ast.parse(source))]
    print(f"{len(found)} mutants, of which {count} are tried; seed {seed}", flush=True)
    for path, source, node, other in random.Random(seed).sample(found, min(count, len(found))):
        yield path.relative_to(place), source, changed_source(source, node, other)


def test_files(place, module):
    """The test modules of a module's folder, and others that say that they test it: those that name it, and all."""
    folder = Path("tests", *module.parent.parts[1:])
    name = ".".join(module.with_suffix("").parts[1:])
    elsewhere = {path for path in place.glob("tests/greylag/**/test_*.py") if f"`{name}`" in path.read_text()}
    found = sorted({*(place / folder).glob("test_*.py")} | elsewhere)
    everything = [str(path.relative_to(place)) for path in found]
    return [path for path in everything if name in (place / path).read_text() or module.stem in path], everything


def failure(place, files, seconds):
    """What fails of the tests in a copy of the project, within a time; nothing if they pass."""
    environment = {
        **os.environ, "PYTHONPATH": str(place / "plugin"), "NUMBA_CACHE_DIR": str(place / "numba"),
        "PYTHONDONTWRITEBYTECODE": "1",
    }  # fmt: skip
    words = [sys.executable, "-m", "pytest", "-q", "-x", "-rfE", "--tb=short", "-p", "no:cacheprovider", *files]
    with (
        tempfile.TemporaryFile("w+") as output,
        subprocess.Popen(
            words, cwd=place, env=environment, stdout=output, stderr=output, start_new_session=True
        ) as process,
    ):
        try:
            if process.wait(seconds) == 0:
                return ""
        except subprocess.TimeoutExpired:
            return f"no end after {seconds:.0f} s"
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)  # with what it has started
        output.seek(0)
        return "".join(output.readlines()[-40:])


def main(count, seed):
    """Try mutants, and print those that survive."""
    resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))  # the tests inherit it
    survivors, tried, baselines = [], 0, dict[tuple[str, ...], float]()
    with tempfile.TemporaryDirectory() as scratch:
        place, warm = Path(scratch, "project"), Path(scratch, "numba")
        for name in COPIED:
            if (ROOT / name).is_dir():
                shutil.copytree(ROOT / name, place / name, symlinks=True, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                place.mkdir(exist_ok=True)
                shutil.copy2(ROOT / name, place / name)
        (place / "numba").mkdir()
        for module, source, changed in sample(place, count, seed):
            own, everything = test_files(place, module)
            began = time.monotonic()
            if tuple(everything) not in baselines:
                if wrong := failure(place, everything, 3600):
                    sys.exit(f"{wrong}the tests of {Path(everything[0]).parent} fail without a mutant")
                baselines[tuple(everything)] = time.monotonic() - began
                shutil.rmtree(warm, ignore_errors=True)
                shutil.copytree(place / "numba", warm)
                began = time.monotonic()
            times = (place / module).stat()
            (place / module).write_text(changed, encoding="utf-8")
            seconds = PATIENCE * baselines[tuple(everything)] + COMPILING
            rest = [path for path in everything if path not in own]
            lives = not any(failure(place, files, seconds) for files in (own, rest) if files)
            (place / module).write_text(source, encoding="utf-8")
            os.utime(place / module, ns=(times.st_atime_ns, times.st_mtime_ns))
            shutil.rmtree(place / "numba")  # no other mutant may run its machine code
            shutil.copytree(warm, place / "numba")
            tried += 1
            diff = difflib.unified_diff(source.splitlines(), changed.splitlines(), str(module), "mutant", "", "", 1, "")
            if lives:
                survivors.append("\n".join(diff))
                print(survivors[-1])
            print(
                f"{tried}: {'survives' if lives else 'found'}, {module}, {time.monotonic() - began:.0f} s", flush=True
            )
    print(f"{tried} mutants: {tried - len(survivors)} found, {len(survivors)} survive")


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:]]
    main(numbers[0] if numbers else 100, numbers[1] if len(numbers) > 1 else int(time.time()))
