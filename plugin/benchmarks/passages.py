"""Passages with embeddings or texts: the first call, and MMR, MSD and DPP against pyversity on the same vectors."""

import os
import tempfile
from collections.abc import Iterator

import numpy as np
from threadpoolctl import threadpool_limits

from benchmarks.harness import Row, cpu_seconds
from benchmarks.start import children_seconds, process_seconds, run_python
from greylag import rerank
from greylag.base import Ranking
from greylag.diversity import DPP, MMR, MSD
from greylag.index import ArrayVectors
from greylag.index.word_breaks import words as words_of

CALL = "from greylag import rerank; rerank('cats', ['running cats', 'dogs'], [1, 2]{})"
FIRST = """
from numba.core.event import Listener, register
compiled = []
class Counting(Listener):
    def on_start(self, event): compiled.append(event)
    def on_end(self, event): pass
register("numba:compile", Counting())
from greylag import rerank
texts = [f"the {a} {b} sat on the {c} of a {a}" for a in ("cat", "dog", "wing") for b in ("big", "red") for c in "mnop"]
rerank("the cat sat", texts, [*range(24)], method=METHOD)
print(len(compiled))
"""
"""Reranks where nothing is compiled, and prints how many functions Numba compiles."""
FIRST_AIMS = {"mmr": 1.5, "manifold": 4, "general": 6}
STAGES = {"mmr": MMR, "msd": MSD, "dpp": DPP}


def rows() -> Iterator[Row]:
    """CPU seconds of processes, the least of five; ratios of CPU time of a thread, medians of 15."""
    for what, options, aim in (("embeddings", ", vectors=[[1.0, 0], [0.6, 0.8]]", 0.35), ("texts", "", 1.0)):
        taken = [process_seconds("-c", CALL.format(options)) for _ in range(6)][1:]
        yield Row(f"import and the first rerank of {what}", min(taken), "CPU s", f"at most {aim}")
    for method, seconds in FIRST_AIMS.items():
        with tempfile.TemporaryDirectory() as folder:
            os.environ["NUMBA_CACHE_DIR"] = folder
            before, printed = children_seconds(), run_python("-c", FIRST.replace("METHOD", repr(method)))
            del os.environ["NUMBA_CACHE_DIR"]
        spent = children_seconds() - before
        yield Row(f"first rerank by {method} in a new environment", spent, "CPU s", f"at most {seconds}")
        yield Row(f"functions that it compiles, {method}", int(printed), "")
    rng = np.random.default_rng(0)
    with threadpool_limits(1):  # the time of a second one would not be counted
        for n, m in ((50, 384), (100, 256), (1000, 768)):
            yield from compared(rng, n, m)
    words = [f"word{number}" for number in range(2000)]
    for length in (20, 100):
        texts = [" ".join(rng.choice(words, length)) for _ in range(100)]
        scores = np.sort(rng.random(100))[::-1].tolist()
        taken = cpu_seconds(lambda texts=texts, scores=scores: rerank("word1", texts, scores, k=10))  # type: ignore[misc]
        yield Row(f"rerank of 100 texts of {length} words", 1e3 * taken, "CPU ms", "at most 2")
    for kind, letters in (("ASCII", "acgt"), ("other", "àçgt")):
        whole, cut = letters * 250_000, f"{letters * 2} " * 111_111
        spent = [cpu_seconds(lambda text=text: [*words_of(text)], 5) for text in (whole, cut)]  # type: ignore[misc]
        yield Row(f"one {kind} word of 10^6 letters / words of 8", spent[0] / spent[1], "x", "at most 4")


def compared(rng: np.random.Generator, n: int, m: int) -> Iterator[Row]:
    """Each method on the same float32 vectors and scores."""
    import pyversity

    vectors = (rng.standard_normal((n, m)) + rng.standard_normal(m)).astype(np.float32)
    ranking = Ranking("q", "", tuple(map(str, range(n))), np.sort(rng.random(n))[::-1])
    given = ArrayVectors(ranking.docids, vectors)
    texts, scores = list(ranking.docids), ranking.scores.tolist()
    for k in (10, min(100, n)):
        aim = "at most 1"
        for name, kind in STAGES.items():
            stage = kind(vectors=given, relevance_weight=0.5, depth=n, k=k)
            peer = getattr(pyversity, name)
            theirs = cpu_seconds(lambda: peer(vectors, ranking.scores, k), 15)  # noqa: B023
            ours = cpu_seconds(lambda: stage(ranking), 15)  # noqa: B023
            yield Row(f"{name} / pyversity, {k} of {n} x {m}", ours / theirs, "x", aim)
        called = cpu_seconds(lambda: rerank("q", texts, scores, vectors=vectors, relevance_weight=0.5, k=k), 15)  # noqa: B023
        theirs = cpu_seconds(lambda: pyversity.mmr(vectors, ranking.scores, k), 15)  # noqa: B023
        yield Row(f"rerank() / pyversity.mmr, {k} of {n} x {m}", called / theirs, "x", "at most 2")
