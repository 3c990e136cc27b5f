"""A small random collection with judgements."""

from __future__ import annotations

import numpy as np

from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking

WORDS = [f"w{i}x" for i in range(60)]
N = 80


def index() -> PositionalIndex:
    """d0 to d79, of 5 to 25 words; low words are common."""
    rng = np.random.default_rng(5)
    shares = 1.0 / np.arange(4, len(WORDS) + 4)
    texts = {f"d{i}": " ".join(rng.choice(WORDS, rng.integers(5, 26), p=shares / shares.sum())) for i in range(N)}
    return PositionalIndex.from_texts(texts)


def ranking(seed: int, qid: str = "q", n: int = 40) -> Ranking:
    """`n` of the documents, for a query of three words."""
    rng = np.random.default_rng(seed)
    docids = tuple(f"d{i}" for i in rng.permutation(N)[:n])
    return Ranking(qid, " ".join(rng.choice(WORDS[8:], 3)), docids, np.arange(n, 0.0, -1.0))


def grades(seed: int) -> dict[str, int]:
    """Grades from 0 to 2 of twelve documents, in the ranking or not, the first of which is relevant."""
    rng = np.random.default_rng(seed + 100)
    judged = [f"d{i}" for i in rng.permutation(N)[:12]]
    return dict(zip(judged, [1, *rng.integers(0, 3, 11).tolist()], strict=True))
