"""Trials of one file each: refused in one line, accepted as the oracle reads it, or wrong."""

import logging
import random
import resource
import signal
import time
import unicodedata
from collections import Counter
from contextlib import contextmanager

from greylag.base import GreylagError
from tests.robustness.formats import FORMATS
from tests.robustness.mutations import mutate

LIMIT = 10.0  # seconds of processor time for one file
MEMORY = 1 << 20  # kilobytes by which one file may raise the peak
MESSAGE = 1000


def iscntrl(character):
    return unicodedata.category(character) == "Cc"


class HangError(BaseException):
    """Raised in a reader that takes too long."""


@contextmanager
def time_limit(seconds):
    def stop(*_):
        raise HangError

    before = signal.signal(signal.SIGVTALRM, stop)
    signal.setitimer(signal.ITIMER_VIRTUAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)


def judge(form, content, path):
    """The verdict on a file: "refused", "accepted", or what is wrong."""
    path.write_bytes(content)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    try:
        with time_limit(LIMIT):
            value = form.read(path)
    except GreylagError as error:
        told = str(error)
        good = told.startswith(str(path)) and "\n" not in told and len(told) < MESSAGE and not any(map(iscntrl, told))
        return "refused" if good else f"message {told[:300]!r}"
    except HangError:
        return "hang"
    except BaseException as error:
        return f"{type(error).__name__}: {error!s:.200}"
    if resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - peak > MEMORY:
        return "memory"
    try:
        expected = form.oracle(content)
    except Exception as error:
        return f"accepted, but the oracle refuses it ({type(error).__name__} {error!s:.100}): {value!r:.200}"
    return "accepted" if expected == value else f"read as {value!r:.300}, not {expected!r:.300}"


def trials(name, seed, count, path):
    """The verdicts on valid files and their variants: what was done, the verdict, and the content."""
    form, rng = FORMATS[name], random.Random(f"{name} {seed}")
    for _ in range(count):
        sample = form.make(rng)
        verdict = judge(form, sample, path)
        yield "valid", verdict if verdict != "refused" else "a valid file is refused", sample
        for _ in range(9):
            done, content = mutate(rng, sample)
            yield done, judge(form, content, path), content


def fuzz(seconds, folder, seed):
    """Try all formats in turn until the time is over; print counts and what is wrong, return the number of wrongs."""
    logging.getLogger("greylag").setLevel(logging.CRITICAL)
    counts = Counter()
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        for name in FORMATS:
            for done, verdict, content in trials(name, seed, 5, folder / "file"):
                counts[verdict if verdict in ("refused", "accepted") else "wrong"] += 1
                if verdict not in ("refused", "accepted"):
                    print(f"{name}, seed {seed}, {done}: {verdict}\n    {content[:400]!r}", flush=True)
        seed += 1
    print(f"tried {counts.total()}, refused in one line {counts['refused']}, accepted rightly {counts['accepted']}")
    return counts["wrong"]
