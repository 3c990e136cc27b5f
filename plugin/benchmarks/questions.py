"""Questions of a million generated documents, whose words "what", "how" and "does" are not stop words but frequent.

Windows of such words have many matches, and are counted over the whole collection when they are first asked for. A word
of a question is the generated word that has nearly its share of documents. The shares are guesses for passages of the
web, on the high side: among WikiQA's sentences of encyclopedias, half as long, "what" has .007, "can" .033, "from" .10.
"""

import statistics
import time
from collections.abc import Iterator, Sequence

import numpy as np

from benchmarks.generated import indexed, without_statistics
from benchmarks.harness import FULL, Row
from greylag.base import Query
from greylag.features import Feature, FeatureExtractor, candidate_pool
from greylag.index import LuceneIndex, PositionalIndex

N_DOCUMENTS = 1_000_000 if FULL else 100_000
SHARES = {
    "from": 0.25, "have": 0.2, "has": 0.18, "can": 0.17, "which": 0.15, "you": 0.14, "your": 0.12, "when": 0.1,
    "about": 0.09, "use": 0.08, "what": 0.07, "how": 0.06, "do": 0.055, "between": 0.05, "many": 0.045, "long": 0.04,
    "does": 0.035, "take": 0.03, "much": 0.027, "get": 0.025, "best": 0.022, "difference": 0.02, "did": 0.018,
    "why": 0.015, "mean": 0.012, "cost": 0.01,
}  # fmt: skip
"""The share of the documents that have a word."""
QUESTIONS = """
what does X mean
how long does X take
what difference between X Y
how much does X cost
how many X does Y have
what can you do about X
how do you get X from Y
when did X have Y
which X has your Y from
why do you have X
can you use X when you have Y
what do you have from X
how long can you have X
how can you get your X from Y
what has X from Y
how do you do what you can
what can you get from your X
which best X can you get
does X have what you have
how much X can you have when you have Y
"""
"""Questions without stop words; X and Y are words of medium frequency."""
MEDIUM = 0.0003, 0.01
"""Their shares."""


def rows() -> Iterator[Row]:
    """All rows."""
    with indexed(N_DOCUMENTS) as lucene:
        yield from rows_of(lucene)


def rows_of(lucene: LuceneIndex) -> Iterator[Row]:
    """The slowest question and the median, the first time and once its windows are known, CPU time."""
    index = PositionalIndex.from_lucene(lucene)
    asked = questions(index)
    rankings = [lucene.bm25(1000)(query) for query in asked]
    alone = without_statistics(index)
    for pool in ("sd", "full"):
        specs: Sequence[Feature] = candidate_pool(pool)
        FeatureExtractor(alone, tuple(specs))(rankings[0])  # loads what is compiled
        first, again = [], []
        for ranking in rankings:
            extractor = FeatureExtractor(alone, tuple(specs))
            times = []
            for _ in range(4):
                start = time.thread_time()
                extractor(ranking)
                times.append(1e3 * (time.thread_time() - start))
            first.append(times[0])
            again.append(min(times[1:]))
        slowest = asked[int(np.argmax(first))].qid
        yield Row(f"{index.n_documents} documents, pool {pool}, first time, median", statistics.median(first), "ms")
        yield Row(f"first time, slowest: {slowest}", max(first), "ms", "at most 500")
        slowest = asked[int(np.argmax(again))].qid
        yield Row(f"pool {pool}, windows known, median", statistics.median(again), "ms")
        yield Row(f"windows known, slowest: {slowest}", max(again), "ms", "at most 50")


def questions(index: PositionalIndex, seed: int = 4) -> list[Query]:
    """The questions, in the words of the collection; the qid is the question."""
    rng = np.random.default_rng(seed)
    shares = index.document_frequencies / index.n_documents
    order = np.argsort(-shares, kind="stable")
    sorted_shares, taken, words = -shares[order], set[int](), dict[str, str]()

    def name(term: int) -> str:
        return index.terms_of(np.array([term]))[0]

    for word, share in SHARES.items():
        place = int(np.searchsorted(sorted_shares, -share))
        while place in taken:
            place += 1
        taken.add(place)
        words[word] = name(int(order[place]))
    low, high = (int(np.searchsorted(sorted_shares, -share)) for share in reversed(MEDIUM))
    asked = []
    for question in QUESTIONS.split("\n")[1:-1]:
        own = dict(zip("XY", rng.integers(low, high, 2).tolist(), strict=True))
        terms = [words[word] if word in words else name(int(order[own[word]])) for word in question.split()]
        asked.append(Query(question, " ".join(terms)))
    return asked
