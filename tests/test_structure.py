"""The project's structure: imports, public names, and where tests are."""

import ast
import os
import re
from functools import cache
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import get_origin

import pytest

import greylag
import greylag_papers
from greylag.features.stage_registry import find_stage, registered_stages
from tests.processes import python

ROOT = Path(__file__).parents[1]
PACKAGES = {"greylag": Path(greylag.__file__).parent, "greylag_papers": Path(greylag_papers.__file__).parent}
# Each level of wings may import from those above it.
WINGS = [
    {"base"},
    {"evaluation", "index"},
    {"features"},
    {"learning"},
    {"diversity", "rankers"},
    {"recipes"},
    {"passages", "testing"},
    {"studies"},
    {"cli"},
]
# Each level of a wing's rooms may import from those above it; "" are modules that are in no room.
ROOMS = {
    "base": [{"errors"}, {"core"}, {"ranking", "runtime"}, {"doors"}, {"greedy", "pipeline"}],
    "evaluation": [{"trec"}, {"fusion", "scoring"}, {"reports"}],
    "index": [{"languages"}, {"lucene"}, {""}, {"vectors"}],
    "features": [{""}, {"learned"}],
    "learning": [{"data"}, {"linesearch"}, {""}, {"structured"}],
    "rankers": [{"manifold"}, {""}],
    "passages": [{"adapters", "held"}, {"reranking"}, {"retriever"}],
}
HEAVY = {"numpy", "jnius", "pyserini", "numba", "pandas", "sklearn", "matplotlib", "scipy", "pydantic"}
NATIVE = {"jnius", "numba", "scipy", "joblib", "yaml"}
"""What a command imports once it needs it, and not to read its options."""


def module_name(path):
    """The name of the module in a file of one of the packages."""
    package = next(folder for folder in PACKAGES.values() if path.is_relative_to(folder))
    parts = path.relative_to(package.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for folder in PACKAGES.values() for path in sorted(folder.rglob("*.py"))}
LIBRARY = {name: path for name, path in MODULES.items() if name.split(".")[0] == "greylag"}
REPRODUCTIONS = {name: path for name, path in MODULES.items() if name not in LIBRARY}
PUBLIC = sorted(name for name, path in LIBRARY.items() if path.with_suffix(".pyi").exists())
PUBLIC_MODULES = ("greylag.testing",)  # without a stub, since it is one module
BETWEEN_WINGS = "# isort: split"
"""Parts the names for users from those for other wings alone in a wing's stub."""
NAMES = Path(__file__).with_name("public_names.txt")


@cache
def homes(package, *, users=False):
    """The modules of the names that a package's stub lists, or of those for `users` alone."""
    stub = MODULES[package].with_suffix(".pyi")
    if MODULES[package].name != "__init__.py" or not stub.exists():
        return {}
    text = stub.read_text().partition(BETWEEN_WINGS)[0] if users else stub.read_text()
    imports = [node for node in ast.parse(text).body if isinstance(node, ast.ImportFrom) and node.level]
    return {alias.name: f"{package}.{node.module or alias.name}" for node in imports for alias in node.names}


def home(module, name):
    """The module that ``from module import name`` imports in the end."""
    if f"{module}.{name}" in MODULES:
        return f"{module}.{name}"
    return home(homes(module)[name], name) if name in homes(module) else module


def imported(path):
    """The imports in a file, at any place, as pairs of a module of ours and a name in it ("" for the module)."""
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.ImportFrom):
            assert not node.level, f"{path}:{node.lineno}: relative import"
            if node.module and node.module.split(".")[0] in PACKAGES:
                yield from ((node.module, alias.name) for alias in node.names)
        elif isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names if alias.name.split(".")[0] in PACKAGES)


def wing(module):
    """The wing of a module of greylag."""
    return module.split(".")[1]


def room(module):
    """The room of a module in its wing; "" for a module in none."""
    _, name, first, *_ = *module.split("."), ""
    return first if any(first in level for level in ROOMS[name]) else ""


def level(levels, name):
    """The place of a name in levels."""
    return next(number for number, names in enumerate(levels) if name in names)


WINGS_OF = sorted(LIBRARY.keys() - {"greylag", "greylag.__main__"})


@pytest.mark.parametrize("module", WINGS_OF)
def test_wings_import_what_others_list_and_point_one_way(module):
    for imported_module, name in imported(LIBRARY[module]):
        other = home(imported_module, name)
        assert other in LIBRARY, f"{module} imports {other}"
        if other != "greylag" and wing(other) != wing(module):
            assert level(WINGS, wing(other)) < level(WINGS, wing(module)), f"{module} imports {other}"
            assert imported_module == f"greylag.{wing(other)}", f"{module} imports from {imported_module}"
            listed = imported_module in PUBLIC_MODULES or name in homes(imported_module)
            assert listed, f"{imported_module} does not list {name}, which {module} imports"
        elif f"{imported_module}.{name}" not in MODULES:
            assert imported_module != f"greylag.{wing(module)}", f"{module} imports its own wing's {name}"


@pytest.mark.parametrize("module", [name for name in WINGS_OF if wing(name) in ROOMS])
def test_rooms_of_a_wing_point_one_way(module):
    levels = ROOMS[wing(module)]
    for imported_module, name in imported(LIBRARY[module]):
        other = home(imported_module, name)
        if other != "greylag" and wing(other) == wing(module) and room(other) != room(module):
            assert level(levels, room(other)) < level(levels, room(module)), f"{module} imports {other}"


def test_no_name_crosses_in_vain():
    """A stub's second part has what other wings import, and nothing else."""
    crossing = {
        (other, name)
        for module, path in LIBRARY.items()
        for other, name in imported(path)
        if other in PUBLIC and not module.startswith(f"{other}.")
    }
    for package in PUBLIC:
        only = homes(package).keys() - homes(package, users=True).keys()
        assert {name for name in only if (package, name) not in crossing} == set(), package


@pytest.mark.parametrize(
    "module",
    [
        "greylag.evaluation.fusion",
        "greylag.evaluation.scoring.scores",
        "greylag.learning.structured.cutting_plane",
        "greylag.diversity.mmr",
        "greylag.learning.greedy",
    ],
)
def test_reading_one_thing_does_not_mean_reading_all(module):
    """A fusion method, a measure, a diversifier and learners each load little of the package."""
    code = f"import {module}, sys; print(*(name for name in sys.modules if name.startswith('greylag')))"
    loaded = python("-c", code, check=True).stdout.split()
    lines = {name: len(LIBRARY[name].read_text().splitlines()) for name in LIBRARY}
    assert sum(lines[name] for name in loaded) < 6000  # and not a share, which taking lines away elsewhere would raise


def test_no_import_hides_in_a_string():
    """Modules of ours are imported by statements, but for those that are entry points."""
    for name, path in MODULES.items():
        if name != "greylag.cli":  # the command line imports a command's module when it is used
            assert not re.search(r"import_module\(\W*(greylag|[A-Z])", path.read_text()), name


def test_no_imports_in_circles():
    graph = {
        module: {home(other, name) for other, name in imported(path)} - {module} for module, path in MODULES.items()
    }
    TopologicalSorter(graph).prepare()  # raises CycleError, which names the modules of a circle


def test_only_models_read_their_provenance():
    """What was tried and chosen are fields of what was fitted; provenance is for files, and is extended alone."""
    for name, path in LIBRARY.items():
        if name == "greylag.recipes.general":  # its models are files, which have the weights by collection there
            continue
        tree = ast.parse(path.read_text())
        mappings = [node for node in ast.walk(tree) if isinstance(node, ast.Dict)]
        extended = [value for node in mappings for key, value in zip(node.keys, node.values, strict=True) if not key]
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and node.attr == "provenance" and node not in extended:
                assert ast.unparse(node.value) in ("self", "greylag.evaluation.reports"), f"{name}:{node.lineno}"
                assert "SavedModel" in path.read_text(), f"{name}:{node.lineno}"


def test_recipes_are_not_told_apart_by_class_or_name():
    """Callers know from properties in what recipes differ."""
    for path in LIBRARY.values():
        found = re.search(r"isinstance\([^()]*Recipe[^()]*\)|[=!]= .automatic.", path.read_text())
        assert not found, f"{path}: {found}"


@pytest.mark.parametrize("module", sorted(REPRODUCTIONS))
def test_reproductions_import_public_names_only(module):
    private = {
        name
        for other, name in imported(REPRODUCTIONS[module])
        if other.split(".")[0] == "greylag" and other not in PUBLIC_MODULES
        if other not in PUBLIC or name not in {*homes(other, users=True), "__version__"}
    }
    assert private == set()


def test_importing_greylag_loads_nothing_heavy():
    code = "import greylag, sys; print(*sys.modules)"
    loaded = python("-c", code, check=True).stdout.split()
    assert not (HEAVY | {"typer"}) & set(loaded)
    assert {name for name in loaded if name.split(".")[0] in PACKAGES} == {"greylag"}


@pytest.mark.parametrize(
    ("command", "heavy"),
    [
        ("", HEAVY),
        ("train ", {"jnius", "pandas", "sklearn", "matplotlib"}),
        ("evaluate ", NATIVE),
        ("fuse ", NATIVE | {"greylag.learning.linesearch"}),
        ("search ", NATIVE | {"greylag.features.extract"}),
        ("rerank ", NATIVE | {"greylag.rankers.model", "greylag.diversity.stage"}),
        ("explain ", NATIVE | {"greylag.evaluation.reports.charts", "greylag.recipes.general", "greylag.cli.search"}),
    ],
)
def test_help_loads_nothing_heavy(command, heavy):
    code = (
        f"import sys; sys.argv = 'greylag {command}--help'.split(); from greylag.cli import main\n"
        "try: main()\nexcept SystemExit: print(*sys.modules)"
    )
    shown = python("-c", code, check=True).stdout
    assert f"greylag {command}[OPTIONS]" in shown
    assert not heavy & set(shown.split())


FILES = {
    "a.run": "1 Q0 d1 1 2.0 a\n1 Q0 d2 2 1.0 a\n2 Q0 d3 1 1.5 a\n",
    "b.run": "1 Q0 d2 1 2.0 b\n1 Q0 d1 2 1.0 b\n2 Q0 d3 1 1.5 b\n",
    "qrels.txt": "1 0 d1 1\n1 0 d2 0\n2 0 d3 2\n",
    "train.txt": "1 qid:1 1:0.5 # d1\n0 qid:1 1:0.4 # d2\n2 qid:2 1:0.3 # d3\n",
    "topics.tsv": "1\tcat\n2\tdog\n",
}


@pytest.mark.parametrize(
    "words",
    [
        "evaluate a.run b.run --qrels qrels.txt",
        "evaluate a.run b.run --qrels train.txt",
        "pool a.run b.run --depth 2 --out pool.txt",
        "check a.run --topics topics.tsv",
    ],
)
def test_judging_loads_nothing_that_learns(words, tmp_path):
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    code = (
        f"import sys; sys.argv = 'greylag {words}'.split(); from greylag.cli import main\n"
        "try: main()\nexcept SystemExit as end: print(end.code or 0, *sys.modules)"
    )
    code, *loaded = python("-c", code, check=True, cwd=tmp_path).stdout.splitlines()[-1].split()
    assert code == "0"
    assert not {"numba", "sklearn", "nltk", "greylag.learning"} & set(loaded)


def test_comparing_loads_no_pydantic(tmp_path):
    """In Python; in the shell, Typer does."""
    for name, content in FILES.items():
        (tmp_path / name).write_text(content)
    code = "import greylag, sys; greylag.compare({'a': 'a.run', 'b': 'b.run'}, 'qrels.txt'); print(*sys.modules)"
    loaded = python("-c", code, check=True, cwd=tmp_path).stdout.split()
    assert not {"pydantic", "numba", "sklearn", "nltk", "typer", "greylag.learning"} & set(loaded)


def test_a_short_command_looks_for_no_cycles():
    """Neither while it imports, as 700 new objects would make it do, nor at its end, when all that there is would."""
    code = (
        "import gc, sys; sys.argv = 'greylag explain general'.split(); from greylag.__main__ import main\n"
        "looked = []; gc.callbacks.append(lambda phase, info: looked.append(phase))\n"
        "try: main()\nexcept SystemExit: print(len(looked), len(gc.get_objects()))"
    )
    looked, left = python("-c", code, check=True).stdout.split()[-2:]
    assert int(looked) == 0
    assert int(left) < 1000  # all else is frozen


@pytest.mark.parametrize("package", sorted(name for name, path in LIBRARY.items() if path.name == "__init__.py"))
def test_packages_are_public(package):
    """A wing loads the names that it lists lazily, from a stub; its rooms list none."""
    assert (package in PUBLIC) == (package.count(".") < 2 and package != "greylag.cli")


@pytest.mark.parametrize("package", PUBLIC)
def test_public_names_are_sorted_documented_and_there(package):
    module, modules = import_module(package), {name.removeprefix(f"{package}.") for name in MODULES}
    assert sorted(homes(package)) == module.__all__
    for name in module.__all__:
        value = getattr(module, name)
        assert value.__doc__ or not callable(value) or get_origin(value), name
        if not isinstance(value, ModuleType):
            assert name not in modules, f"{package}.{name} is a module, too"
    assert set(module.__all__) <= set(dir(module))
    with pytest.raises(AttributeError, match="nothing"):
        module.nothing  # noqa: B018


def public_names():
    """All public names, with the package or module that they are imported from."""
    stubs = [f"{package}.{name}" for package in PUBLIC for name in homes(package, users=True)]
    modules = []
    for module in PUBLIC_MODULES:
        for node in ast.parse(MODULES[module].read_text()).body:
            targets = node.targets if isinstance(node, ast.Assign) else [node]
            names = [getattr(target, "id", getattr(target, "name", "_")) for target in targets]
            modules += [f"{module}.{name}" for name in names if name[0] != "_"]
    return sorted(stubs) + sorted(modules)


def test_the_public_names_are_those_of_the_list():
    """A name becomes public, or ceases to be, by a change of the list, too: `make names` writes it."""
    names = "\n".join(public_names()) + "\n"
    if os.environ.get("GREYLAG_GOLDEN") == "write":
        NAMES.write_text(names)
    assert NAMES.read_text() == names


def test_tests_are_in_the_folder_of_what_they_test():
    """A folder of tests is for a folder of the packages, and each test module for a module there or for its whole."""
    for package, folder in PACKAGES.items():
        for path in (ROOT / "tests" / package).rglob("test_*.py"):
            tested = folder / path.parent.relative_to(ROOT / "tests" / package)
            assert tested.is_dir(), path


def test_a_module_is_named_by_what_tests_it():
    """By the name of a test module in the folder of the same name, in a test module's docstring, or as a stage."""
    named = {find_stage(name).__module__ for name in registered_stages()}  # which the contract tests
    for path in (ROOT / "tests").rglob("test_*.py"):
        folder = ".".join(path.parent.relative_to(ROOT / "tests").parts)
        named.add(f"{folder}.{path.stem.removeprefix('test_')}")
        docstring = ast.get_docstring(ast.parse(path.read_text())) or ""
        for listed in re.findall(r"^Tests (`.*?)\.$", docstring, re.MULTILINE | re.DOTALL):
            found = {name if "." in name else f"{folder}.{name}" for name in re.findall(r"`([^`]+)`", listed)}
            assert found <= MODULES.keys(), f"{path} names modules that are not there"
            named |= found
    modules = {name for name, path in MODULES.items() if path.stem not in ("__init__", "__main__")}
    assert sorted(modules - named) == []


def test_every_upper_bound_of_a_dependency_has_its_reason():
    lines = (ROOT / "pyproject.toml").read_text().partition("[project.scripts]")[0].splitlines()
    assert [line for line in lines if re.search(r"[<~]=?\d|~=|==", line) and "  # " not in line] == []


def test_the_map_of_the_project_names_what_exists():
    _, _, section = (ROOT / "ARCHITECTURE.md").read_text().partition("## Where to look\n")
    rows = re.findall(r"^\| (?!you want|---)(.*) \|$", section.partition("\n## ")[0], re.MULTILINE)
    assert rows
    for row in rows:
        paths = re.findall(r"`([^`]+)`", row.split(" | ")[-1])
        assert paths, row
        for path in paths:
            assert (ROOT / path).exists(), path


def test_only_the_lucene_folder_touches_java():
    for name, path in MODULES.items():
        if "jnius" in path.read_text():
            assert name.startswith("greylag.index.lucene."), name


@pytest.mark.parametrize("module", MODULES)
def test_compiled_functions_use_nothing_of_other_modules(module):
    """Numba's cache of a function is renewed when its own module changes, and not when another one does."""
    tree = ast.parse(MODULES[module].read_text())
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom | ast.Import)]
    others = {(alias.asname or alias.name) for node in imports for alias in node.names if _is_ours(node, alias.name)}
    compilers = {"compiled"} | {
        target.id
        for node in tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call) and _called(node.value) == "compiled"
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for function in ast.walk(tree):
        if isinstance(function, ast.FunctionDef) and any(_called(own) in compilers for own in function.decorator_list):
            names = [node for part in function.body for node in _evaluated(part) if isinstance(node, ast.Name)]
            own = {node.id for node in names if isinstance(node.ctx, ast.Store)}
            used = {node.id for node in names} - own - {argument.arg for argument in function.args.args}
            assert not used & others, f"{module}.{function.name} uses {', '.join(used & others)}"


def _evaluated(part):
    """A node and all below it, without annotations and errors, which change no number."""
    if isinstance(part, ast.Raise):
        return
    yield part
    for name, value in ast.iter_fields(part):
        for child in value if isinstance(value, list) else [value]:
            if isinstance(child, ast.AST) and name not in ("annotation", "returns"):
                yield from _evaluated(child)


def _is_ours(node, name):
    return ((node.module or "") if isinstance(node, ast.ImportFrom) else name).split(".")[0] in PACKAGES


def _called(node):
    """The name of what a decorator is, or calls; empty if it has none."""
    name = node.func if isinstance(node, ast.Call) else node
    return name.id if isinstance(name, ast.Name) else ""
