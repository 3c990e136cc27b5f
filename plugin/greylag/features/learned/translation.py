"""Lexical translation: evidence from words of a document that the query lacks, learned from relevant documents.

IBM Model 1 between queries and their relevant documents (Berger & Lafferty 1999). A document's words are translated
into words of queries, by a table of probabilities that expectation maximisation learns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, TypedDict

import numpy as np

from greylag.base import FloatArray, IntArray, ModelError, ParameterError, Ranking
from greylag.features.feature import Feature, Values
from greylag.features.learned.base import LearnedFeature
from greylag.features.statistics import term_counts
from greylag.features.weighting import CollectionStatistics, Dirichlet, FeatureParameters
from greylag.index import PositionalIndex

SELF_SHARE = 0.5  # the share of a word's probability that stays with it
EM_ROUNDS = 5  # of expectation maximisation
MIN_PROBABILITY = 0.05  # probability that is kept
MAX_DOCUMENTS = 20  # of a query
MIN_QUERIES = 2  # with a relevant document that has the word, for it to be translated


class TranslationLayout(TypedDict):
    """The entries of a file."""

    mu: float
    own: float
    table: dict[str, dict[str, float]]


@dataclass(frozen=True, eq=False, repr=False)
class Translation(LearnedFeature):
    """The log-likelihood of the query by the document's language model after translation.

    sum over t in Q of log[(tf'(t) + mu cf(t)/|C|) / (|D| + mu)], with the translated frequency

        tf'(t) = own tf(t) + (1 - own) sum over w in D of T(t|w) tf(w)

    As documents of the index, words without a translation are translated into themselves, so that an empty table gives
    FI/term/LM. So does own = 1.
    """

    kind: ClassVar[str] = "translation"
    uses_ranking: ClassVar[bool] = False

    mu: float
    own: float
    table: Mapping[str, Mapping[str, float]]  # T(t|w), by t and w

    def __post_init__(self) -> None:
        shares = [share for translations in self.table.values() for share in translations.values()]
        if not (0 < self.mu < np.inf and 0 <= self.own <= 1 and all(0 <= share <= 1 for share in shares)):
            raise ModelError("the table of translations is damaged: train the model again")

    def bind(self, index: PositionalIndex) -> Values:
        """Bind the function of a ranking's documents."""
        translate = self.translator(index)
        weighting = Dirichlet(CollectionStatistics.of(index), FeatureParameters(mu=self.mu))

        def values(ranking: Ranking) -> FloatArray:
            documents = index.documents(ranking.docids)
            terms, times, tf = translate(ranking.query, documents)
            background = weighting.clique(*term_counts(index, terms))[:, None]
            term_logs: FloatArray = np.einsum("u,un->n", times, np.log(tf + background))
            document_logs: FloatArray = times.sum() * weighting.document(index.document_lengths[documents])
            return term_logs - document_logs

        return values

    def translator(self, index: PositionalIndex) -> Callable[[str, IntArray], tuple[IntArray, FloatArray, FloatArray]]:
        """Make a function from a query and documents: its terms (u,), how often it has each, and tf', shape (u, n)."""
        from scipy.sparse import csr_array

        targets = index.term_numbers(list(self.table)).tolist()
        rows = {
            target: (index.term_numbers(list(translations)), np.array(list(translations.values())))
            for target, translations in zip(targets, self.table.values(), strict=True)
        }
        translated = np.zeros(index.n_terms, dtype=np.bool_)
        for words, _ in rows.values():
            translated[words[words >= 0]] = True

        def translate(query: str, documents: IntArray) -> tuple[IntArray, FloatArray, FloatArray]:
            terms, times = np.unique(index.query_terms(query), return_counts=True)
            translatable = [(row, *rows[term]) for row, term in enumerate(terms.tolist()) if term in rows and term >= 0]
            known = np.flatnonzero(terms >= 0)
            at = np.concatenate([known, *(np.full(len(words), row) for row, words, _ in translatable)])
            words = np.concatenate([terms[known], *(words for _, words, _ in translatable)])
            itself = np.where(translated[terms[known]], self.own, 1.0)
            shares = np.concatenate([itself, *((1 - self.own) * share for *_, share in translatable)])
            at, words, shares = at[words >= 0], words[words >= 0], shares[words >= 0]
            vocabulary, columns = np.unique(words, return_inverse=True)
            # The index reads ascending documents; a sparse product, as a term has few translations.
            order = np.argsort(documents)
            tf = np.empty((len(terms), len(documents)))
            matrix = csr_array((shares, (at, columns)), shape=(len(terms), len(vocabulary)))
            tf[:, order] = matrix @ index.parts.frequencies(vocabulary, documents[order])
            return terms, times.astype(np.float64), tf

        return translate

    def as_dict(self) -> dict[str, Any]:
        """Return the entries of a file."""
        return {"mu": self.mu, "own": self.own, "table": {term: dict(words) for term, words in self.table.items()}}

    @classmethod
    def from_dict(cls, content: TranslationLayout, parse: Callable[[str], Feature]) -> Translation:
        """Return the feature of a file's entries."""
        return cls(content["mu"], content["own"], content["table"])

    def outline(self) -> list[str]:
        """Return the size of the table: its most probable entries are those of the rarest words, and explain little."""
        return [f"{sum(map(len, self.table.values()))} translations into {len(self.table)} words of queries"]


class Estimate(NamedTuple):
    """The result of expectation maximisation."""

    terms: IntArray  # (c,): the term of each cell, by number
    words: IntArray  # (c,): the document's word
    shares: FloatArray  # (c,): T(t|w); those of a word add up to 1
    likelihoods: tuple[float, ...]  # before each round


class _Query(NamedTuple):
    """A query of u terms and its n relevant documents, of v words that are translated."""

    times: FloatArray  # (u,): how often it has each term, divided by n
    tf: Any  # (n, v): sparse
    fixed: FloatArray  # (n, u): own tf(t) + mu cf(t)/|C|, or tf(t) instead of own tf(t) if t is not translated
    cells: IntArray  # (u, v): keys of cells


def learn_translation(
    index: PositionalIndex,
    rankings: Iterable[Ranking],
    qrels: Mapping[str, Mapping[str, int]],
    *,
    mu: float = 1000.0,
    own: float = SELF_SHARE,
    least: float = MIN_PROBABILITY,
) -> Translation:
    """Learn a table from the queries of `rankings` and their relevant documents; shares below `least` are dropped."""
    pairs = [(ranking.query, _most_relevant(qrels[ranking.qid])) for ranking in rankings]
    learned = estimate(index, pairs, mu=mu, own=own)
    table: dict[str, dict[str, float]] = {}
    kept = learned.shares >= least
    terms, words = (index.terms_of(numbers[kept]) for numbers in (learned.terms, learned.words))
    for term, word, share in zip(terms, words, learned.shares[kept].tolist(), strict=True):
        table.setdefault(term, {})[word] = share
    return Translation(mu, own, table)


def _most_relevant(grades: Mapping[str, int]) -> list[str]:
    """Return a query's relevant documents, at most `MAX_DOCUMENTS`, of the highest grades, then lowest docids."""
    relevant = [docid for docid, grade in grades.items() if grade > 0]
    return sorted(relevant, key=lambda docid: (-grades[docid], docid))[:MAX_DOCUMENTS]


def estimate(
    index: PositionalIndex,
    pairs: Sequence[tuple[str, Sequence[str]]],
    *,
    mu: float,
    own: float,
    rounds: int = EM_ROUNDS,
) -> Estimate:
    """Estimate the table T that maximises the mean of `Translation` over queries and their relevant documents."""
    # A query's relevant documents together count as one. Expectation maximisation begins with equal shares. Words that
    # the relevant documents of a single query have are not translated.
    if not 0 <= own <= 1:
        raise ParameterError(f"own is {own}; it must be in [0, 1]")
    queries = _queries(index, pairs, mu, own)
    ends = np.cumsum([0, *(query.cells.size for query in queries)])
    query_cells = [np.empty(0, np.int64), *(query.cells.ravel() for query in queries)]
    keys, cells = np.unique(np.concatenate(query_cells), return_inverse=True)
    terms, words = np.divmod(keys, max(1, index.n_terms))
    _, by_word = np.unique(words, return_inverse=True)
    shares = 1.0 / np.bincount(by_word)[by_word]
    likelihoods = []
    for _ in range(rounds):
        expected, likelihood = [np.empty(0)], 0.0
        for query, first, end in zip(queries, ends[:-1], ends[1:], strict=True):
            # Expectation: the share of each query term that each word of its documents accounts for.
            current = shares[cells[first:end]].reshape(query.cells.shape)
            frequencies = query.fixed + (1 - own) * (query.tf @ current.T)
            likelihood += float(np.einsum("nu,u->", np.log(frequencies), query.times))
            expected.append((current * (query.tf.T @ (query.times / frequencies)).T).ravel())
        # Maximisation: the shares of a word add up to 1 again.
        sums = np.bincount(cells, weights=np.concatenate(expected), minlength=len(keys))
        totals = np.bincount(by_word, weights=sums)[by_word]
        shares = np.where(totals > 0, sums / np.where(totals > 0, totals, 1.0), shares)
        likelihoods.append(likelihood)
    return Estimate(terms, words, shares, tuple(likelihoods))


def _queries(index: PositionalIndex, pairs: Sequence[tuple[str, Sequence[str]]], mu: float, own: float) -> list[_Query]:
    """Return the queries that have a term and a relevant document in the index."""
    weighting = Dirichlet(CollectionStatistics.of(index), FeatureParameters(mu=mu))
    usable, occurs = [], np.zeros(index.n_terms, dtype=np.int64)
    for text, docids in pairs:
        terms, times = np.unique(index.query_terms(text), return_counts=True)
        terms, times = terms[terms >= 0], times[terms >= 0]
        documents = index.documents(list(docids))
        tf = index.term_frequencies(documents[documents >= 0])
        if len(terms) and tf.shape[0]:
            words = np.unique(tf.indices).astype(np.int64)
            occurs[words] += 1
            usable.append((terms, times / tf.shape[0], words, tf))
    queries = []
    # A word of a single query would be translated into whatever that query says.
    for terms, times, all_words, tf in usable:
        words = all_words[occurs[all_words] >= MIN_QUERIES]
        background = weighting.clique(*term_counts(index, terms))
        fixed = np.where(occurs[terms] >= MIN_QUERIES, own, 1.0) * tf[:, terms].toarray() + background
        queries.append(_Query(times, tf[:, words], fixed, terms[:, None] * index.n_terms + words))
    return queries
