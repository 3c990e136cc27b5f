"""PositionalIndex from texts, compared with counting."""

from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest

from greylag.base import CollectionError
from greylag.index import analysis
from greylag.index.positional import PositionalIndex
from tests.greylag.index.oracle import decode_postings

TEXTS = {
    "b-2": "New York city, the Bank of America's tower",
    "a-1": "the big apple: New York, New Jersey",
    "é": "",
    "c-3": "the of and",
    "long-docid": "York minster, york; YORK",
}


@pytest.fixture(scope="module")
def index():
    return PositionalIndex.from_texts(TEXTS)


def test_statistics_equal_counting(index):
    documents = [analysis.analyze(text) for text in TEXTS.values()]
    assert index.n_documents == len(TEXTS)
    assert index.n_tokens == sum(map(len, documents))
    assert index.document_lengths.tolist() == [len(document) for document in documents]
    cf = Counter(term for document in documents for term in document)
    df = Counter(term for document in documents for term in set(document))
    terms = index.terms_of(np.arange(index.n_terms))
    assert terms == sorted(cf)
    assert index.collection_frequencies.tolist() == [cf[term] for term in terms]
    assert index.document_frequencies.tolist() == [df[term] for term in terms]
    assert index.average_length == index.n_tokens / 3


def test_token_streams_equal_the_documents(index):
    for number, text in enumerate(TEXTS.values()):
        terms, positions = index.token_stream(number)
        expected = [(term, place) for place, term in enumerate(analysis.tokens(text)) if term]
        assert index.terms_of(terms) == [term for term, _ in expected]
        assert positions.tolist() == [position for _, position in expected]


def test_entries_without_their_postings_are_damage(index):
    docs = np.full_like(index.parts[0].shard.postings_docs, 200)
    damaged = PositionalIndex.of_shard(replace(index.parts[0].shard, postings_docs=docs), index.analyze)
    with pytest.raises(CollectionError):
        damaged.token_stream(0)


def test_postings_and_entries_agree(index):
    by_document = index.term_frequencies(np.arange(index.n_documents)).toarray()
    by_term = np.zeros_like(by_document)
    for (term, document), positions in decode_postings(index.parts[0].shard).items():
        by_term[document, term] = len(positions)
    np.testing.assert_array_equal(by_document, by_term)


def test_documents_and_terms_are_found(index):
    docids = list(TEXTS)
    assert index.documents(docids).tolist() == [0, 1, 2, 3, 4]
    assert index.documents(["zz", "é", "", "b-2", "b-22", "long-docid-and-more"]).tolist() == [-1, 2, -1, 0, -1, -1]
    assert index.documents([]).tolist() == []
    assert index.docids_of(np.arange(5)) == docids
    terms = index.terms_of(np.arange(index.n_terms))
    assert index.term_numbers([*terms, "nowhere", ""]).tolist() == [*range(index.n_terms), -1, -1]


def test_tfidf_equals_its_formula_with_unit_length(index):
    rows = index.tfidf([0, 1, -1, 2, 3]).toarray()
    tf = index.term_frequencies([0, 1]).toarray()
    weights = np.where(tf > 0, 1 + np.log(np.maximum(tf, 1)), 0) * np.log(5 / index.document_frequencies)
    np.testing.assert_allclose(rows[:2], weights / np.linalg.norm(weights, axis=1, keepdims=True), atol=1e-15)
    assert not rows[2:].any()


def test_fingerprint_depends_on_the_collection_but_not_on_the_order(index):
    assert PositionalIndex.from_texts(dict(reversed(TEXTS.items()))).fingerprint == index.fingerprint
    assert PositionalIndex.from_texts({**TEXTS, "c-3": "changed"}).fingerprint != index.fingerprint
    assert (
        PositionalIndex.from_texts(dict(zip(reversed(TEXTS), TEXTS.values(), strict=True))).fingerprint
        != index.fingerprint
    )


def test_threads_may_look_up_documents_while_the_cache_is_cleared(monkeypatch):
    monkeypatch.setattr("greylag.index.positional._CACHED_DOCIDS", 1)
    index = PositionalIndex.from_texts({str(number): "x" for number in range(200)})
    wanted = [[str(number), str(199 - number), "absent"] for number in range(200)] * 20
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(index.documents, wanted))
    assert [numbers.tolist() for numbers in found] == [[int(a), int(b), -1] for a, b, _ in wanted]
