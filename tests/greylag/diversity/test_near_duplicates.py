"""Near-duplicates, against sets of shingles of the texts."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.base import Ranking
from greylag.diversity import NearDuplicates
from greylag.index import ArrayVectors, PositionalIndex, TfidfVectors
from greylag.passages import rerank

WORDS = st.lists(st.sampled_from(["w1x", "w2x", "w3x"]), max_size=7)


def shingles(words, n):
    """The n-grams of a text; a shorter one is one n-gram."""
    return {tuple(words[i : i + n]) for i in range(max(1, len(words) - n + 1))} if words else set()


def share(a, b, containment):
    if not a & b:
        return -1.0  # not even with a threshold of 0
    return len(a & b) / (min(len(a), len(b)) if containment else len(a | b))


def grouped(similar, n, threshold):
    """The place that begins the group of each of n documents, and the order of documents, by definition."""
    groups = {}
    for place in range(n):
        begun = [first for first in range(place) if groups[first] == first]
        groups[place] = next((first for first in begun if similar(first, place) >= threshold), place)
    return groups


def capped(groups, limit):
    """Places by `GroupLimit`'s cap: the surplus of each group behind all others."""
    surplus = [p for p in groups if sum(groups[q] == groups[p] for q in range(p)) >= limit]
    return [p for p in groups if p not in surplus] + surplus


def ranking_of(n):
    return Ranking("q", "", tuple(f"d{place}" for place in range(n)), np.arange(n, 0.0, -1.0))


def places(ranked):
    return [int(docid[1:]) for docid in ranked.docids]


@settings(max_examples=200, deadline=None)
@given(
    texts=st.lists(WORDS, min_size=1, max_size=9),
    n=st.integers(1, 4),
    threshold=st.sampled_from([0.0, 0.2, 1 / 3, 0.5, 0.8, 1.0]),
    containment=st.booleans(),
    limit=st.integers(1, 3),
)
def test_shares_of_ngrams(texts, n, threshold, containment, limit):
    index = PositionalIndex.from_texts({f"d{place}": " ".join(words) for place, words in enumerate(texts)})
    sets = [shingles(words, n) for words in texts]
    expected = grouped(lambda i, j: share(sets[i], sets[j], containment), len(texts), threshold)
    stage = NearDuplicates(index, threshold=threshold, n=n, containment=containment, max_per_group=limit)
    ranking = ranking_of(len(texts))
    assert stage.groups(ranking) == {f"d{place}": f"d{first}" for place, first in expected.items()}
    assert places(stage(ranking)) == capped(expected, limit)


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("threshold", [0.0, 0.5, 0.9])
def test_cosines(seed, threshold):
    rows = np.random.default_rng(seed).standard_normal((12, 3))
    rows[seed] = 0.0
    unit = rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-300)
    expected = grouped(lambda i, j: float(unit[i] @ unit[j]), 12, threshold)
    for dtype in (np.float64, np.float32):
        stage = NearDuplicates(vectors=ArrayVectors(ranking_of(12).docids, rows.astype(dtype)), threshold=threshold)
        assert places(stage(ranking_of(12))) == capped(expected, 1)


def test_equal_vectors_are_near_duplicates_at_any_threshold():
    rows = np.repeat(np.random.default_rng(0).standard_normal((4, 384)), 2, axis=0) * np.arange(1, 9)[:, None]
    for vectors in (rows, rows.astype(np.float32)):
        stage = NearDuplicates(vectors=ArrayVectors(ranking_of(8).docids, vectors), threshold=1.0)
        assert places(stage(ranking_of(8))) == [0, 2, 4, 6, 1, 3, 5, 7]
    index = PositionalIndex.from_texts(
        {f"d{n}": text for n, text in enumerate(["a cat", "dogs", "cats", "dog", "geese"])}
    )
    assert places(NearDuplicates(vectors=TfidfVectors(index), threshold=1.0)(ranking_of(5))) == [0, 1, 4, 2, 3]


def test_among_passages_the_first_of_its_kind_stays():
    """Words by default, 0.8 of 3-grams; 0.95 of cosines."""
    words = [f"w{n}x" for n in range(60)]
    changed = [*words[:30], "other", *words[31:]]  # 55 of 61 n-grams are in both
    texts = [" ".join(text) for text in (words, changed, words[:40], reversed(words))]
    method = "near-duplicates"
    assert [new.position for new in rerank("any", texts, [4, 3, 2, 1], method=method)] == [0, 2, 3, 1]
    contained = rerank("any", texts, [4, 3, 2, 1], method=method, containment=True)
    assert [new.position for new in contained] == [0, 3, 1, 2]
    vectors = [[1.0, 0.0], [0.96, 0.28], [0.94, 0.3412], [0.0, 1.0]]
    by_cosine = rerank("any", texts, [4, 3, 2, 1], method=method, vectors=vectors)
    assert [new.position for new in by_cosine] == [0, 2, 3, 1]
