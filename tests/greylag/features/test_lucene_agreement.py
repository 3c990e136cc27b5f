"""Features against what Lucene itself says, on CACM."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from greylag.features.extract import FeatureExtractor
from greylag.features.spec import SINGLE_TERM, parse_features
from greylag.features.statistics import CliqueTable, WindowStatistics
from greylag.index.positional import PositionalIndex
from greylag.lucene.build import build_index
from greylag.lucene.jvm import java_class
from greylag.lucene.lucene_index import LuceneIndex
from greylag.ranking import Query
from greylag.trec import read_topics
from tests.greylag.lucene import oracle as lucene_oracle


@pytest.fixture(scope="module")
def cacm(data: Callable[[str], Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    index = tmp_path_factory.mktemp("cacm") / "index"
    build_index(data("cacm") / "cacm.tar.gz", index)
    return index


@pytest.fixture(scope="module")
def topics(data: Callable[[str], Path]) -> dict[str, str]:
    return read_topics(data("cacm") / "topics.cacm.txt")


def test_phrase_df_is_lucenes_phrase_query(cacm: Path, topics: dict[str, str]) -> None:
    index = PositionalIndex.from_lucene(cacm)
    phrases = set()
    for text in topics.values():
        terms = index.analyze(text)
        phrases |= set(pairwise(terms)) | set(zip(terms, terms[1:], terms[2:], strict=False))
    found = 0
    for phrase in sorted(phrases)[::2]:
        table = CliqueTable(True, index.term_numbers(phrase)[None, :], (SINGLE_TERM,), overlap=False)
        df = int(WindowStatistics(index).counts(table)[1, 0, 0])
        assert df == lucene_oracle.phrase_document_frequency(cacm, phrase), phrase
        found += df > 0
    assert found > 100


def quantised(lengths: np.ndarray) -> np.ndarray:
    """Lengths as Lucene keeps them, in one byte."""
    small = java_class("org.apache.lucene.util.SmallFloat")
    return np.array([small.byte4ToInt(small.intToByte4(int(length))) for length in lengths], dtype=float)


def test_bm25_is_the_first_stages_but_for_quantised_lengths(cacm: Path, topics: dict[str, str]) -> None:
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

        def bm25(lengths: np.ndarray, tf: np.ndarray = tf, idf: np.ndarray = idf) -> np.ndarray:
            scale = 0.9 * (0.6 + 0.4 * lengths / index.average_length)
            return (idf * tf / (tf + scale[:, None])).sum(axis=1)  # without the factor k1 + 1, as in Lucene

        np.testing.assert_allclose(ranking.scores, bm25(rounded[documents]), rtol=1e-5)
        exact = bm25(index.document_lengths[documents])
        np.testing.assert_allclose(extractor(ranking)[:, 0], 1.9 * exact, rtol=1e-12)
