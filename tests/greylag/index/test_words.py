"""Words as they are written, compared with sets of words and n-grams.

Tests `greylag.features.written`.
"""

import json
import pickle
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from greylag.base import CollectionError, Ranking
from greylag.features.extract import FeatureExtractor
from greylag.features.spelling import parse_features
from greylag.index import words as module
from greylag.index.analysis import written_words
from greylag.index.doctor import diagnose
from greylag.index.lucene.build import build_index
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.positional import PositionalIndex
from greylag.index.words import CollectionWords, Words
from tests.greylag.index.lucene import oracle
from tests.greylag.index.lucene.samples import write_json

TEXTS = st.lists(st.lists(st.sampled_from("Heat heat heating a I'm naïve 😀 x2 of hé 3.5".split())).map(" ".join))
FEATURES = parse_features("written:words,written:characters")


def units_of(text, unit):
    """The different words or n-grams of a text, by slicing strings."""
    words = set(written_words(text))
    if unit == "words":
        return words
    padded = [f"_{word}_" for word in words]
    return {w[i : i + n] for w in padded for n in (3, 4, 5) for i in range(len(w) - n + 1)}


def by_hand(texts, query, unit):
    wanted, having = units_of(query, unit), [units_of(text, unit) for text in texts]
    df = {u: sum(u in units for units in having) for u in wanted}
    idf = {u: log(1 + (len(texts) - df[u] + 0.5) / (df[u] + 0.5)) for u in wanted}
    return [sum(idf[u] for u in wanted & units) / sum(idf.values()) if wanted else 0.0 for units in having]


@given(texts=TEXTS, query=TEXTS.map(" ".join), cut=st.integers(0, 5))
def test_coverage_is_the_share_of_idf_in_one_shard_or_two(texts, query, cut):
    parts = [texts, texts[:0]] if cut >= len(texts) else [texts[:cut], texts[cut:]]
    whole, parted = CollectionWords((Words.of(texts),)), CollectionWords(tuple(map(Words.of, parts)))
    documents = np.random.default_rng(1).permutation(len(texts))
    units = ("words", "characters")
    for unit in units:
        expected = np.array(by_hand(texts, query, unit))[documents]
        for words in (whole, parted):
            np.testing.assert_allclose(words.coverage(query, unit, documents), expected, rtol=1e-12, atol=1e-15)


@pytest.mark.parametrize("unit", ["words", "characters"])
def test_the_order_of_documents_does_not_change_a_bit(unit):
    texts = [f"alpha{i % 3} beta{i % 5} gamma{i % 7} {'delta' * (i % 2)}" for i in range(60)]
    query = "delta gamma3 alpha1 beta4 gamma beta alpha omega"
    backward = [*reversed(texts)]
    first, second = (
        CollectionWords((Words.of(order),)).coverage(query, unit, np.arange(60)) for order in (texts, backward)
    )
    assert first.tobytes() == second[::-1].tobytes()
    assert CollectionWords((Words.of([*texts, query]),)).coverage(query, unit, np.array([60])) == 1


def test_blocks_of_texts_make_no_difference(monkeypatch):
    texts = [f"word{i % 7} heat{i % 3} {'and ' * (i % 2)}" for i in range(40)]
    whole = Words.of(texts)
    monkeypatch.setattr(module, "_BLOCK_DOCUMENTS", 3)
    for name, array in vars(Words.of(texts)).items():
        assert array.tolist() == getattr(whole, name).tolist(), name


DOCS = {"b": "Heating the café's heated WORLD 😀", "a": "x" * 300 + " two words", "c": "naïve heat " * 50}


@pytest.fixture(scope="module")
def lucene(tmp_path_factory):
    """Indexes with and without texts, of one document and of two."""
    folder = tmp_path_factory.mktemp("words")
    for name, docids in (("whole", "bac"), ("first", "b"), ("rest", "ac"), ("without", "bac")):
        docs = write_json(folder / f"{name}.jsonl", {docid: DOCS[docid] for docid in docids})
        build_index(docs, folder / name, texts=name != "without")
    return folder


def test_values_from_lucene_are_those_from_texts(lucene):
    ranking = Ranking("q", "heated heats worlds café", ("c", "b", "a"), np.zeros(3))
    expected = FeatureExtractor(PositionalIndex.from_texts(DOCS), FEATURES)(ranking)
    assert (expected[:2] > 0).any(axis=1).all()
    for folders in ([lucene / "whole"], [lucene / "first", lucene / "rest"]):
        for _ in range(2):  # made, and opened
            values = FeatureExtractor(PositionalIndex.from_lucene(folders), FEATURES)(ranking)
            assert values.tobytes() == expected.tobytes()


def test_stored_texts_come_in_blocks(lucene, monkeypatch):
    monkeypatch.setattr("greylag.index.lucene.bulk_calls.BLOCK_TEXTS", 2)
    with LuceneIndex(lucene / "whole") as index:
        assert dict(zip(index.docids(), index.texts(), strict=True)) == DOCS


@pytest.mark.parametrize("stored", [{"storeContents": True}, {"storeRaw": True}, {}])
def test_texts_of_an_index_of_anserini(stored, tmp_path, caplog):
    """Contents are read where they are stored, be it within the documents as they came."""
    (tmp_path / "docs").mkdir()
    lines = [json.dumps({"id": docid, "contents": text, "title": "T"}) for docid, text in DOCS.items()]
    (tmp_path / "docs" / "docs.jsonl").write_text("\n".join(lines))
    oracle.anserini_index(tmp_path / "docs", tmp_path / "index", storePositions=True, optimize=True, **stored)
    index, ranking = PositionalIndex.from_lucene(tmp_path / "index"), Ranking("q", "heated café", (*DOCS,), np.zeros(3))
    detail = diagnose(tmp_path / "index")[3].detail
    if stored:
        expected = FeatureExtractor(PositionalIndex.from_texts(DOCS), FEATURES)(ranking)
        assert FeatureExtractor(index, FEATURES)(ranking).tobytes() == expected.tobytes()
        assert not caplog.records
        assert "texts are stored" in detail
    else:
        assert index.words is None
        assert f"{tmp_path / 'index'} does not store its texts, so written:* are left out" in caplog.text
        assert "-storeContents" in detail


def test_an_index_without_texts_says_so(lucene):
    index = PositionalIndex.from_lucene(lucene / "without")
    assert index.words is None
    with pytest.raises(CollectionError, match=r"written:words.*--no-texts"):
        FeatureExtractor(index, FEATURES)(Ranking("q", "heat", ("a",), np.zeros(1)))
    plain = FeatureExtractor(index, parse_features("FI/term/LM"))(Ranking("q", "heat", ("a", "c"), np.zeros(2)))
    assert plain[0, 0] < plain[1, 0]


def test_damaged_words_are_made_again(lucene, caplog):
    folder = lucene / "whole"
    before = PositionalIndex.from_lucene(folder).words
    expected = before.coverage("heat", "words", np.arange(3)).tolist()
    (file,) = lucene.glob("whole.words.greylag/*/words.npy")
    content = bytearray(file.read_bytes())
    content[-1] ^= 1
    file.write_bytes(content)
    with pytest.raises(CollectionError, match=r"words\.npy"):
        PositionalIndex.verify_export(folder)
    after = PositionalIndex.from_lucene(folder).words
    assert "exporting words" in caplog.text
    assert after.coverage("heat", "words", np.arange(3)).tolist() == expected


def test_what_is_outside_an_array_is_refused():
    words = Words.of(["heat wave", "heat"])
    for name, at in (("words", 0), ("gram_offsets", 1), ("grams", 0), ("document_offsets", 1)):
        damaged = {field: array.copy() for field, array in vars(words).items()}
        damaged[name][at] = 1 << 20
        broken = CollectionWords((Words(**damaged),))
        read = ("characters", "words") if name in ("words", "document_offsets") else ("characters",)
        for unit in read:
            with pytest.raises(CollectionError):
                broken.coverage("heat wave", unit, np.arange(2))


def test_words_are_pickled_with_texts():
    index = pickle.loads(pickle.dumps(PositionalIndex.from_texts(DOCS)))
    assert index.words.coverage("heat", "words", np.arange(3)).tolist() == pytest.approx([0, 0, 1])
