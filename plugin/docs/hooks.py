"""Pages of the documentation that are made from the code: public names, experiment files, commands, citations.

MkDocs calls `on_files` and `on_page_markdown`. The other functions need nothing but greylag, so that tests can look at
what they make. The page of commands is kept in the repository, where it can be read.
"""

from __future__ import annotations

import ast
import json
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from inspect import cleandoc, isclass, isfunction
from pathlib import Path
from typing import Any, Literal, get_args, get_origin

from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import to_jsonable_python

from greylag.base.core.citations import references
from greylag.studies.config import file_fields, part_of
from greylag.studies.study import find_study

PLUGIN = Path(__file__).parents[1]
ROOT = PLUGIN.parent
DOCS = Path(__file__).parent
STUDIES = ("pipeline", "ranker_curve")  # those for data of one's own
STUBS = [PLUGIN / "greylag/__init__.pyi", *PLUGIN.glob("greylag/*/__init__.pyi")]
PACKAGES = tuple(sorted(".".join(stub.parent.relative_to(PLUGIN).parts) for stub in STUBS))
BETWEEN_WINGS = "# isort: split"  # in a stub: the names after it are not public
API = {
    "Rankings and scores": ("", ".base", ".evaluation"),
    "Indexes and features": (".index", ".features"),
    "Learning and rankers": (".learning", ".rankers", ".recipes"),
    "Diversity": (".diversity",),
    "Passages, other packages, studies": (".passages", ".studies"),
}
"""The pages of public names, each with its packages below `greylag`."""
_LEADING_OUT = re.compile(r"\[([^\]]*)\]\(((?:\.\./)+[^)#]*)[^)]*\)")
_COMMANDS = """\
# Commands

Every command has `--help`. `python -m greylag` is the same as `greylag`. A mistake in the input gives one line and exit
code 2; an interrupt gives 130. `greylag --install-completion` completes commands and options in your shell.

Models, learners, searches and stages are spelt alike: `mrf`, `mrf(max_features=3,mu=500)`, and with several values in
brackets `bm25(k1=[0.6,0.9])`. Quote parentheses in a shell. `train --model help` lists the models, and
`train --model "mrf(help)"` the options of one with defaults, types and meanings; likewise `search --model`.

`--out` is the main output of a command: the index, run, features, model or folder that it is for. Further outputs are
named by their kind: the held-out run of `train --out-run`, the model of `fuse --out-model`, the chart of `evaluate
--out-figure`. Commands without `--out` print. AP is maximised, and shown first, unless `--measure` names another
measure; `diversify` chooses by alpha-nDCG@10.
"""
_CITING = """\
# Citing

`greylag explain MODEL` ends with the BibTeX of a model's methods, and `greylag evaluate --format latex` with that of
its measures and tests. These are all:
"""
_EXPERIMENTS = """\
# Experiment files

The keys of studies for collections of your own; [Run studies](../how-to/experiments.md) says how they are run. The
other studies reproduce papers.
"""


def on_files(files: Any, config: Any) -> Any:
    """Add the pages (an event of MkDocs)."""
    from mkdocs.structure.files import File

    for path, text in pages().items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, *, page: Any, **_: Any) -> str:
    """Links to files of the repository that are no pages, as text (an event of MkDocs)."""
    folder = (DOCS / page.file.src_uri).parent

    def shown(link: re.Match[str]) -> str:
        target = (folder / link[2]).resolve()
        return link[0] if target.is_relative_to(DOCS) else f"{link[1]} (`{target.relative_to(ROOT)}`)"

    return _LEADING_OUT.sub(shown, markdown)


def pages() -> dict[str, str]:
    """The text of each page by its path below the documentation's folder."""
    return {
        **{api_path(packages): api_page(title, packages) for title, packages in API.items()},
        "reference/experiments.md": experiments_page(),
        "reference/citing.md": citing_page(),
    }


def citing_page() -> str:
    """What to cite for each method, by the names that options, files and tables have for it."""
    rows = [f"- {', '.join(f'`{name}`' for name in paper.names)}: `{paper.key}`" for paper in references()]
    entries = [paper.bibtex for paper in references()]
    return "\n".join([_CITING, *rows, "", "```bibtex", *map(_wrapped, entries), "```", ""])


def _wrapped(entry: str) -> str:
    return textwrap.fill(entry, 100, subsequent_indent="  ", break_long_words=False)


@cache
def public_names(package: str) -> dict[str, str]:
    """The public names of a package, in alphabetical order, with the modules that define them."""
    text = (PLUGIN.joinpath(*package.split(".")) / "__init__.pyi").read_text(encoding="utf-8")
    stub = ast.parse(text.partition(BETWEEN_WINGS)[0])
    found = {}
    for node in stub.body:
        if isinstance(node, ast.ImportFrom) and node.level:
            module = f"{package}.{node.module}" if node.module else package
            for alias in node.names:
                own = module not in PACKAGES or module == package  # such as `from . import baselines`
                found[alias.name] = module if own else public_names(module)[alias.name]
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def api_path(packages: tuple[str, ...]) -> str:
    """The path of a page of public names, from its first package."""
    return f"reference/api/{packages[0].removeprefix('.') or 'greylag'}.md"


def api_page(title: str, packages: tuple[str, ...]) -> str:
    """The public names of some packages."""
    return "\n".join([f"# {title}\n", *(package_part(f"greylag{package}") for package in packages)])


def package_part(package: str) -> str:
    """A package's public names: a table of those that are documented elsewhere, and the documentation of the others."""
    elsewhere, own = [], []
    for name, home in public_names(package).items():
        owner = ".".join(home.split(".")[:2])
        if package == "greylag" and owner in PACKAGES:
            elsewhere.append(f"| [`{name}`][{home}.{name}] | {_first_line(package, name)} |")
        else:
            own.append(f"::: {home}.{name}\n{_without_others(package, name)}")
    table = ["| name | |", "|---|---|", *elsewhere, ""] if elsewhere else []
    documented = cleandoc(import_module(package).__doc__ or "")
    return "\n".join([f"## {package}\n", f"{documented}\n", *table, *own])


def _without_others(package: str, name: str) -> str:
    """For a public module: an option that leaves out its names that are public themselves."""
    module = f"{package}.{name}"
    hidden = [f"!^{other}$" for other, home in public_names(package).items() if home == module]
    return f"    options:\n      filters: {json.dumps(['!^_', *hidden])}\n" if hidden else ""


def _first_line(package: str, name: str) -> str:
    value = getattr(import_module(package), name)
    documented = isclass(value) or isfunction(value) or type(value).__name__ == "module"
    return _cell(cleandoc(value.__doc__ or "").split("\n\n")[0]) if documented else ""


def commands_page() -> str:
    """Every command of the command line with its options."""
    import typer

    from greylag.cli import COMMANDS, app

    group: Any = typer.main.get_command(app)
    parts = [_COMMANDS]
    for name in ("", *COMMANDS):
        command = group.get_command(None, name) if name else group
        title = f"greylag {name}" if name else "Options of all commands"
        parts += [f"## {title}\n", f"{cleandoc(command.help)}\n", "| option | default | |", "|---|---|---|"]
        for option in command.params:
            if option.name != "help" and not option.hidden:
                flag = option.opts[0] if option.opts[0].startswith("-") else option.name.upper()
                default = option.default if isinstance(option.default, str | int | float | Path) else None
                shown = "required" if option.required else "" if default in (None, False) else f"`{default}`"
                parts.append(f"| `{flag}` | {shown} | {_cell(getattr(option, 'help', '') or '')} |")
        parts.append("")
    return "\n".join(parts)


def experiments_page() -> str:
    """Every key of the files of studies for collections of one's own."""
    parts = [_EXPERIMENTS]
    for study in STUDIES:
        form = find_study(study).settings
        parts += [f"## `{study}`\n", f"{summary(form)}\n", *_keys(form, study), *_parts(form, f"{study}.")]
    return "\n".join(parts)


def _parts(form: type[BaseModel], place: str) -> Iterator[str]:
    parts = dict[type[BaseModel], str]()
    for name, field in file_fields(form).items():
        if part := part_of(field):
            parts.setdefault(part, name)  # fields that hold the same have one section
    for part, name in parts.items():
        yield f"### `{place}{name}`\n"
        yield f"{summary(part)}\n"
        yield from _keys(part, place + name)
        yield from _parts(part, f"{place}{name}.")


def _keys(form: type[BaseModel], place: str) -> Iterator[str]:
    yield "| key | default | |"
    yield "|---|---|---|"
    for name, field in file_fields(form).items():
        anchor = f"{place}{name}".replace(".", "")
        text = description(field) or f"A mapping: see [`{name}`](#{anchor})."
        default = field.get_default(call_default_factory=True)
        written = None if field.is_required() else to_jsonable_python(default)
        plain = "" if field.is_required() or (part_of(field) and isinstance(written, dict)) else json.dumps(written)
        shown = "required" if field.is_required() else f"`{plain}`" if plain else ""
        yield f"| `{name}` | {shown} | {_cell(text)} |"
    yield ""


def description(field: FieldInfo) -> str:
    """Describe a field, with its possible words."""
    words = ", ".join(_words(field.annotation))
    return (field.description or "") + (f" One of {words}." if words else "")


def _words(kind: Any) -> Iterator[str]:
    for argument in get_args(kind):
        if get_origin(kind) is Literal:
            yield str(argument)
        else:
            yield from _words(argument)


def summary(form: type[BaseModel]) -> str:
    """Return the first paragraph of the docstring of a form."""
    return cleandoc(form.__doc__ or "").split("\n\n")[0]


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("``", "`")
