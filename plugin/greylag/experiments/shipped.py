"""The experiment files that come with greylag: the demo, and those of a checkout's ``configs`` or of a wheel."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

from greylag.errors import ParameterError
from greylag.experiments.config import did_you_mean

INSTALLED = "share/greylag/configs/"
"""Where a wheel has them, below the prefix."""


def shipped_files() -> dict[str, Path]:
    """The experiment files by name, without ``.yaml``, in alphabetical order."""
    return dict(sorted((path.stem, path) for path in _candidates()))


def shipped_file(name: str) -> Path:
    """An experiment file that comes with greylag."""
    files, stem = shipped_files(), name.removesuffix(".yaml")
    if stem not in files:
        known = did_you_mean(stem, files) or f": {', '.join(files) or 'none does in this installation'}"
        raise ParameterError(
            f"{name!r:.60} cannot be read: there is no such file, and none of that name comes with greylag{known}"
        )
    return files[stem]


def _candidates() -> Iterator[Path]:
    yield Path(__file__).parents[1] / "demo" / "demo.yaml"
    checkout = Path(__file__).parents[3] / "configs"
    if checkout.is_dir():
        yield from checkout.glob("*.yaml")
        return
    try:
        files = distribution("greylag").files or []
    except PackageNotFoundError:
        return
    yield from (Path(str(file.locate())).resolve() for file in files if INSTALLED in file.as_posix())
