"""The cliques of a query's Markov random field, as places in the query."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import combinations

from greylag.features.spec import CliqueSet, Dependence

Clique = tuple[int, ...]


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


def distinct(terms: Sequence[int], places: Sequence[Clique], *, sort: bool) -> Counter[Clique]:
    """Cliques as term numbers, with how often each stands; with `sort`, without regard to the order of terms.

    A word that the query repeats gives cliques that are the same, each counted as often as the query has it.
    """
    named = (tuple(terms[place] for place in clique) for clique in places)
    return Counter(tuple(sorted(clique)) for clique in named) if sort else Counter(named)
