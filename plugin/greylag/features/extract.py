"""Feature extraction: a ranking and an index in, a matrix out.

First cliques are counted, in the documents and in the collection, then the counts are weighed. Only the second step
depends on mu, k1, b and idf, so that many values of these need one count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import pairwise
from typing import Any, NamedTuple, cast

import numpy as np

from greylag.base import BoolArray, FloatArray, IntArray, ParameterError, Ranking, rebuilt, report_missing, shown
from greylag.features.cliques import CliqueSets, QueryTerms, query_cliques
from greylag.features.feature import NORMALISATIONS, Evidence, Feature, Normalised, Values, derive, unique_features
from greylag.features.gains import add_gains, set_absent
from greylag.features.spec import FeatureSpec, Window
from greylag.features.statistics import CliqueTable, WindowStatistics, widths
from greylag.features.weighting import WEIGHTINGS, CollectionStatistics, FeatureParameters, Weighting
from greylag.features.windows import term_occurrences
from greylag.index import Int32Array, PositionalIndex, check_index, offsets


@dataclass(frozen=True, eq=False)
class GroupCounts:
    """The counts of the cliques of q queries, one query after another."""

    cliques: IntArray  # (q + 1,): the cliques of query i are cliques[i], ..., cliques[i + 1] - 1
    multiplicity: FloatArray  # (sets, cliques): how often each clique set has each clique
    collection: IntArray  # (2, cliques, windows): cf and df
    offsets: IntArray  # (cliques + 1,): where the rows of each clique begin and end
    rows: Int32Array  # (n,): the rows of the documents in which the clique matches within some window
    codes: Int32Array  # (n,): as windows.occurrences returns them
    tf: Int32Array  # (m, windows): as windows.occurrences returns them

    def of_set(self, number: int) -> GroupCounts:
        """Return the counts of the cliques of one clique set."""
        kept = self.multiplicity[number] > 0
        sizes = np.diff(self.offsets)
        within = np.repeat(kept, sizes)
        return replace(
            self,
            cliques=offsets(kept)[self.cliques],
            multiplicity=self.multiplicity[number : number + 1, kept],
            collection=self.collection[:, kept],
            offsets=offsets(sizes[kept]),
            rows=self.rows[within],
            codes=self.codes[within],
        )


@dataclass(frozen=True, eq=False)
class FeatureCounts:
    """The counts of q rankings of n documents; m of these are known (see `FeatureExtractor.knows`)."""

    offsets: IntArray  # (q + 1,): the documents of ranking i are offsets[i], ..., offsets[i + 1] - 1
    known: BoolArray  # (n,): the known documents are the m rows of what follows
    lengths: IntArray  # (m,): in tokens; 0 if no feature needs the index
    fixed: FloatArray  # (m, other features): not sums over cliques, not normalised; NaN where there is no value
    groups: tuple[GroupCounts, ...]  # one for each group of features whose cliques are matched together

    @cached_property
    def known_offsets(self) -> IntArray:
        """The rows of ranking i are ``known_offsets[i], ..., known_offsets[i + 1] - 1``; shape (q + 1,)."""
        return offsets(self.known)[self.offsets]

    def by_setting(self, setting: int) -> FeatureCounts:
        """Return the counts by one of several settings; all features are expansions."""
        return replace(self, groups=tuple(group.of_set(setting) for group in self.groups))

    @classmethod
    def join(cls, parts: Sequence[FeatureCounts]) -> FeatureCounts:
        """Join the counts of all rankings of the blocks, at least one."""
        if len(parts) == 1:
            return parts[0]
        starts = offsets([len(part.lengths) for part in parts])
        return cls(
            offsets=offsets(np.concatenate([np.diff(part.offsets) for part in parts])),
            known=np.concatenate([part.known for part in parts]),
            lengths=np.concatenate([part.lengths for part in parts]),
            fixed=np.concatenate([part.fixed for part in parts]),
            groups=tuple(_join(groups, starts) for groups in zip(*(part.groups for part in parts), strict=True)),
        )


def _join(parts: Sequence[GroupCounts], starts: IntArray) -> GroupCounts:
    """Join the counts of the same group; the rows of block i are from ``starts[i]`` on."""
    placed = list(zip(parts, starts[:-1].astype(np.int32), offsets([len(part.tf) for part in parts])[:-1], strict=True))
    return GroupCounts(
        cliques=offsets(np.concatenate([np.diff(part.cliques) for part in parts])),
        multiplicity=np.concatenate([part.multiplicity for part in parts], axis=1),
        collection=np.concatenate([part.collection for part in parts], axis=1),
        offsets=offsets(np.concatenate([np.diff(part.offsets) for part in parts])),
        rows=np.concatenate([part.rows + row for part, row, _ in placed]),
        codes=np.concatenate([part.codes - (part.codes < 0) * np.int32(tf) for part, _, tf in placed]),
        tf=np.concatenate([part.tf for part in parts]),
    )


class _Match(NamedTuple):
    """How cliques are matched: features that agree in this share one pass."""

    expands: bool  # whether they are expansion terms
    ordered: bool
    first: bool  # whether the first match is looked for, rather than the number of matches
    lead: int | None  # how many of a document's positions are looked at; None for all


class _Group:
    """Features whose cliques are matched in the same way."""

    def __init__(self, match: _Match, by_column: Mapping[int, FeatureSpec]) -> None:
        self.match, self.columns, specs = match, list(by_column), list(by_column.values())
        # The distinct clique sets, windows and functions; each pair of the last two is computed once.
        self.sets: CliqueSets = tuple(sorted({(s.dependence, s.cliques) for s in specs}))
        self.windows: tuple[Window, ...] = tuple(sorted({spec.window for spec in specs}))
        self.widths = widths(self.windows)
        self.functions = sorted({spec.function for spec in specs})
        self.codes = np.array([WEIGHTINGS[function].code for function in self.functions])
        # For each feature, the numbers of its clique set and of its (function, window) pair.
        pairs = [self.functions.index(s.function) * len(self.windows) + self.windows.index(s.window) for s in specs]
        self.sources = np.array([self.sets.index((s.dependence, s.cliques)) for s in specs]), np.array(pairs)


class Origin(NamedTuple):
    """The parameters and collection that feature values depend on."""

    parameters: FeatureParameters
    collection: CollectionStatistics
    fingerprint: str  # of the collection


@dataclass(frozen=True)
class FeatureExtractor:
    """Computes the features of rankings. Instances are safe to share between threads.

    A feature of type `FeatureSpec` is the sum of its weighting over the query's cliques, each counted as often as the
    query has it, and 0 if there are none. A query term that the collection lacks makes cliques with tf = cf = 0.
    Expansion features depend on the whole ranking, as the expansion is estimated on its top documents.

    A document outside the index is given, in every feature, the value of the query's other documents (0 if there are
    none) that adds least to the score: the least value, or the greatest one if the feature's weight is negative. The
    others are treated as if it were not there. A document of the index that a feature has no value for, because a run
    did not retrieve it or it is beyond a stage's depth, is given the least value, after any normalisation (0 after
    ``@minmax``); 0 if none has one.

    Parameters
    ----------
    index : PositionalIndex or None
        Documents and collection statistics; None if no feature needs them, as those of runs do not.
    specs : sequence of Feature
        The columns of the matrix.
    parameters : FeatureParameters, default ``FeatureParameters()``

    Examples
    --------
    >>> index = PositionalIndex.from_texts({"d1": "new york city", "d2": "york"})
    >>> extractor = FeatureExtractor(index, (FeatureSpec("FI", "term", "LM"), FeatureSpec("SD", "ordered", "BM25-O-1")))
    >>> extractor(Ranking("q", "new york", ("d2", "d1"), np.zeros(2))).shape
    (2, 2)
    """

    index: PositionalIndex | None
    specs: tuple[Feature, ...]
    parameters: FeatureParameters = FeatureParameters()

    def __post_init__(self) -> None:
        if self.index is not None:
            check_index("FeatureExtractor(index, features)", self.index)
        object.__setattr__(self, "specs", unique_features(self.specs))
        if self.index is not None:
            _ = self._statistics  # now, or threads that share the extractor would make several
        elif asking := next((base for base in self._bases if base.needs_index), None):
            raise ParameterError(f"feature {asking} needs an index: give one, or leave the feature out")

    def __reduce__(self) -> tuple[Any, ...]:
        return rebuilt(self)

    @cached_property
    def _statistics(self) -> WindowStatistics:
        return WindowStatistics(self._opened)

    @cached_property
    def _bases(self) -> tuple[Feature, ...]:
        """The features before normalisation: those that are normalised in several ways are computed once."""
        return tuple(dict.fromkeys(spec.base for spec in self.specs))

    def knows(self, docids: Sequence[str]) -> BoolArray:
        """Return which documents have features, shape (len(docids),): all if no feature needs the index."""
        return self._numbers(docids) >= 0

    def _numbers(self, docids: Sequence[str]) -> IntArray:
        """Return the documents' numbers in the index, -1 for one that it lacks; 0 if no feature needs the index."""
        return self._opened.documents(docids) if self._needs_index else np.zeros(len(docids), dtype=np.int64)

    @cached_property
    def _needs_index(self) -> bool:
        return any(base.needs_index for base in self._bases)

    @cached_property
    def _reading(self) -> Feature | None:
        """A feature that reads the query's text, if there is one."""
        return next((base for base in self._bases if base.reads_query), None)

    def __call__(self, ranking: Ranking, weights: Sequence[float] | None = None) -> FloatArray:
        """Compute the features of the ranking's documents, shape (documents, features), in ranking order."""
        if not isinstance(ranking, Ranking):
            raise ParameterError(
                f"features are computed for one query, not for {shown(ranking)}: write extractor(run[qid]), or "
                "greylag.learning.training_data(run, qrels, extractor)"
            )
        # The signs of a model's `weights` decide the values of unknown documents; by default, all are positive.
        return self.weigh(self.count([ranking]), weights)

    def count(self, rankings: Sequence[Ranking], settings: Sequence[FeatureParameters] = ()) -> FeatureCounts:
        """Count what the features of rankings need, expansions by each of `settings` (`FeatureCounts.by_setting`)."""
        settings = settings or (self.parameters,)
        return FeatureCounts.join([self._count(ranking, settings) for ranking in rankings])

    def weigh(self, counts: FeatureCounts, weights: Sequence[float] | None = None) -> FloatArray:
        """Compute features from their counts, one ranking after another; `weights` and the result as in a call."""
        values = np.empty((len(counts.fixed), len(self._bases)))
        values[:, [*self._evidence]] = counts.fixed
        for group, counted in zip(self._groups, counts.groups, strict=True):
            values[:, group.columns] = self._weigh(group, counted, counts)
        if self._bases != self.specs or self._evidence:
            values = self._derive(values, counts.known_offsets)
        if counts.known.all():
            return values
        out = np.zeros((len(counts.known), len(self.specs)))
        out[counts.known] = values
        # The least by sign: a negative weight makes the greatest value add least.
        signs = np.ones(len(self.specs)) if weights is None else np.where(np.less(weights, 0), -1.0, 1.0)
        for first, end in pairwise(counts.offsets):
            rows, known = out[first:end], counts.known[first:end]
            if known.any() and not known.all():
                rows[~known] = signs * (signs * rows[known]).min(axis=0)
        return out

    @property
    def counting(self) -> tuple[object, ...]:
        """The parameters that counts depend on; the relevance model is estimated with mu."""
        p = self.parameters
        expansion = (p.fb_docs, p.fb_terms, p.mu) if self.expands else ()
        return p.profile, p.max_clique, *expansion

    @property
    def expands(self) -> bool:
        """Whether features look for the terms of a relevance model."""
        return any(group.match.expands for group in self._groups)

    @property
    def origin(self) -> Origin | None:
        """The parameters and the collection, which the values depend on; None without an index."""
        if self.index is None:
            return None
        return Origin(self.parameters, CollectionStatistics.of(self.index), self.index.fingerprint)

    def limits(self, query: str) -> bool:
        """Return whether `parameters.max_clique` excludes some of the query's cliques from a feature."""
        full = any(isinstance(base, FeatureSpec) and base.dependence == "FD" for base in self._bases)
        return full and len(self._opened.query_terms(query)) > self.parameters.max_clique

    @property
    def _opened(self) -> PositionalIndex:
        """The index; if there is none, no feature looks at it."""
        return cast(PositionalIndex, self.index)

    def _derive(self, values: FloatArray, offsets: IntArray) -> FloatArray:
        """Derive the features from their bases, ranking by ranking."""
        out = np.empty((len(values), len(self.specs)))
        for first, end in pairwise(offsets):
            if first == end:
                continue
            rows = np.ascontiguousarray(values[first:end].T)  # NumPy adds each up as if it were alone
            whole: BoolArray = np.logical_not(np.isnan(rows).any(axis=1))
            for method, columns, bases in self._derived:
                if whole[bases].all():
                    out[first:end, columns] = (NORMALISATIONS[method](rows[bases]) if method else rows[bases]).T
                else:
                    for column, base in zip(columns, bases, strict=True):
                        out[first:end, column] = derive(self.specs[column], rows[base])
        return out

    @cached_property
    def _derived(self) -> list[tuple[str | None, list[int], list[int]]]:
        """The columns that are normalised by each method, or by none, and those of their bases."""
        places = {base: place for place, base in enumerate(self._bases)}
        by_method: dict[str | None, tuple[list[int], list[int]]] = {}
        for column, spec in enumerate(self.specs):
            columns, bases = by_method.setdefault(spec.method if isinstance(spec, Normalised) else None, ([], []))
            columns.append(column)
            bases.append(places[spec.base])
        return [(method, *columns) for method, columns in by_method.items()]

    def _count(self, ranking: Ranking, settings: Sequence[FeatureParameters]) -> FeatureCounts:
        if self._reading is not None and not ranking.query:  # a feature takes a while to spell
            ranking.check_query(f"the feature {self._reading}")
        numbers = self._numbers(ranking.docids)
        known = numbers >= 0
        if not known.all():
            lost = [docid for docid, is_known in zip(ranking.docids, known, strict=True) if not is_known]
            report_missing("each feature adds its least to their scores", ranking.qid, lost, len(ranking))
            ranking, numbers = ranking.select(known), numbers[known]
        lengths, fixed = np.zeros(len(ranking), dtype=np.int64), np.empty((len(ranking), len(self._evidence)))
        groups: tuple[GroupCounts, ...] = ()
        if len(self._evidence) < len(self._bases):
            lengths, groups = self._opened.document_lengths[numbers], self._count_groups(ranking, numbers, settings)
        for place, values in enumerate(self._evidence.values() if len(ranking) else ()):
            fixed[:, place] = values(ranking)
        return FeatureCounts(np.array([0, len(known)]), known, lengths, fixed, groups)

    def _count_groups(
        self, ranking: Ranking, numbers: IntArray, settings: Sequence[FeatureParameters]
    ) -> tuple[GroupCounts, ...]:
        """Count the cliques in documents of the index, which have these numbers."""
        rows = np.argsort(numbers)  # postings are read in ascending order of documents
        p, groups = self.parameters, self._groups
        query = QueryTerms.of(self._opened, ranking, settings, expand=self.expands)
        # Several groups may have the same cliques, such as all that look at single terms.
        distinct = {
            (sets, ordered): query_cliques(query, sets, p.max_clique, ordered=ordered)
            for sets, ordered in {(group.sets, group.match.ordered) for group in groups}
        }
        cliques = [distinct[group.sets, group.match.ordered] for group in groups]
        tables = [
            CliqueTable(group.match.ordered, group_cliques.terms, group.windows, p.profile)
            for group, group_cliques in zip(groups, cliques, strict=True)
        ]
        located = self._opened.parts.locate(query.of_query, numbers[rows])
        places, counted = rows.astype(np.int32), []
        for group, group_cliques, table in zip(groups, cliques, tables, strict=True):
            if group.match.expands:  # without positions, as the expansion may have many terms
                frequencies = self._opened.parts.frequencies(group_cliques.terms[:, 0], numbers[rows])
                occurring = term_occurrences(frequencies, len(group.windows))
            else:
                first, lead = group.match.first, group.match.lead
                occurring = table.occurrences(located, group_cliques.rows, first=first, lead=lead)
            counted.append((group_cliques, occurring))
        return tuple(
            GroupCounts(
                np.array([0, len(cliques.rows)]), cliques.multiplicity.T, collection, ends,
                places[documents], codes, tf,
            )
            for (cliques, (ends, documents, codes, tf)), collection in zip(
                counted, self._statistics.counts(*tables), strict=True
            )
        )  # fmt: skip

    def _weigh(self, group: _Group, counted: GroupCounts, counts: FeatureCounts) -> FloatArray:
        """Weigh the values of a group's features, shape (documents, features)."""
        lead, n_windows, n_functions = group.match.lead, len(group.windows), len(group.functions)
        lengths = counts.lengths if lead is None else np.minimum(counts.lengths, lead)
        # The weightings' arguments, and their values where no clique occurs, as the compiled loops take them: a column
        # for each window of each function, or for each function.
        cliques, absent = np.empty((2, counted.collection.shape[1], n_functions * n_windows))
        documents, absent_documents = np.empty((2, len(lengths), n_functions))
        for f, function in enumerate(group.functions):
            weighting, columns = self._weightings[function, lead], slice(f * n_windows, (f + 1) * n_windows)
            clique, document = weighting.clique(*counted.collection), weighting.document(lengths)
            cliques[:, columns], absent[:, columns] = clique, weighting.absent_clique(clique)
            documents[:, f], absent_documents[:, f] = document, weighting.absent_document(document)
        # BLAS would sum in an order that depends on the threads.
        absent_cliques = [
            np.einsum("kc,cs->ks", counted.multiplicity[:, first:end], absent[first:end])
            for first, end in pairwise(counted.cliques)
        ]
        totals = [counted.multiplicity[:, first:end].sum(axis=1) for first, end in pairwise(counted.cliques)]
        sets, sources = group.sources
        values = np.empty((len(lengths), len(sets)))
        set_absent(
            counts.known_offsets, np.array(absent_cliques), np.array(totals), absent_documents, sets, sources,
            n_windows, values,
        )  # fmt: skip
        add_gains(
            counted.offsets, counted.rows, counted.codes, counted.tf, group.widths, group.codes, counted.multiplicity,
            sets, sources, cliques, documents, values,
        )  # fmt: skip
        return values

    @cached_property
    def _groups(self) -> list[_Group]:
        by_match: dict[_Match, dict[int, FeatureSpec]] = {}
        for column, base in enumerate(self._bases):
            if isinstance(base, FeatureSpec):
                match = _Match(base.expands, base.window.order != "U", base.positional, base.lead)
                by_match.setdefault(match, {})[column] = base
        return [_Group(match, by_column) for match, by_column in by_match.items()]

    @cached_property
    def _evidence(self) -> dict[int, Values]:
        """The column of each feature that is not a sum over cliques, and its function."""
        shared: dict[str, Any] = {}
        # On first use, in the process that uses it: a worker opens its own files, and checks that they are the same.
        evidence = {f: base for f, base in enumerate(self._bases) if isinstance(base, Evidence)}
        for base in evidence.values():
            base.check_files()
        return {f: base.bind_beside(self._opened, shared) for f, base in evidence.items()}

    @cached_property
    def _weightings(self) -> dict[tuple[str, int | None], Weighting]:
        """Each weighting of the documents, or of the first positions of each."""
        return {
            (function, group.match.lead): WEIGHTINGS[function](
                CollectionStatistics.of(self._opened, group.match.lead), self.parameters
            )
            for group in self._groups
            for function in group.functions
        }
