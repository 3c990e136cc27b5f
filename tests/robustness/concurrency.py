"""Two processes at one place: both end well."""

import shutil

from tests.robustness.kills import finish, prepare, start, strays, words
from tests.robustness.machine import Counts, rounds

PAIRS = ("index", "search", "experiment")


def run(seconds: float, seed: int) -> Counts:
    """Start a command twice per round; at least one round."""
    counts = Counts()
    for number, place in rounds(seconds, seed):
        name = PAIRS[(number - seed) % len(PAIRS)]
        if name == "search":
            prepare(place)
            (place / "out.run").unlink()
            shutil.rmtree(place / "index.greylag", ignore_errors=True)
        ends = [finish(process, place) for process in [start(words(name, place), place) for _ in range(2)]]
        codes = sorted(ended.code for ended in ends)
        counts.tried += 2
        counts.recovered += codes.count(0)
        made = any(name.endswith(".run") for name in ends[1].files) if name != "index" else ends[0].printed
        if codes != [0, 0] or strays(place) or not made:
            counts.wrong.append(f"two of {name}: {ends}, left {strays(place)}")
    return counts
