"""The features of a ranking's documents: specifications and an index in, a matrix out."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from greylag.features.cliques import ABSENT, distinct_cliques
from greylag.features.expansion import relevance_model
from greylag.features.prior import Prior
from greylag.features.spec import CliqueSet, Dependence, Feature, FeatureSpec, Window, unique_features
from greylag.features.statistics import CliqueTable, WindowStatistics
from greylag.features.weighting import WEIGHTINGS, CollectionStatistics, FeatureParameters, Weighting
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, IntArray, Ranking

_log = logging.getLogger("greylag")


class _Query(NamedTuple):
    """A query's term numbers: all different ones, ascending; in its order; and of an expansion, with probabilities."""

    vocabulary: IntArray
    terms: IntArray
    expansion: IntArray
    probabilities: FloatArray


class _Cliques(NamedTuple):
    """A query's cliques for a group of features.

    ``rows``: shape (cliques, largest), places in the query's vocabulary, filled up with `ABSENT`. ``multiplicity``: shape
    (cliques, sets). ``table``: the same cliques as term numbers. ``counts``: shape (2, cliques, windows), cf and df.
    """

    rows: IntArray
    multiplicity: FloatArray
    table: CliqueTable
    counts: IntArray


class _Group:
    """The features whose cliques are matched alike: expansion terms, or query cliques with or without regard to order.

    ``columns``: their places among the features; ``sets``: their clique sets; ``windows``: their windows;
    ``signals``: their different pairs of window and weighting, each computed once. ``features``: shape (features, 2),
    each one's signal and clique set.
    """

    def __init__(self, specs: tuple[Feature, ...], order: str, *, expands: bool = False) -> None:
        self.ordered, self.expands = order == "O", expands
        mine = {
            f: spec
            for f, spec in enumerate(specs)
            if isinstance(spec, FeatureSpec) and spec.window.order == order and (spec.cliques == "expansion") == expands
        }
        self.columns, own = list(mine), list(mine.values())
        self.sets: tuple[tuple[Dependence, CliqueSet], ...] = tuple(sorted({(s.dependence, s.cliques) for s in own}))
        self.windows: tuple[Window, ...] = tuple(sorted({spec.window for spec in own}))
        self.signals = sorted({(spec.window, spec.function) for spec in own})
        features = [
            (self.signals.index((s.window, s.function)), self.sets.index((s.dependence, s.cliques))) for s in own
        ]
        self.features = np.array(features, dtype=np.int64).reshape(-1, 2)
        codes = [(self.windows.index(window), WEIGHTINGS[function].code) for window, function in self.signals]
        self.codes = np.array(codes, dtype=np.int64).reshape(-1, 2)


@dataclass(frozen=True)
class FeatureExtractor:
    """Computes features for rankings; safe to share between threads.

    Parameters
    ----------
    index : where documents and statistics come from.
    specs : the features, in the order of the matrix's columns.
    parameters : mu, k1, b and the rest.

    Notes
    -----
    A feature's value is the sum over its cliques, each counted as often as the query has it; 0 where it has none. A
    query term that the collection lacks makes cliques of tf = cf = 0. A document that the index lacks gets, in every
    feature, the least value among the query's documents that it has (0 where it has none), with a warning.
    """

    index: PositionalIndex
    specs: tuple[Feature, ...]
    parameters: FeatureParameters = FeatureParameters()
    _statistics: WindowStatistics = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "specs", unique_features(self.specs))
        object.__setattr__(self, "_statistics", WindowStatistics(self.index))

    def __call__(self, ranking: Ranking) -> FloatArray:
        """The features of the ranking's documents, shape (documents, features), in its order."""
        numbers = self.index.documents(ranking.docids)
        known = np.flatnonzero(numbers >= 0)
        out = np.zeros((len(ranking), len(self.specs)))
        if len(known):
            order = known[np.argsort(numbers[known])]
            terms = self.index.query_terms(ranking.query)
            feedback = numbers[: self.parameters.fb_docs]
            out[order] = self._values(self._query(terms, feedback[feedback >= 0]), numbers[order])
        if len(known) < len(ranking):
            lost = ranking.docids[int(np.argmin(numbers))]
            _log.warning(
                "query %s: %d of %d documents are not in the index (%s first): they get each feature's least value",
                ranking.qid, len(ranking) - len(known), len(ranking), lost,
            )  # fmt: skip
            out[numbers < 0] = out[known].min(axis=0) if len(known) else 0.0
        return out

    def limits(self, query: str) -> bool:
        """Whether `parameters.max_clique` keeps cliques of this query out of some feature."""
        longest = len(self.index.query_terms(query))
        return longest > self.parameters.max_clique and any(str(spec).startswith("FD/") for spec in self.specs)

    def _query(self, terms: IntArray, feedback: IntArray) -> _Query:
        """The query with, where a feature wants it, a relevance model of the feedback documents."""
        if not any(group.expands for group in self._groups):
            return _Query(np.unique(terms), terms, np.empty(0, dtype=np.int64), np.empty(0))
        expansion, probabilities = relevance_model(self.index, terms, feedback, self.parameters)
        return _Query(np.union1d(terms, expansion), terms, expansion, probabilities)

    def _cliques(self, group: _Group, query: _Query) -> _Cliques:
        from greylag.features.windows import FILLER

        if group.expands:
            rows, multiplicity = (
                np.searchsorted(query.vocabulary, query.expansion)[:, None],
                query.probabilities[:, None],
            )
        else:
            places = np.searchsorted(query.vocabulary, query.terms)
            rows, multiplicity = distinct_cliques(places, group.sets, self.parameters.max_clique, ordered=group.ordered)
        terms = np.where(rows == ABSENT, FILLER, query.vocabulary[rows])
        table = CliqueTable(group.ordered, terms, group.windows, self.parameters.profile == "galago")
        if group.expands:  # nothing to count, so nothing to keep beside the index
            frequencies = (
                self.index.collection_frequencies[query.expansion],
                self.index.document_frequencies[query.expansion],
            )
            return _Cliques(rows, multiplicity, table, np.stack(frequencies)[:, :, None])
        return _Cliques(rows, multiplicity, table, self._statistics.counts(table))

    def _values(self, query: _Query, documents: IntArray) -> FloatArray:
        """Features of documents in ascending order of their numbers."""
        from greylag.features.windows import accumulate, locate

        index = self.index
        postings, having, offsets = locate(index.postings_offsets, index.postings_docs, query.vocabulary, documents)
        lengths = index.document_lengths[documents]
        by_function = {name: weighting.document(lengths) for name, weighting in self._weightings.items()}
        out = np.zeros((len(documents), len(self.specs)))
        for column, prior in self._priors.items():
            out[:, column] = prior[documents]
        for group in self._groups:
            rows, multiplicity, table, counts = self._cliques(group, query)
            if not len(rows):
                continue  # its features stay 0
            values, clique_values = self._absent(group, counts, multiplicity, by_function)
            accumulate(
                group.ordered, rows, postings, having, offsets, index.postings_starts, index.positions, table.widths,
                table.overlap, index.longest_document, group.codes, group.features, multiplicity, clique_values,
                np.stack([by_function[function] for _, function in group.signals], axis=1), values,
            )  # fmt: skip
            out[:, group.columns] = values
        return out

    def _absent(
        self, group: _Group, counts: IntArray, multiplicity: FloatArray, by_function: dict[str, FloatArray]
    ) -> tuple[FloatArray, FloatArray]:
        """Features as they are where no clique occurs (documents, features), and clique values (cliques, signals)."""
        cf, df = counts
        clique_values = np.empty((len(multiplicity), len(group.signals)))
        of_cliques = np.empty((len(group.sets), len(group.signals)))
        of_documents = {name: self._weightings[name].absent_document(value) for name, value in by_function.items()}
        for s, (window, function) in enumerate(group.signals):
            w = group.windows.index(window)
            clique_values[:, s] = self._weightings[function].clique(cf[:, w], df[:, w])
            absent = self._weightings[function].absent_clique(clique_values[:, s])
            of_cliques[:, s] = np.einsum("cs,c->s", multiplicity, absent)  # not BLAS: its sums depend on threads
        sizes = multiplicity.sum(axis=0)
        columns = [of_cliques[c, s] + sizes[c] * of_documents[group.signals[s][1]] for s, c in group.features]
        return np.stack(columns, axis=1), clique_values

    @cached_property
    def _groups(self) -> list[_Group]:
        groups = _Group(self.specs, "O"), _Group(self.specs, "U"), _Group(self.specs, "O", expands=True)
        return [group for group in groups if group.columns]

    @cached_property
    def _priors(self) -> dict[int, FloatArray]:
        """Each prior's column, and its values for all documents of the index."""
        return {f: spec.values(self.index) for f, spec in enumerate(self.specs) if isinstance(spec, Prior)}

    @cached_property
    def _weightings(self) -> dict[str, Weighting]:
        index = self.index
        collection = CollectionStatistics(index.n_documents, index.n_tokens, index.average_length)
        used = sorted({spec.function for spec in self.specs if isinstance(spec, FeatureSpec)})
        return {name: WEIGHTINGS[name](collection, self.parameters) for name in used}
