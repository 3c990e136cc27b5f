"""`HybridRetriever` at 10^3 to 10^5 passages: making, swapping, saving, loading, latency of a query and memory.

Passages are 70 words of real sentences, joined at random; vectors of 384 dimensions are synthetic, as is the encoder,
which takes no time: add an encoder's time for a query, and for each new passage.
"""

import gzip
import json
import re
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np

from benchmarks.harness import DATA, FULL, Row
from greylag import HybridRetriever

SOURCES = ("wikiqa", "lisa", "cisi", "nfcorpus", "xquad_en", "tabfact")
DIMENSIONS, WORDS, QUERIES = 384, 70, 300
CHANGE: dict[str, Any] = {
    "remove": [*map(str, range(10))],
    "add": {"new": {"text": "A passage that is new.", "source": 1}},
}


def sentences() -> list[str]:
    """Real sentences of the shared collections."""
    found = []
    for name in SOURCES:
        with gzip.open(next((DATA / name).glob("docs*.gz")), "rt") as file:
            for line in file:
                found += [
                    one for one in re.split(r"(?<=[.!?])\s+", json.loads(line)["contents"]) if len(one.split()) > 5
                ]
    return found


def passages(n: int, known: list[str]) -> dict[str, dict[str, Any]]:
    """Passages with a source, of which every tenth passage has the same."""
    rng = np.random.default_rng(0)
    made: dict[str, dict[str, Any]] = {}
    for number in range(n):
        words: list[str] = []
        while len(words) < WORDS:
            words += known[rng.integers(len(known))].split()
        made[str(number)] = {"text": " ".join(words[:WORDS]), "source": number % 10, "group": number // 5}
    return made


def encode(texts: list[str]) -> Any:
    """A vector of the words' hashes, so that texts with common words are near."""
    rows = np.zeros((len(texts), DIMENSIONS), np.float32)
    for row, text in zip(rows, texts, strict=True):
        for word in text.split():
            row[crc32(word.lower().encode()) % DIMENSIONS] += 1
    return rows


def spent(work: Callable[[], Any]) -> float:
    """The CPU seconds of a call, of all threads."""
    begun = time.process_time()
    work()
    return time.process_time() - begun


def memory() -> float:
    """Resident memory of this process, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096 / 1e6


def rows() -> Iterator[Row]:
    """The rows of all sizes."""
    known = sentences()
    for n in (1_000, 10_000, 100_000) if FULL else (1_000, 10_000):
        yield from of_size(n, known)


def of_size(n: int, known: list[str]) -> Iterator[Row]:
    """The rows of a size."""
    given, before = passages(n, known), memory()
    vectors = np.concatenate([encode([passage["text"]]) for passage in given.values()])
    made: list[HybridRetriever] = []
    yield Row(f"{n}: make, CPU", spent(lambda: made.append(HybridRetriever(given, encode, vectors=vectors))), "s")
    yield Row(f"{n}: memory of it", memory() - before, "MB")
    retriever = made[0]
    queries = [
        " ".join(known[place].split()[:8]) for place in np.random.default_rng(1).integers(len(known), size=QUERIES)
    ]
    for what, options in (
        ("", {}),
        (", a source of ten", {"where": {"source": 3}}),
        (", groups", {"max_per_group": 1}),
        (", near-duplicates", {"near_duplicates": 0.8}),
    ):
        yield from percentiles(f"{n}: a query{what}", [timed(retriever, query, options) for query in queries])
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "retriever.npz")
        yield Row(f"{n}: save", spent(lambda: retriever.save(path)), "s")
        yield Row(f"{n}: file", path.stat().st_size / 1e6, "MB")
        yield Row(f"{n}: load", spent(lambda: HybridRetriever.load(path, encode)), "s")
        for where, swap in (
            ("a thread", lambda: made.append(retriever.with_passages(**CHANGE))),
            ("another process", lambda: made.append(swapped_elsewhere(path))),
        ):
            thread = threading.Thread(target=swap)
            begun, times = time.perf_counter(), []
            thread.start()
            while thread.is_alive():
                times.append(timed(retriever, queries[len(times) % QUERIES], {}, time.perf_counter))
                time.sleep(0.02)
            yield Row(f"{n}: swap by {where}, while 50 queries a second go on", time.perf_counter() - begun, "s")
            yield from percentiles(f"{n}: a query meanwhile, wall", times)


def swapped_elsewhere(path: Path) -> HybridRetriever:
    """Another retriever, made by a process and mapped by this one."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        pool.submit(change, path).result()
    return HybridRetriever.load(path, encode)


def change(path: Path) -> None:
    """Replace a saved retriever by one with ten passages fewer and one more."""
    HybridRetriever.load(path, encode).with_passages(**CHANGE).save(path)


def timed(retriever: HybridRetriever, query: str, options: dict[str, Any], clock: Any = time.thread_time) -> float:
    """The milliseconds of a query, of CPU by default."""
    begun = clock()
    retriever.search(query, **options)
    return 1e3 * (clock() - begun)


def percentiles(name: str, times: list[float]) -> Iterator[Row]:
    """The rows of the median and of the 99th percentile."""
    for share in (50, 99):
        yield Row(f"{name}, p{share}", float(np.percentile(times, share)), "ms")
