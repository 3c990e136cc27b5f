"""Near-duplicates, by shared word n-grams (Broder 1997) or cosines, behind the best-ranked of their kind."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import KW_ONLY, dataclass
from itertools import chain
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from greylag.base import BoolArray, IntArray, ParameterError, Ranking, check_counts, check_fractions, unit_range
from greylag.diversity.group_limit import GroupGain
from greylag.diversity.sparse_cosines import cosines_by_row
from greylag.diversity.stage import DiversityStage
from greylag.diversity.vector_gain import exact_rows
from greylag.index import Vectors, drop_empty_columns, open_vectors, vectors_of

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

    from greylag.index import PositionalIndex

_NGRAM_THRESHOLD, _COSINE_THRESHOLD = 0.8, 0.95
_ROUNDING = 1e-7  # of cosines; those of equal vectors are 1 to within this


@dataclass(frozen=True)
class NearDuplicates(DiversityStage):
    """Pick documents by their scores, and near-duplicates of a better-ranked one after all others.

    Two documents are near-duplicates if their similarity is at least `threshold`: of their sets A and B of word
    n-grams, the resemblance or, with `containment`, the share of the smaller set that the other one has,

        |A ∩ B| / |A ∪ B|  or  |A ∩ B| / min(|A|, |B|)

    and with `vectors`, their cosine. Words are those of the index, without its stop words and endings; a document of
    fewer than n words is one n-gram, and an empty one is like no other. From the best rank on, a document joins the
    group of the first near-duplicate that begins one, or else begins one. The first `k` have at most `max_per_group` of
    a group, unless there are no others.

    Parameters
    ----------
    index : PositionalIndex, optional
        The collection, for its n-grams. Give it or `vectors`.
    vectors : Vectors, optional
        Vectors to compare instead.
    threshold : float in [0, 1], optional
        The least similarity of near-duplicates. By default, 0.8 for n-grams and 0.95 for cosines.
    n : int >= 1, default 3
        The number of words of an n-gram.
    containment : bool, default False
        Whether the share is of the smaller set.
    max_per_group, depth, k, min_relevance
        See `greylag.diversity.GroupLimit`.

    References
    ----------
    Broder, On the resemblance and containment of documents, SEQUENCES 1997.
    """

    needs = frozenset({"vectors"})
    readers: ClassVar = {"vectors": open_vectors}
    diversifies = False

    index: PositionalIndex | None = None
    _: KW_ONLY
    vectors: Vectors | None = None
    threshold: float | None = None
    n: int = 3
    containment: bool = False
    max_per_group: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        check_fractions(threshold=self._least)
        check_counts(n=self.n, max_per_group=self.max_per_group)
        vectors_of(type(self).__name__, self.index, self.vectors)
        if self.containment and self.index is None:
            raise ParameterError("containment is of word n-grams: give an index, or leave it out")

    @property
    def _least(self) -> float:
        return (
            (_COSINE_THRESHOLD if self.index is None else _NGRAM_THRESHOLD)
            if self.threshold is None
            else self.threshold
        )

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which documents have words or a vector to compare."""
        return vectors_of("", self.index, self.vectors).knows(docids)

    def gain(self, candidates: Ranking) -> GroupGain:
        """Return the relevance of these documents, reduced for near-duplicates."""
        leaders = self._leaders(candidates.docids)
        return GroupGain(unit_range(candidates.scores), leaders, self.max_per_group, 0.0)

    def groups(self, ranking: Ranking) -> dict[str, str]:
        """Group the top `depth` documents that it knows: by docid, that of the best-ranked one of its group."""
        known = self.candidates(ranking.select(self.knows(ranking.docids))).docids
        return {docid: known[leader] for docid, leader in zip(known, self._leaders(known).tolist(), strict=True)}

    def _leaders(self, docids: tuple[str, ...]) -> IntArray:
        """Return the place of the document that begins each one's group, shape (n,)."""
        similar = self._similarity(docids)
        leaders = np.full(len(docids), -1)
        for place in range(len(docids)):
            if leaders[place] < 0:
                leaders[(leaders < 0) & similar(place)] = place
                leaders[place] = place  # also one without words, which is not even similar to itself
        return leaders

    def _similarity(self, docids: tuple[str, ...]) -> Callable[[int], BoolArray]:
        """Return a function from a document's place to which are similar to it."""
        if self.index is None:
            assert self.vectors is not None
            vectors = self.vectors.documents(docids)
            rows = exact_rows(vectors if isinstance(vectors, np.ndarray) else drop_empty_columns(vectors).toarray())
            return lambda place: rows @ rows[place] >= self._least - _ROUNDING
        streams = [self.index.token_stream(number)[0] for number in self.index.documents(docids).tolist()]
        grams = word_ngrams(streams, self.n)
        shared, sizes = cosines_by_row(grams), np.diff(grams.indptr)

        def similar(place: int) -> BoolArray:
            both = shared(place)
            whole = np.minimum(sizes, sizes[place]) if self.containment else sizes + sizes[place] - both
            return np.asarray((both > 0) & (both / np.maximum(whole, 1) >= self._least))

        return similar


def word_ngrams(streams: Sequence[IntArray], n: int) -> csr_matrix:
    """Return the sets of n-grams of documents' words as rows of ones; fewer than n words are one n-gram."""
    from scipy.sparse import csr_matrix

    numbers: dict[tuple[int, ...], int] = {}
    rows = []
    for words in (stream.tolist() for stream in streams):
        grams = set(zip(*(words[start:] for start in range(n)), strict=False)) or ({tuple(words)} if words else ())
        rows.append([numbers.setdefault(gram, len(numbers)) for gram in grams])
    indptr = np.cumsum([0, *map(len, rows)])
    columns = np.fromiter(chain.from_iterable(rows), np.int64, indptr[-1])
    return csr_matrix((np.ones(len(columns)), columns, indptr), shape=(len(rows), max(1, len(numbers))))
