"""The features of a ranking's documents: specifications and an index in, a matrix out."""

from __future__ import annotations

import logging
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from greylag.features.cliques import ABSENT, distinct_cliques
from greylag.features.spec import CliqueSet, Dependence, FeatureSpec, Window, unique_features
from greylag.features.statistics import CliqueTable, WindowStatistics
from greylag.features.weighting import WEIGHTINGS, CollectionStatistics, FeatureParameters, Weighting
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, IntArray, Ranking

_log = logging.getLogger("greylag")


class _Group:
    """The features that match cliques with regard to order ("O"), or without ("U").

    ``columns``: their places among the specifications; ``sets``: their clique sets; ``windows``: their windows;
    ``signals``: their different pairs of window and weighting, each computed once. ``features``: shape (features, 2),
    each one's signal and clique set.
    """

    def __init__(self, specs: tuple[FeatureSpec, ...], order: str) -> None:
        self.ordered = order == "O"
        self.columns = [f for f, spec in enumerate(specs) if spec.window.order == order]
        own = [specs[f] for f in self.columns]
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
    specs: tuple[FeatureSpec, ...]
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
            out[order] = self._values(terms, numbers[order])
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
        return longest > self.parameters.max_clique and any(spec.dependence == "FD" for spec in self.specs)

    def _values(self, terms: IntArray, documents: IntArray) -> FloatArray:
        """Features of documents in ascending order of their numbers."""
        from greylag.features.windows import FILLER, accumulate, locate

        index, overlap = self.index, self.parameters.profile == "galago"
        vocabulary, places = np.unique(terms, return_inverse=True)
        postings, having, having_offsets = locate(index.postings_offsets, index.postings_docs, vocabulary, documents)
        lengths = index.document_lengths[documents]
        by_function = {name: weighting.document(lengths) for name, weighting in self._weightings.items()}
        out = np.zeros((len(documents), len(self.specs)))
        for group in self._groups:
            rows, multiplicity = distinct_cliques(places, group.sets, self.parameters.max_clique, ordered=group.ordered)
            if not len(rows):
                continue  # its features stay 0
            table = CliqueTable(
                group.ordered, np.where(rows == ABSENT, FILLER, vocabulary[rows]), group.windows, overlap
            )
            counts = self._statistics.counts(table)
            values, clique_values = self._absent(group, counts, multiplicity, by_function)
            accumulate(
                group.ordered, rows, postings, having, having_offsets, index.postings_starts, index.positions,
                table.widths, overlap, index.longest_document, group.codes, group.features, multiplicity, clique_values,
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
        return [group for group in (_Group(self.specs, "O"), _Group(self.specs, "U")) if group.columns]

    @cached_property
    def _weightings(self) -> dict[str, Weighting]:
        index = self.index
        collection = CollectionStatistics(index.n_documents, index.n_tokens, index.average_length)
        used = sorted({spec.function for spec in self.specs})
        return {name: WEIGHTINGS[name](collection, self.parameters) for name in used}
