"""The cliques of a query's Markov random field, and the terms of a relevance model, its clique set `expansion`.

A model with the features FI/term/LM and FI/expansion/LM (or BM25 instead of LM) is RM3: its two weights interpolate
the query and the relevance model.

References
----------
Lavrenko & Croft, Relevance-based language models, SIGIR 2001 (RM1).
Metzler & Croft, Latent concept expansion using Markov random fields, SIGIR 2007.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import cache, lru_cache
from itertools import accumulate, combinations, pairwise
from math import comb
from typing import NamedTuple

import numpy as np

from greylag.base import FloatArray, IntArray, Ranking
from greylag.features.evidence import MAX_DF_SHARE
from greylag.features.spec import CliqueSet, Dependence
from greylag.features.weighting import FeatureParameters
from greylag.index import PositionalIndex

Clique = tuple[int, ...]
CliqueSets = tuple[tuple[Dependence, CliqueSet], ...]

MAX_CLIQUES = 1_000_000  # of one query; they are all in memory
_MAX_CACHED_TERMS = 6  # terms of a query whose cliques are cached
_log = logging.getLogger("greylag")
ABSENT = -1  # pads rows of indices into the query's vocabulary
FILLER = -2  # pads rows of term numbers, where -1 is a term that the collection lacks


def relevance_models(
    index: PositionalIndex, ranking: Ranking, settings: Sequence[FeatureParameters]
) -> tuple[IntArray, FloatArray]:
    """Estimate RM1 with each of the settings: terms, ascending, and their probabilities, shape (terms, settings)."""
    # A term that is not among the `fb_terms` most probable ones of a setting has 0 there.
    documents = index.documents(ranking.docids)
    documents = documents[documents >= 0]
    estimates = {
        p: _estimate(index, ranking.query, documents[: p[0]], p[1]) for p in {(p.fb_docs, p.mu) for p in settings}
    }
    chosen = []
    for p in settings:
        terms, probabilities = estimates[p.fb_docs, p.mu]
        # Sorted again, as `locate` and `frequencies` need ascending term numbers.
        best = np.sort(np.argsort(-probabilities, kind="stable")[: p.fb_terms])
        chosen.append((terms[best], probabilities[best] / probabilities[best].sum()))
    terms = chosen[0][0] if len(chosen) == 1 else np.unique(np.concatenate([terms for terms, _ in chosen]))
    out = np.zeros((len(terms), len(settings)))
    for setting, (setting_terms, probabilities) in enumerate(chosen):
        out[np.searchsorted(terms, setting_terms), setting] = probabilities
    return terms, out


def _estimate(index: PositionalIndex, text: str, documents: IntArray, mu: float) -> tuple[IntArray, FloatArray]:
    """Estimate the terms of RM1 of a query over some documents, and values in proportion to their probabilities."""
    # P(w|R) = sum over D of P(w|D) P(Q|D) / sum over D of P(Q|D), where P(w|D) = tf / |D|, and P(Q|D) is the geometric
    # mean over the query terms of (tf + mu cf/|C|) / (|D| + mu). The mean, which Indri also uses, keeps a long query
    # from giving all weight to one document. The lowest term numbers win ties; probabilities are normalised to sum to
    # 1.
    frequencies = index.term_frequencies(documents)
    terms, columns = np.unique(frequencies.indices.astype(np.int64), return_inverse=True)
    query, lengths = index.query_terms(text), np.maximum(index.document_lengths[documents], 1)
    query = query[query >= 0]
    background = mu * index.collection_frequencies[query] / index.n_tokens
    smoothed = (frequencies[:, query].toarray() + background) / (lengths[:, None] + mu)
    # In logarithms: the product over a long query would underflow.
    likelihoods = np.exp(np.log(smoothed).sum(axis=1) / max(1, len(query)))
    weights = frequencies.data * np.repeat(likelihoods / lengths, np.diff(frequencies.indptr))
    probabilities = np.bincount(columns, weights=weights, minlength=len(terms))
    # Anserini's RM3 leaves frequent terms out, too: they are probable everywhere, and carry no information.
    rare = index.document_frequencies[terms] <= MAX_DF_SHARE * index.n_documents
    return terms[rare], probabilities[rare]


class QueryTerms(NamedTuple):
    """The terms of a query and of its expansion."""

    vocabulary: IntArray  # (v,): distinct term numbers, -1 for one that the collection lacks; the query's come first
    terms: IntArray  # (t,): the query, in order, as indices into the vocabulary
    expansion: IntArray  # (e,): the expansion terms, as indices into the vocabulary; empty without an expansion
    probabilities: FloatArray  # (e, settings): of the expansion terms in the relevance model of each setting

    @property
    def of_query(self) -> IntArray:
        """The vocabulary without the terms of the expansion alone."""
        return self.vocabulary[: self.terms.max(initial=-1) + 1]

    @classmethod
    def of(
        cls, index: PositionalIndex, ranking: Ranking, settings: Sequence[FeatureParameters], *, expand: bool
    ) -> QueryTerms:
        """Return the terms of the ranking's query, with those of its relevance models if `expand`."""
        of_query = index.query_terms(ranking.query).tolist()  # a few, which take NumPy longer
        places = {term: place for place, term in enumerate(sorted({*of_query}))}
        vocabulary = np.array([*places], np.int64)
        terms = np.array([*map(places.__getitem__, of_query)], np.int64)
        if not expand:
            return cls(vocabulary, terms, terms[:0], np.empty((0, len(settings))))
        expansion, probabilities = relevance_models(index, ranking, settings)
        vocabulary = np.append(vocabulary, np.setdiff1d(expansion, vocabulary))
        order = np.argsort(vocabulary)
        return cls(vocabulary, terms, order[np.searchsorted(vocabulary, expansion, sorter=order)], probabilities)


class QueryCliques(NamedTuple):
    """The distinct cliques of a query for some clique sets."""

    rows: IntArray  # (cliques, size): indices into the query's vocabulary, padded with ABSENT
    multiplicity: FloatArray  # (cliques, sets): how often each set has each clique; an expansion term's probability
    terms: IntArray  # (cliques, size): the rows as term numbers, padded with FILLER


def query_cliques(query: QueryTerms, sets: CliqueSets, max_size: int, *, ordered: bool) -> QueryCliques:
    """Return the cliques of `sets` over a query, as `distinct_cliques`; the expansion has a set for each setting."""
    if sets == (("FI", "expansion"),):
        rows, multiplicity = query.expansion[:, None], query.probabilities
    else:
        distinct = distinct_cliques if len(query.terms) <= _MAX_CACHED_TERMS else distinct_cliques.__wrapped__
        rows, multiplicity = distinct(tuple(query.terms.tolist()), sets, max_size, ordered=ordered)
    return QueryCliques(rows, multiplicity, np.where(rows == ABSENT, FILLER, query.vocabulary[rows]))


def cliques(n_terms: int, dependence: Dependence, clique_set: CliqueSet, max_size: int = 3) -> list[Clique]:
    """List the cliques of query terms 0, ..., ``n_terms - 1`` (Metzler & Croft 2005; Metzler 2007, section 3)."""
    # ``ordered``: contiguous sub-sequences of 2 to `max_size` terms that are cliques of the graph; ``unordered``: all
    # subsets that are. FI has no clique of two terms, SD has the adjacent pairs, and FD has every subset; a long query
    # has smaller or contiguous ones only (see `_largest_subset`). The terms of a clique are in query order.
    if clique_set == "term":
        return [(term,) for term in range(n_terms)]
    largest = min({"FI": 1, "SD": 2, "FD": n_terms}[dependence], max_size, n_terms)
    subset = 1 if clique_set == "ordered" or dependence == "SD" else _largest_subset(n_terms, largest)
    if subset < 2:
        sizes = range(2, largest + 1)
        return [tuple(range(first, first + size)) for size in sizes for first in range(n_terms - size + 1)]
    return [clique for size in range(2, subset + 1) for clique in combinations(range(n_terms), size)]


@cache
def _largest_subset(n_terms: int, largest: int) -> int:
    """Return the size up to which a query has at most `MAX_CLIQUES` subsets; one warning if it is smaller."""
    # Subsets grow exponentially; cutting at a size leaves whole sizes, whose features stay comparable between queries.
    counts = accumulate(comb(n_terms, size) for size in range(2, largest + 1))
    fitting = 1 + sum(count <= MAX_CLIQUES for count in counts)
    if fitting < largest:
        remaining = f"of up to {fitting} terms" if fitting > 1 else "of adjacent terms"
        _log.warning(
            "a query of %d terms has more than %d cliques of up to %d terms under FD: only those %s are used",
            n_terms, MAX_CLIQUES, largest, remaining,
        )  # fmt: skip
    return fitting


# Listing up to a million tuples is slow, and all queries of one length share the table.
@lru_cache(maxsize=256)
def _table(n_terms: int, dependence: Dependence, clique_set: CliqueSet, max_size: int) -> IntArray:
    """Return `cliques` as rows, shape (cliques, max_size)."""
    listed = cliques(n_terms, dependence, clique_set, max_size)
    table = np.full((len(listed), max_size), ABSENT, dtype=np.int64)
    for row, clique in zip(table, listed, strict=True):
        row[: len(clique)] = clique
    return table


# Keys are numbers within the query, so that all queries of three different terms share an entry.
@lru_cache(maxsize=1024)
def distinct_cliques(
    terms: tuple[int, ...], sets: CliqueSets, max_size: int, *, ordered: bool
) -> tuple[IntArray, FloatArray]:
    """Return the rows and multiplicity of `QueryCliques` for a query's `terms`; rows are sorted unless `ordered`."""
    # Queries share the arrays, which must not be written to.
    max_size = 1 if all(name == "term" for _, name in sets) else max_size
    tables = [_table(len(terms), *clique_set, max_size) for clique_set in sets]
    positions = np.concatenate(tables)
    rows = np.where(positions == ABSENT, len(terms), np.array([*terms, 0])[positions])  # that sorts after every term
    if not ordered:
        rows.sort(axis=1)
    # One integer for each clique, if it fits: np.unique of integers is several times as fast as of rows.
    if (len(terms) + 1) ** max_size < 1 << 63:
        keys = rows @ (len(terms) + 1) ** np.arange(max_size)[::-1]
        _, first, inverse = np.unique(keys, return_index=True, return_inverse=True)
    else:
        _, first, inverse = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        inverse = inverse.ravel()
    ends = np.cumsum([0, *map(len, tables)])
    multiplicity = [np.bincount(inverse[a:b], minlength=len(first)) for a, b in pairwise(ends)]
    rows = rows[first]
    rows[rows == len(terms)] = ABSENT
    return rows, np.array(multiplicity, dtype=np.float64).T
