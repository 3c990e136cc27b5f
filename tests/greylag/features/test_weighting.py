"""Weightings and collection counts of windows, against formulas, loops and Lucene; parameters.

Tests `gains` and `statistics`.
"""

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from greylag.base import ParameterError, Query
from greylag.features.extract import FeatureExtractor
from greylag.features.gains import add_gains, gain, set_absent
from greylag.features.spec import SINGLE_TERM
from greylag.features.spelling import parse_features
from greylag.features.statistics import CliqueTable, WindowStatistics
from greylag.features.weighting import FeatureParameters
from greylag.index.lucene.jvm import java_class
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.positional import PositionalIndex
from tests.greylag.index.lucene import oracle as lucene_oracle
from tests.refusals import refuses


def quantised(lengths):
    """Lengths as Lucene keeps them, in one byte."""
    small = java_class("org.apache.lucene.util.SmallFloat")
    return np.array([small.byte4ToInt(small.intToByte4(int(length))) for length in lengths], dtype=float)


def test_bm25_is_lucenes_up_to_quantised_lengths(cacm, topics):
    lucene = LuceneIndex(cacm)
    index = PositionalIndex.from_lucene(lucene)
    extractor = FeatureExtractor(index, parse_features("FI/term/BM25"))
    source = lucene.bm25(k=200)
    rounded = quantised(index.document_lengths)
    for qid, text in list(topics.items())[::3]:
        ranking = source(Query(qid, text))
        documents, terms = index.documents(ranking.docids), index.query_terms(text)
        terms = terms[terms >= 0]
        tf = index.term_frequencies(documents)[:, terms].toarray()
        df = index.document_frequencies[terms]
        idf = np.log1p((index.n_documents - df + 0.5) / (df + 0.5))

        def bm25(lengths, tf=tf, idf=idf):
            scale = 0.9 * (0.6 + 0.4 * lengths / index.average_length)
            return (idf * tf / (tf + scale[:, None])).sum(axis=1)  # without the factor k1 + 1, as in Lucene

        np.testing.assert_allclose(ranking.scores, bm25(rounded[documents]), rtol=1e-5)
        exact = bm25(index.document_lengths[documents])
        np.testing.assert_allclose(extractor(ranking)[:, 0], 1.9 * exact, rtol=1e-12)


@pytest.mark.parametrize(
    ("name", "values", "domain"),
    [
        ("mu", [0, "7", None], "positive number"),
        ("b", [1.5, True], "number in [0, 1]"),
        ("idf", ["x"], "lucene robertson"),
        ("profile", ["x"], "indri galago inquery"),
        ("max_clique", [1, 11, 10**12], "from 2 to 10"),
        ("max_clique", [2.5, 3.0, True], "integer"),
        ("fb_terms", [0], "at least 1"),
        ("fb_terms", ["7", 1.5], "integer"),
        ("fb_docs", [1.5], "integer"),
        ("k1", [float("nan")], ">= 0"),
    ],
)
def test_types_and_bounds_of_parameters(name, values, domain):
    for value in values:
        refuses(lambda value=value: FeatureParameters(**{name: value}), ParameterError, f"{name} {domain}")


@pytest.mark.parametrize("tf", [1, 2, 7])
def test_gains_are_the_formulas(tf):
    assert gain(0, tf, 0.3, 5.0) == pytest.approx(math.log(1 + tf / 0.3), rel=1e-15)
    assert gain(1, tf, 0.3, 5.0) == pytest.approx(0.3 * tf / (5.0 + tf), rel=1e-15)
    assert gain(2, tf, 0.3, 5.0) == pytest.approx(3 / (9 + tf), rel=1e-15)


def test_gains_are_added_to_the_features_of_their_sets():
    rng = np.random.default_rng(3)
    cliques, rows, widths = 6, 9, np.array([2, 5, 1 << 40])
    weightings, sets, sources = np.array([0, 1]), np.array([0, 1, 1, 0, 1]), np.array([0, 1, 5, 4, 3])
    multiplicity = rng.integers(0, 3, (2, cliques)).astype(float)
    tf = rng.integers(0, 4, (rows * cliques, 3)).astype(np.int32)
    offsets, rows_of, codes, counted = [0], [], [], []
    for clique in range(cliques):
        for row in np.flatnonzero(rng.random(rows) < 0.6):
            once = rng.random() < 0.5
            code = int(rng.integers(0, 8)) if once else -1 - int(rng.integers(len(tf)))
            counted.append((clique, row, (code <= widths).astype(int) if once else tf[-1 - code]))
            rows_of.append(row)
            codes.append(code)
        offsets.append(len(rows_of))
    clique_values, document_values = rng.random((cliques, 6)) + 0.1, rng.random((rows, 2)) + 0.1
    out = rng.random((rows, 5))
    expected = out.copy()
    for clique, row, own in counted:
        for u, (k, s) in enumerate(zip(sets, sources, strict=True)):
            if own[s % 3]:
                added = gain(s // 3, own[s % 3], clique_values[clique, s], document_values[row, s // 3])
                expected[row, u] += multiplicity[k, clique] * added
    add_gains(
        np.array(offsets), np.array(rows_of, dtype=np.int32), np.array(codes, dtype=np.int32), tf, widths, weightings,
        multiplicity, sets, sources, clique_values, document_values, out,
    )  # fmt: skip
    np.testing.assert_allclose(out, expected, rtol=1e-14)


def test_absent_values_are_those_of_the_query_and_the_document():
    rng = np.random.default_rng(4)
    of_cliques, totals, of_documents = rng.random((2, 2, 6)), rng.random((2, 2)), rng.random((5, 2))
    sets, sources, out = np.array([1, 0, 1]), np.array([0, 5, 2]), np.empty((5, 3))
    set_absent(np.array([0, 2, 5]), of_cliques, totals, of_documents, sets, sources, 3, out)
    for row, query in enumerate((0, 0, 1, 1, 1)):
        for u, (k, s) in enumerate(zip(sets, sources, strict=True)):
            assert out[row, u] == of_cliques[query, k, s] + totals[query, k] * of_documents[row, s // 3]


def test_phrase_df_is_lucenes_phrase_query(cacm, topics):
    index = PositionalIndex.from_lucene(cacm)
    phrases = set()
    for text in topics.values():
        terms = index.analyze(text)
        phrases |= set(pairwise(terms)) | set(zip(terms, terms[1:], terms[2:], strict=False))
    found = 0
    for phrase in sorted(phrases)[::6]:
        table = CliqueTable(True, index.term_numbers(phrase)[None, :], (SINGLE_TERM,), "indri")
        df = int(WindowStatistics(index).counts(table)[0][1, 0, 0])
        assert df == lucene_oracle.phrase_document_frequency(cacm, phrase), phrase
        found += df > 0
    assert found > 40


class _ClearedAfterTheFirstLook(dict[bytes, Any]):
    """Another thread clears it as soon as one has found something in it."""

    def __contains__(self, key):
        found = super().__contains__(key)
        self.clear()
        return found

    def get(self, key, default=None):
        found = super().get(key, default)
        self.clear()
        return found


def test_other_threads_may_clear_what_is_in_memory():
    index = PositionalIndex.from_texts({"1": "new york"})
    statistics, table = WindowStatistics(index), CliqueTable(True, np.array([[0, 1]]), (SINGLE_TERM,), "indri")
    (counts,) = statistics.counts(table)
    statistics._known = _ClearedAfterTheFirstLook(statistics._known)
    assert statistics.counts(table)[0].tolist() == counts.tolist() == [[[1]], [[1]]]


def test_memory_is_limited(monkeypatch):
    index = PositionalIndex.from_texts({str(number): f"w{number} goose" for number in range(50)})
    goose = index.term_numbers(["goos"])[0]
    pairs = [np.array([[term, goose]]) for term in range(index.n_terms) if term != goose]
    tables = [CliqueTable(True, pair, (SINGLE_TERM,), "indri") for pair in pairs]
    size = 16  # bytes of a table's counts
    monkeypatch.setattr("greylag.features.statistics._MEMORY_LIMIT", 10 * size)
    statistics = WindowStatistics(index)
    for table in tables:
        assert statistics.counts(table)[0][1, 0, 0] == index.document_frequencies[table.cliques[0, 0]]
        assert statistics._bytes == sum(counts.nbytes for counts in statistics._known.values()) <= 11 * size
