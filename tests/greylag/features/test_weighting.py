"""Weightings and their parameters; BM25 is compared with Lucene on CACM."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.lucene.jvm import java_class
from greylag.lucene.lucene_index import LuceneIndex
from greylag.ranking import Query


def quantised(lengths: np.ndarray) -> np.ndarray:
    """Lengths as Lucene keeps them, in one byte."""
    small = java_class("org.apache.lucene.util.SmallFloat")
    return np.array([small.byte4ToInt(small.intToByte4(int(length))) for length in lengths], dtype=float)


def test_bm25_is_lucenes_up_to_quantised_lengths(cacm: Path, topics: dict[str, str]) -> None:
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


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("mu", 0),
        ("mu", float("nan")),
        ("k1", -1),
        ("b", 1.5),
        ("idf", "x"),
        ("profile", "x"),
        ("max_clique", 1),
        ("fb_docs", 0),
        ("fb_terms", 0),
    ],
)
def test_invalid_parameters(name: str, value: float) -> None:
    with pytest.raises(ParameterError, match=f"{name} is .*: it must be"):
        FeatureParameters(**{name: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "value", "domain"),
    [
        ("max_clique", 11, "from 2 to 10"),
        ("max_clique", 10**12, "from 2 to 10"),
        ("max_clique", 2.5, "an integer"),
        ("max_clique", 3.0, "an integer"),
        ("max_clique", True, "an integer"),
        ("fb_docs", 1.5, "an integer"),
        ("fb_terms", "7", "an integer"),
        ("mu", "7", "a number"),
        ("mu", None, "a number"),
        ("b", True, "a number"),
        ("k1", float("nan"), "a number >= 0"),
    ],
)
def test_types_and_bounds_of_parameters(name: str, value: object, domain: str) -> None:
    with pytest.raises(ParameterError, match=rf"{name} is .*: it must be {domain}"):
        FeatureParameters(**{name: value})  # type: ignore[arg-type]
