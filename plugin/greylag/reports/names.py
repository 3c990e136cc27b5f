"""Names of runs in tables: the paths of their files, or shorter ones where these differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from greylag.errors import ParameterError
from greylag.ranking import Run
from greylag.trec.runs import run_tag

Naming = Literal["path", "file", "tag"]
ENDINGS = ".run", ".txt", ".trec", ".res"
"""What the names of runs' files end with, before ``.gz``."""


def name_runs(runs: Sequence[tuple[str | None, Any]], by: Naming) -> list[tuple[str, Any]]:
    """Name runs, or their files, that have no name, by tag or file; those that share one have their path."""
    short = [name or _short(run, by) for name, run in runs]
    sharing, named = Counter(short), list[tuple[str, Any]]()
    for name, (given, run) in zip(short, runs, strict=True):
        alone = bool(name) and sharing[name] == 1
        if isinstance(run, Run) and not (given or alone):
            raise ParameterError(f"{sharing[name]} runs have the tag {name!r}: give runs by name, {{'mine': run, ...}}")
        named.append((given or (name if alone else str(run)), run))
    return named


def _short(run: Run | Path, by: Naming) -> str:
    """Return a run's tag, or the name or path of its file."""
    if isinstance(run, Run) or by == "tag":
        return run.tag if isinstance(run, Run) else run_tag(run)
    if by == "path":
        return str(run)
    return _stem(run)


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Shorten names that are files of runs to these without folder and ending, unless two would share one."""
    short = {name: _stem(Path(name)) if name.endswith((*ENDINGS, ".gz")) else name for name in names}
    sharing = Counter(short.values())
    return {name: one if sharing[one] == 1 else name for name, one in short.items()}


def _stem(path: Path) -> str:
    """Return the name of a run's file without its ending."""
    name = path.name.removesuffix(".gz")
    return next((name.removesuffix(end) for end in ENDINGS if name.endswith(end) and name != end), name)
