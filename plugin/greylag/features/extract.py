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
    """``vocabulary``: a query's different term numbers. As places in it: ``terms``, in the query's order, and those of
    its ``expansion``, with ``probabilities``.
    """

    vocabulary: IntArray
    terms: IntArray
    expansion: IntArray
    probabilities: FloatArray


class _Cliques(NamedTuple):
    """A query's cliques for a group of features.

    ``rows``: shape (cliques, largest), places in the query's vocabulary, filled up with `ABSENT`. ``multiplicity``:
    shape (cliques, sets). ``table``: the same cliques as term numbers. ``counts``: cf and df, shape (2, cliques,
    windows).
    """

    rows: IntArray
    multiplicity: FloatArray
    table: CliqueTable
    counts: IntArray


class _Group:
    """The features whose cliques are matched alike: expansion terms, or query cliques with or without regard to order.

    ``columns``: their places among the features; ``sets``: their clique sets; ``functions`` and ``windows``: what they
    are weighted by and matched in, each pair of which is computed once. ``sources``: the features' clique sets, and
    their pairs in the order of functions, then windows.
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
        self.functions = sorted({spec.function for spec in own})
        self.codes = np.array([WEIGHTINGS[function].code for function in self.functions])
        pairs = [self.functions.index(s.function) * len(self.windows) + self.windows.index(s.window) for s in own]
        self.sources = [self.sets.index((s.dependence, s.cliques)) for s in own], pairs


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
    feature, the least value among the query's documents that it has (0 where it has none), with a warning. An expansion
    comes from the ranking's first documents, so that its features depend on the ranking that is given.
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
            out[order] = self._values(self._query(ranking), numbers[order])
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

    def _query(self, ranking: Ranking) -> _Query:
        vocabulary, terms = np.unique(self.index.query_terms(ranking.query), return_inverse=True)
        if not any(group.expands for group in self._groups):
            return _Query(vocabulary, terms, terms[:0], np.empty(0))
        expansion, probabilities = relevance_model(self.index, ranking, self.parameters)
        vocabulary = np.append(vocabulary, np.setdiff1d(expansion, vocabulary))
        order = np.argsort(vocabulary)
        return _Query(vocabulary, terms, order[np.searchsorted(vocabulary, expansion, sorter=order)], probabilities)

    def _cliques(self, group: _Group, query: _Query) -> _Cliques:
        from greylag.features.windows import FILLER

        if group.expands:
            rows, multiplicity = query.expansion[:, None], query.probabilities[:, None]
        else:
            limit = self.parameters.max_clique
            rows, multiplicity = distinct_cliques(query.terms, group.sets, limit, ordered=group.ordered)
        terms = np.where(rows == ABSENT, FILLER, query.vocabulary[rows])
        table = CliqueTable(group.ordered, terms, group.windows, self.parameters.profile == "galago")
        if group.expands:  # the index has the counts of single terms
            counts = np.stack([self.index.collection_frequencies[terms], self.index.document_frequencies[terms]])
        else:
            counts = self._statistics.counts(table)
        return _Cliques(rows, multiplicity, table, counts)

    def _values(self, query: _Query, documents: IntArray) -> FloatArray:
        """Features of documents in ascending order of their numbers."""
        from greylag.features.windows import accumulate, locate

        index = self.index
        postings, having, offsets = locate(index.postings_offsets, index.postings_docs, query.vocabulary, documents)
        lengths = index.document_lengths[documents]
        out = np.zeros((len(documents), len(self.specs)))
        for column, prior in self._priors.items():
            out[:, column] = prior[documents]
        for group in self._groups:
            rows, multiplicity, table, counts = self._cliques(group, query)
            if not len(rows):
                continue  # its features stay 0
            weightings = [self._weightings[function] for function in group.functions]
            clique_values = np.concatenate([weighting.clique(*counts) for weighting in weightings], axis=1)
            document_values = np.stack([weighting.document(lengths) for weighting in weightings], axis=1)
            values = _absent(weightings, clique_values, document_values, multiplicity)
            accumulate(
                group.ordered, rows, postings, having, offsets, index.postings_starts, index.positions, table.widths,
                table.overlap, group.codes, multiplicity, clique_values, document_values, values,
            )  # fmt: skip
            out[:, group.columns] = values[:, *group.sources]
        return out

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


def _absent(
    weightings: list[Weighting], clique_values: FloatArray, document_values: FloatArray, multiplicity: FloatArray
) -> FloatArray:
    """What features are where no clique occurs, shape (documents, sets, weightings x windows).

    Shapes as in `windows.accumulate`.
    """
    parts = np.split(clique_values, len(weightings), axis=1)
    absent = np.concatenate([w.absent_clique(part) for w, part in zip(weightings, parts, strict=True)], axis=1)
    of_cliques = np.einsum("ck,cs->ks", multiplicity, absent)  # not by BLAS, whose sums depend on the number of threads
    columns = [w.absent_document(values) for w, values in zip(weightings, document_values.T, strict=True)]
    of_documents = np.repeat(np.stack(columns, axis=1), parts[0].shape[1], axis=1)
    values: FloatArray = of_cliques + multiplicity.sum(axis=0)[:, None] * of_documents[:, None, :]
    return values
