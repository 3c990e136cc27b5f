"""Two processes at one place: both end well, or the second is refused in one line before it works."""

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
        refused = [errors for code, _, errors in ends if code == 2]
        right = codes == [0, 0] or (name == "index" and codes == [0, 2] and len(refused[0].splitlines()) <= 2)
        counts.tried += 2
        counts.recovered += codes.count(0)
        counts.refused += len(refused)
        if not right or strays(place) or not result(place, output, ends[0][1] or ends[1][1]):
            counts.wrong.append(f"two of {name}: {ends}, left {strays(place)}")
    return counts
