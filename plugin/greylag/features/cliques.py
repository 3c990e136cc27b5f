"""The cliques of a query's Markov random field."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache
from itertools import combinations, pairwise

import numpy as np

from greylag.features.spec import CliqueSet, Dependence, Feature, FeatureSpec
from greylag.ranking import FloatArray, IntArray

Clique = tuple[int, ...]
ABSENT = -1  # fills up the rows of cliques that are smaller than the largest


def cliques(n_terms: int, dependence: Dependence, clique_set: CliqueSet, max_size: int = 3) -> list[Clique]:
    """The cliques of query terms 0, ..., `n_terms` - 1 (Metzler & Croft 2005; Metzler 2007, section 3).

    ``term``: the terms. ``ordered``: contiguous sub-sequences of 2 to `max_size` terms that are cliques of the graph.
    ``unordered``: all sub-sets of 2 to `max_size` terms that are. Under FI there are none of two terms, under SD the
    pairs of neighbours, under FD every sub-set. Each clique is in the order of the query.
    """
    if clique_set == "term":
        return [(place,) for place in range(n_terms)]
    largest = min({"FI": 1, "SD": 2, "FD": n_terms}[dependence], max_size, n_terms)
    sizes = range(2, largest + 1)
    if clique_set == "ordered" or dependence == "SD":
        return [tuple(range(first, first + size)) for size in sizes for first in range(n_terms - size + 1)]
    return [clique for size in sizes for clique in combinations(range(n_terms), size)]


def redundant_features(features: Sequence[Feature], lengths: Iterable[int], max_size: int) -> dict[Feature, str]:
    """The features that cliques alone show to be trivial or duplicates on queries of `lengths` terms, and why.

    Trivial: no query has a clique. Duplicate: every query has the cliques of an earlier feature of the same weighting,
    as FD has those of SD where no query has more than two terms.
    """
    different = sorted(set(lengths))
    reasons: dict[Feature, str] = {}
    first: dict[tuple[str, tuple[bytes, ...]], Feature] = {}
    for feature in features:
        if not isinstance(feature, FeatureSpec) or feature.cliques == "expansion":
            continue
        tables = [_table(n, feature.dependence, feature.cliques, max_size) for n in different]
        key = feature.weighting, tuple(table.tobytes() for table in tables)
        if not any(map(len, tables)):
            reasons[feature] = f"{feature} has no clique in any query"
        elif key in first:
            reasons[feature] = f"{feature} has the cliques of {first[key]} in every query"
        else:
            first[key] = feature
    return reasons


@lru_cache(maxsize=256)
def _table(n_terms: int, dependence: Dependence, clique_set: CliqueSet, max_size: int) -> IntArray:
    """`cliques` as rows, shape (cliques, max_size)."""
    found = cliques(n_terms, dependence, clique_set, max_size)
    table = np.full((len(found), max_size), ABSENT, dtype=np.int64)
    for row, clique in zip(table, found, strict=True):
        row[: len(clique)] = clique
    return table


def distinct_cliques(
    terms: IntArray, sets: tuple[tuple[Dependence, CliqueSet], ...], max_size: int, *, ordered: bool
) -> tuple[IntArray, FloatArray]:
    """The distinct cliques of some clique sets over a query's terms, which may repeat.

    Parameters
    ----------
    terms : numbers from 0 of the query's terms, in its order.
    sets : the clique sets.
    ordered : whether cliques of the same terms in another order differ; else rows are sorted.

    Returns
    -------
    rows : shape (cliques, `max_size`), of term numbers, filled up with `ABSENT`.
    multiplicity : shape (cliques, sets), how often each set has each clique.
    """
    tables = [_table(len(terms), *clique_set, max_size) for clique_set in sets]
    places = np.concatenate(tables)
    rows = np.where(places == ABSENT, len(terms), np.append(terms, 0)[places])  # len(terms) sorts behind every term
    if not ordered:
        rows.sort(axis=1)
    keys = rows @ (len(terms) + 1) ** np.arange(max_size)[::-1]
    _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    ends = np.cumsum([0, *map(len, tables)])
    multiplicity = [np.bincount(inverse[a:b], minlength=len(first)) for a, b in pairwise(ends)]
    rows = rows[first]
    rows[rows == len(terms)] = ABSENT
    return rows, np.array(multiplicity, dtype=np.float64).T
