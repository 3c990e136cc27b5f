"""Feature extraction: a ranking and an index in, a matrix out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from greylag import unknown
from greylag.features.cliques import CliqueSets, QueryCliques, QueryTerms, query_cliques
from greylag.features.derived import derive, plain_features
from greylag.features.feature import Evidence, Feature, Values
from greylag.features.prior import Prior
from greylag.features.spec import FeatureSpec, Window, unique_features
from greylag.features.statistics import CliqueTable, WindowStatistics
from greylag.features.weighting import WEIGHTINGS, CollectionStatistics, FeatureParameters, Weighting
from greylag.features.windows import accumulate, locate
from greylag.index.positional import PositionalIndex
from greylag.ranking import BoolArray, FloatArray, IntArray, Ranking


class _Group:
    """Features whose cliques are matched together: ordered, unordered or expansion.

    ``columns``: the features' places among all features. ``sets``, ``windows`` and ``functions``: the distinct clique
    sets, windows and weightings, each pair of the last two being computed once. ``sources``: for each feature, its
    clique set and its (function, window) pair.
    """

    def __init__(self, specs: tuple[Feature, ...], order: str, *, expands: bool = False) -> None:
        self.ordered, self.expands = order == "O", expands
        mine = {
            f: spec
            for f, spec in enumerate(specs)
            if isinstance(spec, FeatureSpec) and spec.window.order == order and spec.expands == expands
        }
        self.columns, own = list(mine), list(mine.values())
        self.sets: CliqueSets = tuple(sorted({(s.dependence, s.cliques) for s in own}))
        self.windows: tuple[Window, ...] = tuple(sorted({spec.window for spec in own}))
        self.functions = sorted({spec.function for spec in own})
        self.codes = np.array([WEIGHTINGS[function].code for function in self.functions])
        pairs = [self.functions.index(s.function) * len(self.windows) + self.windows.index(s.window) for s in own]
        self.sources = [self.sets.index((s.dependence, s.cliques)) for s in own], pairs


@dataclass(frozen=True)
class Origin:
    """What feature values were computed with.

    Parameters
    ----------
    parameters : FeatureParameters
    collection : CollectionStatistics
    fingerprint : str
        Identifies the collection.
    """

    parameters: FeatureParameters
    collection: CollectionStatistics
    fingerprint: str


@dataclass(frozen=True)
class FeatureExtractor:
    """Computes the features of rankings. Instances are safe to share between threads.

    A feature of type `FeatureSpec` is the sum of its weighting over the query's cliques, each counted as often as the
    query has it, and 0 if there are none. A query term that the collection lacks makes cliques with tf = cf = 0.
    Expansion features depend on the whole ranking, as the expansion is estimated on its top documents.

    A document outside the index is given, in every feature, the value of the query's other documents (0 if there are
    none) that adds least to the score: the least value, or the greatest one if the feature's weight is negative. The
    others are treated as if it were not there. A document of the index that a feature has no value for, because a run
    did not retrieve it or it is beyond a stage's depth, is given the least value, after any normalisation; 0 if none
    has one.

    Parameters
    ----------
    index : PositionalIndex
        Documents and collection statistics.
    specs : sequence of Feature
        The columns of the matrix.
    parameters : FeatureParameters, default ``FeatureParameters()``

    Raises
    ------
    ParameterError
        If there are no features, or one is given twice.

    Examples
    --------
    >>> index = PositionalIndex.from_texts({"d1": "new york city", "d2": "york"})
    >>> extractor = FeatureExtractor(index, (FeatureSpec("FI", "term", "LM"), FeatureSpec("SD", "ordered", "BM25-O-1")))
    >>> extractor(Ranking("q", "new york", ("d2", "d1"), np.zeros(2))).shape
    (2, 2)
    """

    index: PositionalIndex
    specs: tuple[Feature, ...]
    parameters: FeatureParameters = FeatureParameters()
    _statistics: WindowStatistics = field(init=False, repr=False, compare=False)
    _bases: tuple[Feature, ...] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "specs", unique_features(self.specs))
        object.__setattr__(self, "_statistics", WindowStatistics(self.index))
        # What features are made from is computed once, however often it is used.
        bases = dict.fromkeys(base for spec in self.specs for base in plain_features(spec))
        object.__setattr__(self, "_bases", tuple(bases))

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Which documents have features of their own, shape (len(docids),): all if no feature needs the index."""
        needed = any(base.needs_index for base in self._bases)
        return self.index.knows(docids) if needed else np.ones(len(docids), dtype=bool)

    def __call__(self, ranking: Ranking, weights: Sequence[float] | None = None) -> FloatArray:
        """Compute the features of the ranking's documents, shape (documents, features), in ranking order.

        Parameters
        ----------
        ranking : Ranking
        weights : sequence of float, optional
            The weights of a model, whose signs decide what an unknown document is given. By default, all are positive.
        """
        known = self.knows(ranking.docids)
        if known.all():
            return self._complete(ranking)
        out = np.zeros((len(ranking), len(self.specs)))
        lost = [docid for docid, is_known in zip(ranking.docids, known, strict=True) if not is_known]
        unknown.report("each feature adds its least to their scores", ranking.qid, lost, len(ranking))
        if known.any():
            out[known] = self._complete(ranking.select(known))
            signs = np.ones(len(self.specs)) if weights is None else np.where(np.less(weights, 0), -1.0, 1.0)
            out[~known] = signs * (signs * out[known]).min(axis=0)
        return out

    def _complete(self, ranking: Ranking) -> FloatArray:
        """The features of known documents, shape (documents, features)."""
        values = self._indexed(ranking)
        if self._bases == self.specs and not self._evidence:
            return values
        for column, compute in self._evidence.items():
            values[:, column] = compute(ranking)
        by_base = dict(zip(self._bases, values.T, strict=True))
        return np.stack([derive(spec, by_base.__getitem__) for spec in self.specs], axis=1)

    def _indexed(self, ranking: Ranking) -> FloatArray:
        """The features among `_bases` that the index gives, shape (documents, bases); 0 for the others."""
        out = np.zeros((len(ranking), len(self._bases)))
        if len(self._evidence) < len(self._bases) and len(ranking):
            numbers = self.index.documents(ranking.docids)
            order = np.argsort(numbers)
            query = QueryTerms.of(self.index, ranking, self.parameters, expand=any(g.expands for g in self._groups))
            out[order] = self._values(query, numbers[order])
        return out

    @property
    def origin(self) -> Origin:
        """The parameters and the collection, which the values depend on."""
        return Origin(self.parameters, CollectionStatistics.of(self.index), self.index.fingerprint)

    def limits(self, query: str) -> bool:
        """Whether `parameters.max_clique` excludes some of the query's cliques from a feature."""
        longest = len(self.index.query_terms(query))
        full = any(isinstance(base, FeatureSpec) and base.dependence == "FD" for base in self._bases)
        return full and longest > self.parameters.max_clique

    def _counts(self, group: _Group, table: CliqueTable) -> IntArray:
        """Cf and df of the table's cliques, shape (2, cliques, windows)."""
        if not group.expands:
            return self._statistics.counts(table)
        # The index has the counts of single terms.
        return np.stack(
            [self.index.collection_frequencies[table.cliques], self.index.document_frequencies[table.cliques]]
        )

    def _values(self, query: QueryTerms, documents: IntArray) -> FloatArray:
        """The features of documents in ascending order of their numbers."""
        located = locate(self.index.postings_offsets, self.index.postings_docs, query.vocabulary, documents)
        out = np.zeros((len(documents), len(self._bases)))
        for column, prior in self._priors.items():
            out[:, column] = prior[documents]
        for group in self._groups:
            found = query_cliques(query, group.sets, self.parameters.max_clique, ordered=group.ordered)
            if len(found.rows):  # otherwise the group's features are 0
                values = self._group_values(group, found, located, self.index.document_lengths[documents])
                out[:, group.columns] = values[:, *group.sources]
        return out

    def _group_values(
        self, group: _Group, found: QueryCliques, located: tuple[IntArray, IntArray, IntArray], lengths: IntArray
    ) -> FloatArray:
        """The values of a group, shape (documents, sets, weightings x windows)."""
        table = CliqueTable(group.ordered, found.terms, group.windows, self.parameters.profile)
        counts = self._counts(group, table)
        weightings = [self._weightings[function] for function in group.functions]
        clique_values = np.concatenate([weighting.clique(*counts) for weighting in weightings], axis=1)
        document_values = np.stack([weighting.document(lengths) for weighting in weightings], axis=1)
        values = _absent(weightings, clique_values, document_values, found.multiplicity)
        accumulate(
            group.ordered, found.rows, *located, self.index.postings_starts, self.index.positions, table.widths,
            table.overlap, table.per_term, group.codes, found.multiplicity, clique_values, document_values, values,
        )  # fmt: skip
        return values

    @cached_property
    def _groups(self) -> list[_Group]:
        groups = _Group(self._bases, "O"), _Group(self._bases, "U"), _Group(self._bases, "O", expands=True)
        return [group for group in groups if group.columns]

    @cached_property
    def _priors(self) -> dict[int, FloatArray]:
        """The column of each prior, and its values for all documents of the index."""
        return {f: base.values(self.index) for f, base in enumerate(self._bases) if isinstance(base, Prior)}

    @cached_property
    def _evidence(self) -> dict[int, Values]:
        """The column of each feature that is not computed from the index, and its function."""
        return {f: base.bind(self.index) for f, base in enumerate(self._bases) if isinstance(base, Evidence)}

    @cached_property
    def _weightings(self) -> dict[str, Weighting]:
        collection = CollectionStatistics.of(self.index)
        used = sorted({base.function for base in self._bases if isinstance(base, FeatureSpec)})
        return {name: WEIGHTINGS[name](collection, self.parameters) for name in used}


def _absent(
    weightings: list[Weighting], clique_values: FloatArray, document_values: FloatArray, multiplicity: FloatArray
) -> FloatArray:
    """Feature values if no clique occurs, shape (documents, sets, weightings x windows).

    Shapes are those of `windows.accumulate`.
    """
    parts = np.split(clique_values, len(weightings), axis=1)
    absent = np.concatenate([w.absent_clique(part) for w, part in zip(weightings, parts, strict=True)], axis=1)
    of_cliques = np.einsum("ck,cs->ks", multiplicity, absent)  # BLAS sums in an order that depends on the threads
    columns = [w.absent_document(values) for w, values in zip(weightings, document_values.T, strict=True)]
    of_documents = np.repeat(np.stack(columns, axis=1), parts[0].shape[1], axis=1)
    values: FloatArray = of_cliques + multiplicity.sum(axis=0)[:, None] * of_documents[:, None, :]
    return values
