"""The features of a ranking's documents: specifications and an index in, a matrix out."""

from __future__ import annotations

import logging
from collections import Counter
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from greylag.features.cliques import Clique, cliques, distinct
from greylag.features.spec import FeatureSpec, Window, unique_features
from greylag.features.statistics import CliqueTable, WindowStatistics, longest_document
from greylag.features.weighting import WEIGHTINGS, CollectionStatistics, FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ranking import FloatArray, IntArray, Ranking

_log = logging.getLogger("greylag")


class _Group(NamedTuple):
    """The features that match cliques with (or without) regard to order, for one query."""

    columns: list[int]  # their places among the specifications
    rows: IntArray  # shape (cliques, largest): the cliques, as rows of the query's vocabulary
    table: CliqueTable  # the same as term numbers
    multiplicity: FloatArray  # shape (cliques, features)


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
            terms = self.index.term_numbers(self.index.analyze(ranking.query))
            out[order] = self._values(terms, numbers[order])
        if len(known) < len(ranking):
            lost = ranking.docids[int(np.argmin(numbers))]
            _log.warning(
                "query %s: %d of %d documents are not in the index (%s first); they get the least value of each feature",
                ranking.qid, len(ranking) - len(known), len(ranking), lost,
            )  # fmt: skip
            out[numbers < 0] = out[known].min(axis=0) if len(known) else 0.0
        return out

    def limits(self, query: str) -> bool:
        """Whether `parameters.max_clique` keeps cliques of this query out of some feature."""
        longest = len(self.index.analyze(query))
        return longest > self.parameters.max_clique and any(spec.dependence == "FD" for spec in self.specs)

    def _values(self, terms: IntArray, documents: IntArray) -> FloatArray:
        """Features of documents in ascending order of their numbers."""
        from greylag.features.windows import accumulate

        index = self.index
        vocabulary, places = np.unique(terms, return_inverse=True)
        postings = self._postings(vocabulary, documents)
        lengths = index.document_lengths[documents]
        by_function = {name: weighting.document(lengths) for name, (_, weighting) in self._weightings.items()}
        out = np.zeros((len(documents), len(self.specs)))
        for group in self._groups(vocabulary, places):
            specs = [self.specs[column] for column in group.columns]
            widths = [group.table.windows.index(spec.window) for spec in specs]
            codes = [self._weightings[spec.function][0] for spec in specs]
            cf, df = self._statistics.counts(group.table, overlap=self._overlap)
            clique_values, values = np.empty(group.multiplicity.shape), np.empty((len(documents), len(specs)))
            for f, (spec, width) in enumerate(zip(specs, widths, strict=True)):
                weighting = self._weightings[spec.function][1]
                clique_values[:, f] = weighting.clique(cf[:, width], df[:, width])
                values[:, f] = weighting.absent(clique_values[:, f], by_function[spec.function], group.multiplicity[:, f])
            accumulate(
                group.table.ordered, group.rows, group.table.sizes, postings, index.postings_starts, index.positions,
                group.table.widths, self._overlap, longest_document(index), np.array([widths, codes]).T.copy(),
                group.multiplicity, clique_values, np.stack([by_function[s.function] for s in specs], axis=1), values,
            )  # fmt: skip
            out[:, group.columns] = values
        return out

    def _postings(self, vocabulary: IntArray, documents: IntArray) -> IntArray:
        """Each term's posting in each document, -1 where it has none: shape (terms, documents)."""
        from greylag.features.windows import locate

        postings = np.full((len(vocabulary), len(documents)), -1, dtype=np.int64)
        for row, term in enumerate(vocabulary):
            if term >= 0:
                first, end = self.index.postings_offsets[term], self.index.postings_offsets[term + 1]
                locate(self.index.postings_docs, first, end, documents, postings[row])
        return postings

    def _groups(self, vocabulary: IntArray, places: IntArray) -> list[_Group]:
        groups = []
        for order in ("O", "U"):
            columns = [f for f, spec in enumerate(self.specs) if spec.window.order == order]
            counts = [self._cliques(self.specs[f], places, order == "U") for f in columns]
            every: list[Clique] = sorted(set().union(*counts))
            if not every:
                continue  # the features stay 0
            rows = np.full((len(every), max(map(len, every))), -1, dtype=np.int64)
            for row, clique in zip(rows, every, strict=True):
                row[: len(clique)] = clique
            sizes = np.array([len(clique) for clique in every])
            windows: tuple[Window, ...] = tuple(sorted({self.specs[f].window for f in columns}))
            table = CliqueTable(order == "O", np.where(rows < 0, -1, vocabulary[rows]), sizes, windows)
            multiplicity = np.array([[float(count[clique]) for count in counts] for clique in every])
            groups.append(_Group(columns, rows, table, multiplicity))
        return groups

    def _cliques(self, spec: FeatureSpec, places: IntArray, unordered: bool) -> Counter[Clique]:
        found = cliques(len(places), spec.dependence, spec.cliques, self.parameters.max_clique)
        return distinct(places.tolist(), found, sort=unordered)

    @property
    def _overlap(self) -> bool:
        return self.parameters.profile == "galago"

    @cached_property
    def _weightings(self):  # type: ignore[no-untyped-def]
        index = self.index
        collection = CollectionStatistics(index.n_documents, index.n_tokens, index.average_length)
        return {name: (code, make(collection, self.parameters)) for name, (code, make) in WEIGHTINGS.items()}
