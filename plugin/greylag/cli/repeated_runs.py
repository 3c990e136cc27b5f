"""What is said of runs that are given twice, or that are alike."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Hashable, Iterable, Mapping
from pathlib import Path

from greylag.evaluation.agreement import alike
from greylag.reports.scores import few_names

_log = logging.getLogger("greylag")


def given_once(files: Iterable[Path]) -> list[Path]:
    """Return the files without repetitions, and warn of these."""
    files = list(files)
    for path, number in Counter(files).items():
        if number > 1:
            _log.warning("%s is given %d times, and counts once", path, number)
    return list(dict.fromkeys(files))


def warn_of_identical(rankings: Mapping[str, Hashable]) -> None:
    """Warn of runs, by name, whose rankings are equal for every query."""
    for names in alike(rankings):
        _log.warning("%s are the same rankings", few_names(names, " and "))
