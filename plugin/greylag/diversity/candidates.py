"""Candidates of SVM-div, from a ranking and its index or from term counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import KW_ONLY, dataclass, field
from typing import Any

import numpy as np
from scipy.sparse import csr_matrix

from greylag.base import FloatArray, IntArray, ParameterError, Ranking, check_counts, rebuilt, unit_range
from greylag.diversity.coverage_model import Candidates, CoverageFeatures
from greylag.features import FeatureExtractor, FeatureParameters, ReciprocalRank, parse_feature
from greylag.index import PositionalIndex


@dataclass(frozen=True)
class CandidateMaker:
    """Make candidates from rankings; safe to share between threads.

    Document features are any features by their spelling (``score``, ``SD/ordered/LM-O-4``, ``run:FILE``). All but
    "reciprocal-rank", which is in [0, 1] already, are scaled to [0, 1] over the candidates of the query.

    Parameters
    ----------
    index : PositionalIndex
        The collection. A document that it lacks has no words.
    titles : mapping, optional
        Titles by docid, analysed like the index; or, for criteria on other fields, too, the fields of a document by
        name, such as ``{"title": "Geese", "anchor": "a page on birds"}``. A document without a field meets no criterion
        on it.
    depth : int >= 1, default 100
        How many documents of a ranking, the top ones, models are trained on and diversify.
    """

    index: PositionalIndex
    features: CoverageFeatures
    _: KW_ONLY
    titles: Mapping[str, str | Mapping[str, Any]] | None = None
    parameters: FeatureParameters = FeatureParameters()
    depth: int = 100
    _extract: FeatureExtractor | None = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        check_counts(depth=self.depth)
        records = [fields for fields in (self.titles or {}).values() if isinstance(fields, Mapping)]
        for name in self.features.fields:
            if name != "title" and not any(name in fields for fields in records):
                raise ParameterError(f"a criterion is on field {name!r:.40}, which no document has: pass it by titles")
        specs = tuple(map(parse_feature, self.features.document_features))
        extract = FeatureExtractor(self.index, specs, self.parameters) if specs else None
        object.__setattr__(self, "_extract", extract)

    def __reduce__(self) -> tuple[Any, ...]:
        rebuild, parameters = rebuilt(self)
        return rebuild, parameters, {"_extract": self._extract}  # whose features check their files

    def __call__(self, ranking: Ranking) -> Candidates:
        """Return the documents of a ranking as candidates, in the same order."""
        frequencies = self.index.term_frequencies(self.index.documents(ranking.docids))
        fields = {name: self._field(name, ranking) for name in self.features.fields}
        return candidates_from_counts(
            self.features, frequencies, self.index.idf, fields, self._document_features(ranking)
        )

    def _field(self, name: str, ranking: Ranking) -> csr_matrix:
        titles = self.titles or {}
        # Analysed like the texts, so that a word of a title is the column of the same word in the text.
        words = [self.index.query_terms(_text(docid, titles.get(docid, ""), name)) for docid in ranking.docids]
        columns = np.concatenate([np.empty(0, dtype=np.int64), *words])
        known = columns >= 0  # other words are in no text, and cannot be covered
        rows = np.repeat(np.arange(len(words)), [*map(len, words)])[known]
        return csr_matrix((np.ones(len(rows)), (rows, columns[known])), shape=(len(words), self.index.n_terms))

    def _document_features(self, ranking: Ranking) -> FloatArray:
        if self._extract is None:
            return np.empty((len(ranking), 0))
        pairs = zip(self._extract.specs, self._extract(ranking).T, strict=True)
        # Scaled reciprocal ranks would depend on how many candidates there are.
        columns = [values if feature == ReciprocalRank() else unit_range(values) for feature, values in pairs]
        return np.array(columns).T


def _text(docid: str, fields: str | Mapping[str, Any], name: str) -> str:
    """Return the text of a document's field; a text alone is the title."""
    text = fields.get(name, "") if isinstance(fields, Mapping) else fields if name == "title" else ""
    if not isinstance(text, str):
        raise ParameterError(f"field {name!r:.40} of document {docid!r:.40} is {text!r:.40}, not a string")
    return text


def candidates_from_counts(
    features: CoverageFeatures,
    frequencies: csr_matrix,
    idf: FloatArray,
    fields: Mapping[str, csr_matrix],
    document_features: FloatArray,
) -> Candidates:
    """Make candidates from term counts.

    Parameters
    ----------
    frequencies : csr_matrix, shape (n, V)
        Term frequencies without duplicate entries. Empty documents cover nothing.
    idf : array, shape (V,)
        Inverse document frequencies.
    fields : mapping of str to csr_matrix, shape (n, V)
        The same of each field that criteria are on, such as "title".
    document_features : array, shape (n, number of document features)
    """
    n = frequencies.shape[0]
    matrices = [frequencies, *(fields[name] for name in features.fields)]
    # Only the words of these documents, renumbered: levels times vocabulary would be millions of columns.
    words, numbers = np.unique(np.concatenate([matrix.indices for matrix in matrices]), return_inverse=True)
    body, *others = np.split(
        np.stack([np.concatenate([*map(_rows, matrices)]), numbers]), np.cumsum([m.nnz for m in matrices[:-1]]), 1
    )
    by_field = dict(zip(features.fields, others, strict=True))
    values = {kind: _values(kind, frequencies, fields, idf) for kind in {kind for kind, _ in features.criteria}}
    covered = []
    for level, (kind, bound) in enumerate(features.criteria):
        met = values[kind] <= bound if kind == "tfidf" else values[kind] >= bound
        # A word covered at a level is a column of its own: level * words + word.
        covered.append(by_field.get(kind, body)[:, met] + [[0], [level * len(words)]])
    rows, columns = np.concatenate([np.empty((2, 0), dtype=np.int64), *covered], axis=1)
    shape = len(features.criteria), len(words)
    counts = np.bincount(columns, minlength=shape[0] * shape[1]).reshape(shape)
    # From counts to the number of thresholds reached; a share that equals a threshold reaches it.
    steps = _steps(features, np.searchsorted(features.thresholds, counts / max(n, 1), side="right"))
    # Pairs below the lowest threshold count for no feature, and are most of them.
    used = np.any(steps >= 0, axis=1)
    pairs, counts_for = np.flatnonzero(used), used[columns]
    renumbered = np.cumsum(used) - 1
    entries = (np.ones(counts_for.sum(), dtype=np.int8), (rows[counts_for], renumbered[columns[counts_for]]))
    return Candidates(features, csr_matrix(entries, shape=(n, len(pairs))), steps[pairs], document_features)


def _steps(features: CoverageFeatures, reached: IntArray) -> IntArray:
    """Make `Candidates.steps` of all pairs, from the number of thresholds that each word reaches per level, (L, V)."""
    n_thresholds, steps, curve = len(features.thresholds), [], 0
    for counted in features.counted:
        highest = reached[list(counted)]
        first = np.arange(curve, curve + len(counted))[:, None] * n_thresholds
        steps.append(np.where(highest > 0, first + highest - 1, -1).T)
        curve += len(counted)
    return np.concatenate(steps) if steps else np.empty((0, 1), dtype=np.int64)


def _rows(matrix: csr_matrix) -> IntArray:
    """Return the row of each entry, in storage order."""
    return np.repeat(np.arange(matrix.shape[0]), np.diff(matrix.indptr))


def _values(kind: str, frequencies: csr_matrix, fields: Mapping[str, csr_matrix], idf: FloatArray) -> FloatArray:
    """Return the values that criteria of a kind bound, for each entry of `frequencies`, or of this field."""
    if kind in fields:
        return np.asarray(fields[kind].data)
    if kind == "count":
        return np.asarray(frequencies.data)
    rows = _rows(frequencies)
    if kind == "frequency":
        lengths = np.bincount(rows, weights=frequencies.data, minlength=frequencies.shape[0])
        return np.asarray(frequencies.data / lengths[rows])
    # "tfidf": the rank of each word in its document, from 1, by weight and then by number.
    weights = (1.0 + np.log(frequencies.data)) * idf[frequencies.indices]
    ranks = np.empty(len(rows))
    ranks[np.lexsort((frequencies.indices, -weights, rows))] = np.arange(len(rows)) - frequencies.indptr[rows] + 1
    return ranks
