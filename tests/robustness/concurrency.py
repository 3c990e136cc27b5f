"""Two processes at one place: both end well."""

from __future__ import annotations

import shutil

from tests.robustness.kills import COMMANDS, finish, result, start, strays
from tests.robustness.machine import Counts, rounds

PAIRS = ("index", "search", "experiment")


def run(seconds: float, seed: int) -> Counts:
    """Start a command twice per round; at least one round."""
    counts = Counts()
    for number, place in rounds(seconds, seed):
        name = PAIRS[(number - seed) % len(PAIRS)]
        before, arguments, output = COMMANDS[name]
        for step in before:
            finish(start(COMMANDS[step][1], place))
        if name == "search":
            shutil.rmtree(place / "index.greylag", ignore_errors=True)
        ends = [finish(process) for process in [start(arguments, place) for _ in range(2)]]
        codes = sorted(code for code, _, _ in ends)
        counts.tried += 2
        counts.recovered += codes.count(0)
        if codes != [0, 0] or strays(place) or not result(place, output, ends[0][1] or ends[1][1]):
            counts.wrong.append(f"two of {name}: {ends}, left {strays(place)}")
    return counts
