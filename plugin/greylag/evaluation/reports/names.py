"""Names of runs in tables: the paths of their files, or shorter ones where these differ."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any, Literal

from greylag.base import ParameterError, Run
from greylag.evaluation.trec.runs import run_tag

Naming = Literal["path", "file", "tag"]
ENDINGS = ".run", ".txt", ".trec", ".res"
"""What the names of runs' files end with, before ``.gz``."""
_log = logging.getLogger("greylag")


def name_runs(runs: Sequence[tuple[str | None, Any]], by: Naming, collection: str = "") -> list[tuple[str, Any]]:
    """Name runs, or their files, that have no name, by tag or file; those that share one have their path."""
    short = [name or _short_name(run, by, collection) for name, run in runs]
    sharing, named = Counter(short), list[tuple[str, Any]]()
    for name, (given, run) in zip(short, runs, strict=True):
        alone = bool(name) and sharing[name] == 1
        if isinstance(run, Run) and not (given or alone):
            raise ParameterError(f"{sharing[name]} runs have the tag {name!r}: give runs by name, {{'mine': run, ...}}")
        named.append((given or (name if alone else str(run)), run))
    return named


def _short_name(run: Run | Path, by: Naming, collection: str) -> str:
    """Return a run's tag, or the name or path of its file, whose tag is that of the collection's."""
    if isinstance(run, Run):
        return run.tag
    return run_tag(within(run, collection)) if by == "tag" else str(run) if by == "path" else _file_stem(run)


def named_file(text: str) -> tuple[str | None, Path]:
    """Split ``NAME=FILE``; any other text, or one that is a file itself, has no name."""
    name, sign, path = text.partition("=")
    return (name, Path(path)) if sign and name and not Path(text).exists() else (None, Path(text))


def within(path: Path, collection: str) -> Path:
    """Put the name of a collection, if there is one, in its place in a path."""
    if collection and "{}" not in str(path):
        raise ParameterError(f"{path} has no place for a collection's name: write {{}} where it stands")
    return Path(str(path).replace("{}", collection)) if collection else path


def name_files(texts: Sequence[str], by: Naming, collection: str = "") -> dict[str, Path]:
    """Name the files of ``NAME=FILE`` or FILE; refuse a name of two, and warn of a file that is given again."""
    files = dict[str, Path]()
    for (name, path), number in Counter(name_runs([*map(named_file, texts)], by, collection)).items():
        if files.setdefault(name, path) != path:
            both = f"{files[name]} and {path}"
            raise ParameterError(f"{name} names two runs, {both}: call one otherwise, as in new={path}")
        if number > 1:
            _log.warning("%s is given %d times, and counts once", name, number)
    return files


def name_with_baselines(
    runs: Sequence[str], baselines: Sequence[str], by: Naming, collection: str
) -> tuple[dict[str, Path], list[str]]:
    """Name files as `name_files` does, the baselines' first; these, whose names are also returned, may be runs."""
    files, against, unknown = name_files(runs, by, collection), list[Path](), list[str]()
    for baseline in baselines:
        # By name or file, so that it is scored once.
        label, path = named_file(baseline)
        known = next((files[name] for name in files if files[name] == path or (name, None) == (str(path), label)), None)
        if known is None and not Path(str(path).replace("{}", collection or "{}")).exists():
            alike = (
                f": write --baseline {name}"
                for number, (name, file) in enumerate(files.items(), 1)
                if baseline in (str(number), file.name, file.stem, run_tag(within(file, collection)))
            )
            raise ParameterError(f"--baseline {baseline} is neither a file nor a run's name{next(alike, '')}")
        against.append(known or path)
        unknown += [] if known else [baseline]
    files = name_files([*unknown, *runs], by, collection) if unknown else files
    names = [next(name for name in files if files[name] == path) for path in against]
    return {name: files[name] for name in names} | files, names


def short_names(names: Iterable[str]) -> dict[str, str]:
    """Shorten names that are files of runs to these without folder and ending, unless two would share one."""
    short = {name: _file_stem(Path(name)) if name.endswith((*ENDINGS, ".gz")) else name for name in names}
    sharing = Counter(short.values())
    return {name: label if sharing[label] == 1 else name for name, label in short.items()}


def _file_stem(path: Path) -> str:
    """Return the name of a run's file without its ending."""
    name = path.name.removesuffix(".gz")
    return next((name.removesuffix(end) for end in ENDINGS if name.endswith(end) and name != end), name)
