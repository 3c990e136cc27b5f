"""Texts, names, parameters and vectors that are refused: the call, the error, and what its message has."""

from dataclasses import replace

import numpy as np
import pytest

from greylag import PositionalIndex, Reranker
from greylag.base import CollectionError, FormatError, ParameterError, Query
from greylag.diversity import MMR
from greylag.features.spelling import parse_features
from greylag.index import ArrayVectors, FaissVectors, FunctionVectors, TfidfVectors, read_vectors, streams
from greylag.index.analysis import QueryForm, read_stop_words
from greylag.index.expansion import RM3Search
from greylag.index.tables import numbered
from greylag.rankers import ManifoldRanker
from tests.greylag.index.samples import from_shards, split
from tests.refusals import refuses

ROWS = np.random.default_rng(0).standard_normal((4, 3)).astype(np.float32)
IDS = ["d0", "d1", "d2", "d3"]
TEXTS = {"b-2": "New York city", "a-1": "York"}
INDEX = PositionalIndex.from_texts(TEXTS)
PARTED = [INDEX, from_shards(split(TEXTS, [1])), from_shards(split(TEXTS, [0, 2]))]
GERMAN = PositionalIndex.from_texts({"d": "Das Haus ist alt."}, language="de")


BM25 = [{"k": 0}, {"k1": -1}, {"k1": np.nan}, {"b": 1.5}, {"b": np.nan}]
NAMES = ["xx", "", "germanic", "-de"]  # of languages
FORMS = [{}, {"first_sentence": 1, "stop_words": ""}, {"first_sentence": True, "stop_words": ["the"]}]
OUTSIDE = [np.array([0, entry], dtype=np.int32) for entry in (-1, 3)]
BOUNDS = [[[-1], [1]], [[1], [0]], [[0], [2]]]  # of one entry
FLIPS = [
    ("collection_frequencies", 4), ("document_lengths", 1), ("document_lengths", 1 << 40), ("postings_offsets", 2),
    ("postings_offsets", 1 << 40), ("docid_order", 1), ("docid_order", 1 << 30), ("docids", 128),
    ("docid_offsets", 1 << 40),
]  # fmt: skip
UNORDERED = [{*IDS}, dict.fromkeys(IDS), "abcd"]
UNFIT = [np.ones((1, 3)), np.ones(2), [["a"], ["b"]]]
STAGES = [MMR, ManifoldRanker]
A = '{"id": "a", "vector": [1]}'


def encode(positions):
    return streams.encode_positions(0, 0, np.array([len(positions)], np.int32), np.array(positions, np.int32))


def query(queries):
    return ArrayVectors(IDS, ROWS, queries).query("q", "text")


def computed(rows):
    return FunctionVectors(lambda docids: rows).knows(["a", "b"])


def stop_words(folder, text):
    (folder / "own.txt").write_text(text)
    return read_stop_words(folder / "own.txt")


def lines(folder, text):
    (folder / "v.jsonl").write_text(text)
    return read_vectors(folder / "v.jsonl")


def archive(folder, ids, vectors):
    np.savez(folder / "v.npz", **{"ids": ids} if vectors is None else {"ids": ids, "vectors": vectors})
    return read_vectors(folder / "v.npz")


def faiss(folder, docids=(), *, ids=False, content=None):
    """A folder of FAISS with 200 vectors, and these docids; or with this content."""
    package = pytest.importorskip("faiss")
    index = package.IndexFlatIP(16)
    if ids:
        index = package.IndexIDMap(index)
        index.add_with_ids(np.ones((200, 16), np.float32), np.arange(200))
    else:
        index.add(np.ones((200, 16), np.float32))
    package.write_index(index, str(folder / "index"))
    if content:
        (folder / "index").write_bytes(content)
    (folder / "docid").write_bytes("".join(f"{docid}\n" for docid in docids).encode("latin-1"))
    return FaissVectors(folder)


def flipped(name, value):
    """Uses of a bit that is another in an array of tables: of one index, and of merged ones."""
    for index in PARTED:
        array = getattr(index, name).copy()
        array[0] ^= value
        damaged = replace(index, **{name: array})
        yield lambda _, damaged=damaged: (
            damaged.docids_of(np.arange(2)),
            damaged.idf,
            damaged.bm25()(Query("1", "york")),
        )


def beyond(kind):
    """Reads of a document beyond the last of two."""
    terms = [index.term_numbers(["york"]) for index in PARTED]
    reads = {
        "tf": lambda index, _: index.term_frequencies([0, 2]),
        "stream": lambda index, _: index.token_stream(2),
        "frequencies": lambda index, term: index.parts.frequencies(term, np.array([1, 2])),
    }
    return [
        (lambda _, i=i, t=t: reads[kind](i, t), ParameterError, "document 2|2 documents")
        for i, t in zip(PARTED, terms, strict=True)
    ]


@pytest.mark.parametrize(
    ("call", "error", "parts"),
    [
        (lambda _: INDEX.from_texts([("d", "one"), ("d", "two")]), ParameterError, "'d' occurs twice"),
        (lambda _: INDEX.from_texts({("d", "one"), ("e", "two")}), ParameterError, "passages: set"),
        (lambda _: INDEX.from_texts({"": "x"}), ParameterError, "empty docid"),
        (lambda _: INDEX.from_lucene({"one", "two"}), ParameterError, "index: set"),
        (lambda _: INDEX.documents("b-2"), ParameterError, "docids: str 'b-2'"),
        (lambda _: INDEX.knows({"b-2", "a-1"}), ParameterError, "docids: set"),
        (lambda _: INDEX.term_numbers("york"), ParameterError, "terms: str 'york'"),
        *beyond("tf"), *beyond("stream"), *beyond("frequencies"),
        *[(use, CollectionError, "damaged") for flip in FLIPS for use in flipped(*flip)],
        (lambda _: from_shards([{"a": "x", "b": "y"}, {"c": "z"}, {"b": "y"}]), CollectionError, "'b'|shard 0|shard 2"),
        *[(lambda _, o=o: INDEX.bm25(**o), ParameterError, "must be") for o in BM25],
        (lambda _: RM3Search(None, fb_terms=0), ParameterError, "fb_terms|0"),
        (lambda _: RM3Search(None, fb_docs=-1), ParameterError, "fb_docs|-1"),
        (lambda _: RM3Search(None, original_query_weight=1.5), ParameterError, "original_query_weight|1.5"),
        (lambda _: RM3Search(None, original_query_weight=np.nan), ParameterError, "original_query_weight|nan"),
        *[(lambda _, n=n: Reranker("mmr", language=n), ParameterError, f"{n!r}|whitespace|German (de)") for n in NAMES],
        (lambda _: INDEX.from_texts({"d": "x"}, language="Thai"), ParameterError, "--language th"),
        (lambda _: Reranker("general", background=GERMAN, language="fr"), ParameterError, "'fr'|'de'"),
        (lambda folder: stop_words(folder, "the\nof the\n"), FormatError, "2: 'of the'"),
        (lambda folder: stop_words(folder, "\n"), FormatError, "own.txt"),
        *[(lambda _, f=f: QueryForm.from_dict(f), ParameterError, "first_sentence|stop_words") for f in FORMS],
        (lambda _: parse_features("written:stems"), ParameterError, "'stems'|words, characters"),
        (lambda _: encode([-1]), CollectionError, "ascending"),
        (lambda _: encode([3, 2]), CollectionError, "ascending"),
        *[(lambda _, e=e: numbered(3, np.array([[0], [2]]), e), CollectionError, "damaged") for e in OUTSIDE],
        *[(lambda _, b=b: numbered(3, np.array(b), OUTSIDE[0][:1]), CollectionError, "damaged") for b in BOUNDS],
        (lambda _: ArrayVectors(IDS, ROWS[:3]), ParameterError, "4 docids for 3 vectors"),
        (lambda _: ArrayVectors(["a", "b", "a", "c"], ROWS), ParameterError, "'a'|two vectors"),
        (lambda _: ArrayVectors(IDS, ROWS[0]), ParameterError, "shape (3,)"),
        *[(lambda _, w=w: ArrayVectors(w, ROWS), ParameterError, "docids|no sequence") for w in UNORDERED],
        (lambda _: ArrayVectors(IDS, [["a"]] * 4), ParameterError, "type <U1"),
        (lambda _: query(None), ParameterError, "queries="),
        (lambda _: query({"other": ROWS[0]}), ParameterError, "'q'|the 1 in queries="),
        (lambda _: query({"q": [1.0, 2.0]}), ParameterError, "'q'|(1, 2), not (1, 3)"),
        (lambda _: query({"q": {1.0, 2.0, 3.0}}), ParameterError, "'q' is set"),
        (lambda _: query(lambda text: [np.inf] * 3), ParameterError, "'q' contains inf"),
        *[(lambda _, r=r: computed(r), ParameterError, "one row of numbers for each") for r in UNFIT],
        *[(lambda _, s=s: s(), ParameterError, f"{s.__name__}|neither") for s in STAGES],
        *[(lambda _, s=s: s(INDEX, vectors=TfidfVectors(INDEX)), ParameterError, f"{s.__name__}|both") for s in STAGES],
        *[(lambda _, s=s: s("index"), ParameterError, f"{s.__name__}|'index'|from_lucene") for s in STAGES],
        *[(lambda _, s=s: s(vectors=TfidfVectors(INDEX), latent=True), ParameterError, "latent") for s in STAGES],
        *[(lambda _, s=s: s(vectors=np.eye(2)), ParameterError, "ArrayVectors(docids, array)") for s in STAGES],
        (lambda folder: lines(folder, ""), FormatError, "is empty"),
        (lambda folder: lines(folder, f'{{"id": "a", "vector": [1{"0" * 400}]}}'), FormatError, "1: |float64"),
        (lambda folder: lines(folder, '{"id": "a"}'), FormatError, "1: not of the form"),
        (lambda folder: lines(folder, '{"id": 3, "vector": [1]}'), FormatError, "1: not of the form"),
        (lambda folder: lines(folder, '{"id": "a", "vector": [true]}'), FormatError, "1: not of the form"),
        (lambda folder: lines(folder, '{"id": "a", "vector": []}'), FormatError, "vectors of shape"),
        (lambda folder: lines(folder, f"{A}\n" + '{"id": "b", "vector": [1, 2]}'), FormatError, "2: a vector of 2"),
        (lambda folder: lines(folder, f"{A}\n{A}"), FormatError, "'a' has two vectors"),
        (lambda folder: lines(folder, '{"id": "a b", "vector": [1]}'), FormatError, "'a b'"),
        (lambda folder: lines(folder, '{"id": "a", "vector": [1e999]}'), FormatError, "v.jsonl"),
        (lambda folder: archive(folder, ["a"], None), FormatError, "ids and vectors"),
        (lambda folder: archive(folder, ["a"], np.zeros(3)), FormatError, "vectors|shape (3,)"),
        (lambda folder: archive(folder, ["a", "b"], np.zeros((1, 2))), FormatError, "2 ids, and vectors of shape"),
        (lambda folder: archive(folder, ["a"], [["x"]]), FormatError, "type <U1"),
        (lambda folder: archive(folder, ["a"], [[np.nan]]), FormatError, "'a'|not finite"),
        (lambda folder: archive(folder, ["a"], [[np.longdouble("1e400")]]), FormatError, "'a'|not finite"),
        (lambda folder: pytest.importorskip("faiss") and FaissVectors(folder), CollectionError, "FAISS|'index'"),
        (lambda folder: faiss(folder, ["d0", *(f"d{i}" for i in range(199))]), CollectionError, "200|199"),
        (lambda folder: faiss(folder, ids=True), CollectionError, "ids of its own"),
        (lambda folder: faiss(folder, content=b"x"), CollectionError, "cannot be read by FAISS"),
        (lambda folder: faiss(folder, ["d\u00e9"]), CollectionError, "not UTF-8|byte 1"),
    ],
)  # fmt: skip
@pytest.mark.filterwarnings("error")
def test_refusals(call, error, parts, tmp_path):
    refuses(lambda: call(tmp_path), error, parts, "|")
