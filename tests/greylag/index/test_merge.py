"""A collection in shards is the collection of all documents."""

import json
import logging
import pickle
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.base import CollectionError, ParameterError, Query, Ranking
from greylag.evaluation import read_topics
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import EXPANSION, candidate_pool
from greylag.index import merge
from greylag.index.expansion import RM3Search
from greylag.index.invert import invert
from greylag.index.lucene import lucene_index
from greylag.index.lucene.build import build_index
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.merge import merge_sorted
from greylag.index.positional import PositionalIndex
from greylag.index.shards import Shard
from greylag.index.tables import offsets
from tests.greylag.features.test_extract import BY_POSITION
from tests.greylag.index.samples import from_shards, split

DEMO = Path(__import__("greylag").__file__).parent / "demo"
FEATURES = (*candidate_pool(), *EXPANSION, *BY_POSITION)
TEXTS = st.lists(st.lists(st.sampled_from(["new", "york", "city", "apple", "tower"]), max_size=6), max_size=9)


@settings(deadline=None)
@given(st.lists(st.lists(st.binary(max_size=3), max_size=6), min_size=1, max_size=4))
def test_sorted_lists_are_merged(lists):
    texts = [text for own in lists for text in sorted(own)]
    merged, repeated = merge_sorted(
        np.frombuffer(b"".join(texts), np.uint8),
        offsets([len(text) for text in texts]),
        np.arange(len(texts)),
        offsets([len(own) for own in lists]),
    )
    ordered = sorted(range(len(texts)), key=texts.__getitem__)
    assert merged.tolist() == ordered
    assert repeated.tolist()[1:] == [texts[a] == texts[b] for a, b in pairwise(ordered)]


@settings(deadline=None, max_examples=50)
@given(TEXTS, st.lists(st.integers(0, 9), min_size=1, max_size=3), st.permutations(range(9)), st.text("abc "))
def test_shards_equal_one_index(words, cuts, order, more):
    texts = {f"d{n * 7 % 10}": " ".join(own) + more for n, own in enumerate(words)}
    whole, parted = PositionalIndex.from_texts(texts), from_shards(split(texts, cuts))
    assert parted.fingerprint == whole.fingerprint
    for name in ("n_documents", "n_terms", "n_tokens", "average_length"):
        assert getattr(parted, name) == getattr(whole, name)
    for name in ("document_lengths", "document_frequencies", "collection_frequencies", "idf"):
        assert getattr(parted, name).tobytes() == getattr(whole, name).tobytes()
    numbers = np.array([n if n < len(texts) else -1 for n in order])
    docids = whole.docids_of(numbers[numbers >= 0])
    assert parted.docids_of(numbers[numbers >= 0]) == docids
    assert parted.documents([*docids, "absent"]).tolist() == whole.documents([*docids, "absent"]).tolist()
    for vectors in ("term_frequencies", "tfidf"):
        a, b = getattr(parted, vectors)(numbers), getattr(whole, vectors)(numbers)
        assert (a.indptr.tolist(), a.indices.tolist(), a.data.tobytes()) == (
            b.indptr.tolist(), b.indices.tolist(), b.data.tobytes()
        )  # fmt: skip
    for number in range(len(texts)):
        for ours, theirs in zip(parted.token_stream(number), whole.token_stream(number), strict=True):
            assert ours.tolist() == theirs.tolist()
    ranking = Ranking("1", "new york apple new geese", tuple(docids), np.arange(len(docids), 0.0, -1.0))
    features = [FeatureExtractor(index, FEATURES)(ranking).tobytes() for index in (whole, parted)]
    assert features[0] == features[1]


def build(folder, name, documents):
    docs = folder / f"{name}.jsonl"
    docs.write_text("".join(json.dumps(document) + "\n" for document in documents))
    build_index(docs, folder / name)
    return folder / name


@pytest.fixture(scope="module")
def demo(tmp_path_factory):
    """The demo with copies of some documents, which tie, as one index and as three."""
    folder = tmp_path_factory.mktemp("demo")
    documents = [json.loads(line) for line in (DEMO / "docs.jsonl").read_text().splitlines()]
    documents += [{**document, "id": f"{copy}-{document['id']}"} for copy in "a9" for document in documents[::9]]
    shards = [documents[:70], documents[70:500], documents[500:]]
    return [build(folder, name, own) for name, own in zip("wabc", (documents, *shards), strict=True)]


def sources(index):
    return {
        "bm25": index.bm25(300),
        "other parameters": index.bm25(50, k1=2.0, b=1.0),
        "ql": index.ql(300),
        "rm3": RM3Search(index.bm25(300)),
        "ql and rm3": RM3Search(index.ql(300), fb_docs=3, fb_terms=30, original_query_weight=0.1),
    }


def test_rankings_and_features_of_shards_equal_those_of_one_index(demo):
    topics = read_topics(DEMO / "topics.tsv")
    whole, parted = LuceneIndex(demo[0]), LuceneIndex(demo[1:])
    assert parted.statistics() == whole.statistics()
    assert sorted(parted.docids()) == sorted(whole.docids())
    positions = PositionalIndex.from_lucene(demo[0]), PositionalIndex.from_lucene(demo[1:])
    assert positions[0].fingerprint == positions[1].fingerprint
    extractors = [FeatureExtractor(index, FEATURES) for index in positions]
    tied = 0
    for name, source in sources(whole).items():
        expected, found = source.run(topics), sources(LuceneIndex(demo[1:]))[name].run(topics, n_jobs=2)
        for one, other in zip(expected.rankings, found.rankings, strict=True):
            assert other.docids == one.docids, name
            assert other.scores.tobytes() == one.scores.tobytes(), name
            tied += int((np.diff(one.scores) == 0).sum())
    assert tied > 100
    for ranking in whole.bm25(300).run(topics).rankings:
        one, other = [extractor(ranking) for extractor in extractors]
        assert one.tobytes() == other.tobytes()


def test_a_growing_collection_exports_the_new_shard_only(demo, caplog):
    with caplog.at_level(logging.WARNING):
        before = PositionalIndex.from_lucene(demo[1:3])
        written = {path: path.stat().st_mtime_ns for path in demo[1].parent.rglob("positions.npy")}
        grown = PositionalIndex.from_lucene(demo[1:])
    assert not caplog.text
    assert grown.n_documents > before.n_documents == PositionalIndex.from_lucene(demo[1:3]).n_documents
    assert {path: path.stat().st_mtime_ns for path in written} == written
    folders = [part.shard.folder for part in grown.parts]
    assert [folder.parent.name for folder in folders if folder] == ["a.greylag", "b.greylag", "c.greylag"]


def test_docids_are_compared_once_and_not_in_every_process(demo, monkeypatch):
    compared = []
    check = lucene_index.check_docids
    monkeypatch.setattr(lucene_index, "check_docids", lambda *given: compared.append(1) or check(*given))
    lucene_index._reopened.cache_clear()
    content = pickle.dumps(LuceneIndex(demo[1:]).bm25(10))
    assert len(compared) == 1
    source = pickle.loads(content)
    assert len(source(Query("1", "wind power"))) == 10
    assert len(compared) == 1


def test_tables_are_verified_and_those_of_other_sets_are_named(demo):
    tables = PositionalIndex.from_lucene(demo[1:]).folder
    other = PositionalIndex.from_lucene(demo[1:3]).folder
    size = sum(file.stat().st_size for file in other.parent.rglob("*") if file.is_file())
    found = PositionalIndex.verify_export(demo[1:]).split("; ")
    assert found[3] == f"{tables}: all files have their checksums"
    named = [line for line in found[4:] if line.startswith(f"{other.parent}: ")]
    assert named == [f"{other.parent}: {size / 1e6:.1f} MB of another set of shards, to delete if it is not used"]
    assert not any(str(tables.parent) in line for line in found[4:])
    assert str(tables.parent) in PositionalIndex.verify_export(demo[1])
    content = (tables / "terms.npy").read_bytes()
    (tables / "terms.npy").write_bytes(content[:-1] + b"~")
    with pytest.raises(CollectionError, match=r"terms\.npy"):
        PositionalIndex.verify_export(demo[1:])


def test_tables_of_shards_that_changed_are_merged_again(tmp_path, caplog):
    shards = [build(tmp_path, name, [{"id": name, "contents": "x y"}]) for name in "ab"]
    tables = PositionalIndex.from_lucene(shards).folder
    (tables / "terms.npy").write_bytes(b"xyz")
    assert PositionalIndex.from_lucene(shards).n_terms == 2
    assert "it has 3 bytes instead of 130: merging tables of " in caplog.messages[0]
    caplog.clear()
    (tmp_path / "b.jsonl").write_text('{"id": "c", "contents": "z"}')
    build_index(tmp_path / "b.jsonl", shards[1], overwrite=True)
    assert PositionalIndex.from_lucene(shards).n_terms == 3
    assert caplog.messages == [
        f"{shards[1]} changed: exporting positions again", f"{shards[0]}, {shards[1]} changed: merging tables again"
    ]  # fmt: skip


@pytest.mark.parametrize("numbers", [[0, 1, -1, 1], [0, 1, 1, 0], [0, 1, 0, 1 << 30]])
def test_damaged_numbers_of_terms_are_refused(demo, numbers, monkeypatch):
    """Files of the same size and time are not compared with checksums; compiled functions would read other memory."""
    shards = [Shard(**invert({docid: "x y"})) for docid in "ab"]
    tables = merge.merge(shards, ["a", "b"]) | {"folder": None, "note": "", "numbers": np.array(numbers, np.int32)}
    monkeypatch.setattr(merge, "open_arrays", lambda source: tables)
    with pytest.raises(CollectionError):
        merge.open_merged(LuceneIndex(demo[1:3]), shards)


def test_shards_pickle_by_reference(demo):
    index = PositionalIndex.from_lucene(demo[1:])
    pickled = pickle.dumps((LuceneIndex(demo[1:]).bm25(10), index))
    assert len(pickled) < 2000
    source, opened = pickle.loads(pickled)
    assert (source.index.paths, opened.fingerprint) == (tuple(demo[1:]), index.fingerprint)


def test_what_cannot_be_one_collection(demo, tmp_path):
    own = json.loads((DEMO / "docs.jsonl").read_text().splitlines()[3])
    again = build(tmp_path, "again", [own, {"id": "new", "contents": "x"}])
    message = f"^the docid '{own['id']}' is in {demo[1]} and in {again}: leave it out of one of them$"
    for opening in (lambda shards: LuceneIndex(shards).bm25().run({"1": "x"}), PositionalIndex.from_lucene):
        with pytest.raises(CollectionError, match=message):
            opening([demo[1], demo[2], again])
    with pytest.raises(ParameterError, match="`shards`"):
        _ = LuceneIndex(demo[1:]).path
