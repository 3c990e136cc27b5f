"""The object for a service, against `HybridSearch` and plain filters of its candidates.

Tests `retriever` and `held`.
"""

import asyncio
import pickle
import threading
from collections import OrderedDict
from concurrent.futures import ThreadPoolExecutor
from enum import IntEnum
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from tests.refusals import refuses

from greylag.base import FormatError, ParameterError, Query, Ranking, write_mappable
from greylag.diversity import MMR, GroupLimit, NearDuplicates
from greylag.index import ArrayVectors, PositionalIndex
from greylag.passages import HybridRetriever
from greylag.passages.retriever import _digest
from greylag.rankers import explain
from greylag.recipes import HybridSearch
from greylag.recipes.general import general_model_for

WORDS = "cat dog goose wing lake snow tundra nest egg grass river moss".split()
RANDOM = np.random.default_rng(0)
TEXTS = {f"p{n}": " ".join(RANDOM.choice(WORDS, RANDOM.integers(4, 15))) for n in range(60)}
PASSAGES = {
    docid: {"text": text, "source": f"s{n % 4}", **({"group": n // 3} if n % 5 else {})}
    for n, (docid, text) in enumerate(TEXTS.items())
}
QUERIES = ["cat goose", "snow on the lake", "nest egg", "zebra", ""]
TURN = np.random.default_rng(1).standard_normal((26, 8)).astype(np.float32)


def encode(texts):
    """Sums of letters' vectors."""
    return np.array(
        [sum((TURN[ord(c) - 97] for c in text if "a" <= c <= "z"), np.full(8, 0.1)) for text in texts], np.float32
    )


INDEX = PositionalIndex.from_texts(TEXTS)
VECTORS = ArrayVectors([*TEXTS], encode([*TEXTS.values()]), lambda text: encode([text])[0])
RETRIEVER = HybridRetriever(PASSAGES, encode)


def ids(found):
    return [passage.doc_id for passage in found]


@pytest.mark.parametrize("query", QUERIES)
def test_is_hybrid_search_with_all_scores(query):
    expected, found = HybridSearch(INDEX, VECTORS, k=100)(Query("q", query or " ")), RETRIEVER.search(query, 100)
    assert [(passage.doc_id, passage.score) for passage in found] == list(expected)
    assert [passage.rank for passage in found] == [*range(1, len(found) + 1)]
    bm25 = dict(INDEX.bm25(100)(Query("q", query)))
    row = VECTORS.query("q", query)[0].astype(float)
    for passage in found:
        assert (passage.text, passage.fields["source"]) == (TEXTS[passage.doc_id], PASSAGES[passage.doc_id]["source"])
        assert passage.bm25 == bm25.get(passage.doc_id, 0.0)
        of_passage = VECTORS.documents([passage.doc_id])[0].astype(float)
        lengths = np.linalg.norm(row) * np.linalg.norm(of_passage)
        assert passage.cosine == pytest.approx(row @ of_passage / lengths if lengths else 0.0, abs=1e-6)
        if passage.rank < 4 and len(bm25) > 3:
            broken_down = RETRIEVER.explain(query, passage.doc_id)
            assert broken_down.score == pytest.approx(passage.general, abs=1e-9)
            assert sum(share.contribution for share in broken_down.features) == pytest.approx(passage.general, abs=1e-9)
    assert RETRIEVER.search(query, 3) == found[:3]


@pytest.mark.parametrize("where", [None, lambda fields: fields["n"] % 5])
def test_explains_the_scores_of_more_candidates_than_features_read(where):
    """Many candidates have none of the query's words; of these ties, features read those within the best 100."""
    random = np.random.default_rng(3)
    texts = [" ".join(random.choice(WORDS, random.integers(4, 15))) for _ in range(300)]
    retriever = HybridRetriever([{"text": text, "n": n} for n, text in enumerate(texts)], encode)
    found = retriever.search("goose", 300, where=where)
    assert len(found) > 120
    for passage in found:
        assert retriever.explain("goose", passage.doc_id, where=where).score == passage.general
    index = PositionalIndex.from_texts({str(n): text for n, text in enumerate(texts)})
    vectors = ArrayVectors([*map(str, range(300))], encode(texts), lambda text: encode([text])[0])
    scores = HybridSearch(index, vectors, k=100).scores(Query("q", "goose"))
    for place, docid in enumerate(scores.docids[::9]):
        shares = explain(general_model_for(index), index, scores.candidates, docid).features
        assert sum(share.contribution for share in shares) == pytest.approx(scores.general[9 * place], abs=1e-9)


def test_passages_in_any_form():
    texts = ["a cat sat", "a dog ran", "geese fly"]
    for passages, names in (
        (texts, ["0", "1", "2"]),
        (dict(zip([7, 8, 9], texts, strict=True)), ["7", "8", "9"]),
        ([{"text": text, "n": n} for n, text in enumerate(texts)], ["0", "1", "2"]),
        ([{"text": text, "id": f"x{n}"} for n, text in enumerate(texts)], ["x0", "x1", "x2"]),
        (pd.DataFrame({"text": texts, "id": ["x0", "x1", "x2"]}), ["x0", "x1", "x2"]),
        ({f"k{n}": {"text": text} for n, text in enumerate(texts)}, ["k0", "k1", "k2"]),
        (pd.Series(texts, index=[30, 10, 20]), ["10", "20", "30"]),
        (pd.DataFrame({"text": texts, "id": ["x0", "x1", "x2"]}).to_dict("records"), ["x0", "x1", "x2"]),
    ):
        found = HybridRetriever(passages, encode).search("dogs")
        assert sorted(ids(found)) == names
        assert found[0].text == "a dog ran"


@pytest.mark.parametrize(
    "shape",
    [
        lambda rows: rows,
        lambda rows: rows.tolist(),
        lambda rows: (row for row in rows),  # fastembed
        lambda rows: SimpleNamespace(data=[SimpleNamespace(embedding=row.tolist()) for row in rows]),  # OpenAI
        lambda rows: {"data": [{"embedding": row.tolist()} for row in rows]},
        lambda rows: {"data": [{"embedding": row.tolist(), "index": n} for n, row in enumerate(rows)][::-1]},
        lambda rows: SimpleNamespace(
            data=[SimpleNamespace(embedding=row.tolist(), index=n) for n, row in enumerate(rows)][::-1]
        ),
    ],
)
def test_encoders_of_any_shape_are_given_batches(shape):
    sizes = []

    def shaped(texts):
        sizes.append(len(texts))
        return shape(encode(texts))

    many = {f"{n}": f"{TEXTS[f'p{n % 60}']} {n}" for n in range(300)}
    found = HybridRetriever(many, shaped).search("cat goose")
    assert sizes[:2] == [256, 44]
    assert ids(found) == ids(HybridRetriever(many, encode).search("cat goose"))


def test_groups_near_duplicates_and_mmr_are_those_of_the_stages():
    passages = {**PASSAGES, **{f"again {docid}": {"text": TEXTS[docid]} for docid in [*TEXTS][:20]}}
    retriever = HybridRetriever(passages, encode)
    index = PositionalIndex.from_texts({docid: fields["text"] for docid, fields in passages.items()})
    vectors = ArrayVectors([*passages], encode([fields["text"] for fields in passages.values()]))
    every = {passage.doc_id: passage for passage in retriever.search("cat goose", 200)}
    ranking = Ranking("q", "cat goose", tuple(every), np.array([passage.score for passage in every.values()]))
    distinct = NearDuplicates(index, threshold=0.6, depth=100, k=100)
    few = GroupLimit(lambda docid: passages[docid].get("group"), 1, depth=100, k=100)
    for options, stage in (
        ({"near_duplicates": 0.6}, distinct),
        ({"max_per_group": 1}, few),
        ({"near_duplicates": 0.6, "max_per_group": 1}, distinct >> few),
        ({"max_per_group": 2, "group": "source"}, GroupLimit(lambda d: passages[d].get("source"), 2, depth=100, k=100)),
        ({"mmr": 0.3}, MMR(vectors=vectors, relevance_weight=0.3, depth=200, k=40)),
        ({"near_duplicates": 0.6, "mmr": 0.3}, distinct >> MMR(vectors=vectors, relevance_weight=0.3, depth=200, k=40)),
        ({"max_per_group": 1, "group": "text"}, GroupLimit(lambda d: passages[d]["text"], 1, depth=100, k=100)),
    ):
        found = retriever.search("cat goose", 40, **options)
        assert ids(found) == [*stage(ranking).docids[:40]]
        assert ids(found) != [*every][:40]
        assert [passage.score for passage in found] == [every[passage.doc_id].score for passage in found]


@pytest.mark.parametrize("method", ["encode", "embed"])
def test_the_method_of_an_object_encodes(method):
    called = HybridRetriever(PASSAGES, SimpleNamespace(**{method: encode}), encode_query=SimpleNamespace(encode=encode))
    assert called.search("cat goose") == RETRIEVER.search("cat goose")


def test_what_is_given_and_found_shares_nothing_with_the_retriever():
    given = {"a": {"text": "a cat", "source": "a.md", "tags": ["x"]}}
    retriever = HybridRetriever(given, encode)
    (before,) = retriever.search("cat")
    given["a"]["tags"].append("changed")
    for passage in retriever.search("cat"):
        passage.fields["source"] = "changed"
        passage.fields["tags"].append("changed")
    retriever.vectors(["a"])[:] = 1
    assert retriever.search("cat") == [before] == pickle.loads(pickle.dumps([before]))
    assert before.fields == {"source": "a.md", "tags": ["x"]}


@pytest.mark.parametrize(
    "several", [tuple, set, frozenset, lambda values: dict.fromkeys(values).keys(), iter, np.array, pd.Series]
)
def test_any_iterable_filters_by_its_values(several):
    expected = RETRIEVER.search("cat goose", where={"source": ["s1", "s3"]})
    assert RETRIEVER.search("cat goose", where={"source": several(["s1", "s3"])}) == expected
    assert RETRIEVER.batch_search(["cat goose"] * 2, where={"source": several(["s1", "s3"])}) == [expected] * 2


def test_filters_by_a_range_by_identifiers_and_by_whole_mappings():
    for where, wanted in (
        ({"group": range(3, 5)}, ["p11", "p12", "p13", "p14", "p9"]),
        ({"id": "p3"}, ["p3"]),
        ({"id": ("p3", "p4")}, ["p3", "p4"]),
        ({"text": TEXTS["p5"]}, ["p5"]),
    ):
        assert sorted(ids(RETRIEVER.search("cat", where=where))) == wanted
    typed = [{"text": text, "n": n % 3, "year": str(2020 + n % 2), "tags": [n % 2, "odd"][: 1 + n % 2]} for n, text in
             enumerate(TEXTS.values())]  # fmt: skip
    typed[7]["tags"] = np.array(["odd", "x"])
    for n, passage in enumerate(typed):
        passage |= {
            "half": n % 3 / 2,
            "long": 10**18 + n,
            "grid": np.full((2, 2), n),
            "zero": np.array(n),
            "set": {n},
            "of": {"a": n},
            "even": n % 2 == 0,
        }
        passage["gap"] = (n, None, float("nan"), pd.NA)[n % 4]
    retriever = HybridRetriever(typed, encode, depth=100)
    thirds, odd = range(0, 60, 3), range(1, 60, 2)

    def pops(fields):
        fields["grid"][:], fields["of"]["a"] = 7, 7
        return fields["set"].pop() != 7 and fields["tags"][-1] == fields["tags"].pop()

    for where, wanted in (
        ({"n": "0"}, thirds), ({"n": 0.0}, thirds), ({"half": "0.0"}, thirds),
        ({"half": "0"}, thirds), ({"n": np.int64(0)}, thirds), ({"n": False}, []),
        ({"year": 2021}, odd), ({"tags": "odd"}, odd), ({"tags": ["x", 0]}, [*range(0, 60, 2), 7]),
        ({"long": str(10**18 + 5)}, [5]), ({"n": float("inf")}, []), (pops, {*range(60)} - {7}),
        ({"grid": [[7, 7]]}, [7]), ({"grid": 7}, []), ({"zero": 7}, [7]), ({"n": np.array(0)}, thirds),
        ({"gap": 4}, [4]), ({"gap": None}, {*range(60)} - {*range(0, 60, 4)}), ({"of": {"a": 7}}, [7]),
        ({"even": "true"}, range(0, 60, 2)), ({"even": np.True_}, range(0, 60, 2)), ({"even": ["False", 1]}, odd),
    ):  # fmt: skip
        for _ in range(2):  # a function changes nothing
            assert {*ids(retriever.search("cat", k=60, where=where))} == {*map(str, wanted)}
    assert ids(retriever.search("cat", where={"id": 7})) == ["7"]
    assert (retriever.explain("cat", 7).docid, retriever.explain("cat", 7).qid) == ("7", "cat")
    vectors = encode([passage["text"] for passage in typed])
    held, found = HybridRetriever(typed, encode, vectors=vectors, depth=100), retriever.search("cat")
    vectors[:] = vectors[::-1].copy()  # the caller's own
    assert [passage.score for passage in held.search("cat")] == [passage.score for passage in found]


@pytest.mark.parametrize(
    "where",
    [
        {"source": "s1"},
        {"source": ["s1", "s3"], "group": 5},
        lambda fields: "cat" in fields["text"] and fields["id"] > "p3",
    ],
)
def test_filters_choose_the_candidates(where):
    def passes(docid):
        fields = PASSAGES[docid]
        if callable(where):
            return where({"id": docid, **fields})
        wanted = [(name, values if isinstance(values, list) else [values]) for name, values in where.items()]
        return all(fields.get(name) in values for name, values in wanted)

    retriever = HybridRetriever(PASSAGES, encode, depth=4)
    for query in QUERIES:
        by_bm25 = [docid for docid in INDEX.bm25(100)(Query("q", query)).docids if passes(docid)][:4]
        row = VECTORS.query("q", query)
        near = [docid for docid in VECTORS.nearest(row, 100) if passes(docid)][:4]
        found = retriever.search(query, where=where)
        assert set(ids(found)) == {*by_bm25, *near}
    assert retriever.search("cat", where={"source": "none"}) == []


def test_batches_are_encoded_once_and_rank_alike():
    asked = []

    def counted(texts):
        asked.append(list(texts))
        return encode(texts)

    retriever = HybridRetriever(PASSAGES, encode, encode_query=counted)
    asked.clear()
    for n_jobs in (1, 3):
        found = retriever.batch_search(QUERIES * 2, 5, n_jobs=n_jobs, where={"source": ["s0", "s1"]})
        assert found == [RETRIEVER.search(query, 5, where={"source": ["s0", "s1"]}) for query in QUERIES] * 2
    assert asked == [[query or " " for query in dict.fromkeys(QUERIES)]] * 2
    assert retriever.batch_search([]) == []


def test_passages_come_and_go_while_queries_go_on():
    asked = []

    def counted(texts):
        asked.extend(texts)
        return encode(texts)

    old = HybridRetriever(PASSAGES, counted)
    before, stop = [old.search(query) for query in QUERIES], threading.Event()

    def searching():
        wrong = 0
        while not stop.is_set():
            wrong += [old.search(query) for query in QUERIES] != before
        return wrong

    changed = {**{docid: PASSAGES[docid] for docid in [*PASSAGES][7:]}, "new": {"text": "new geese on the lake"}}
    with ThreadPoolExecutor() as pool:
        answers = [pool.submit(searching) for _ in range(2)]
        asked.clear()
        new = old.with_passages(changed)
        texts = [text for text in asked if text.strip() and text not in QUERIES]
        stop.set()
        assert [answer.result() for answer in answers] == [0, 0]
    assert texts.count("new geese on the lake") == 2  # the last one is compared
    assert len(texts) == 5  # three are compared, and one warms up
    fresh = HybridRetriever(changed, encode)
    assert [new.search(query) for query in QUERIES] == [fresh.search(query) for query in QUERIES]
    assert (len(new), repr(new)) == (54, "HybridRetriever(54 passages, 8 dimensions)")


def test_passages_are_added_and_removed_and_only_new_texts_encoded():
    asked = []

    def counted(texts):
        asked.extend(texts)
        return encode(texts)

    old = HybridRetriever(PASSAGES, counted)
    asked.clear()
    new = old.with_passages(add={"p3": "a new goose", "p99": {"text": "an egg", "source": "s9"}}, remove=["p3", "p4"])
    assert {"a new goose", "an egg"} <= {*asked}
    assert len(asked) == 6  # three are compared, and one warms up
    kept = {docid: fields for docid, fields in PASSAGES.items() if docid not in ("p3", "p4")}
    fresh = HybridRetriever({**kept, "p3": "a new goose", "p99": {"text": "an egg", "source": "s9"}}, encode)
    assert [new.search(query) for query in QUERIES] == [fresh.search(query) for query in QUERIES]
    assert new.ids == [*new] == [*fresh] == [*kept, "p3", "p99"]
    assert old.with_passages(add=[], remove="p0").ids == [*PASSAGES][1:]
    assert (len(old), "p4" in old, "p4" in new, 4 in new) == (60, True, False, False)


@pytest.mark.parametrize("seed", range(6))
def test_whatever_comes_and_goes_is_as_made_anew(tmp_path, seed):
    """Passages of a file and new ones, whose fields, texts and identifiers change, repeat, and change places."""
    rng, path = np.random.default_rng(seed), tmp_path / "saved"

    def passage():
        extra = [{}, {"tags": ["a"]}, {"group": int(rng.integers(4))}, {"odd": 1.5}][rng.integers(4)]
        return {"text": " ".join(rng.choice(WORDS, rng.integers(0, 9))), "source": f"s{rng.integers(3)}", **extra}

    passages = {f"p{n}": passage() for n in range(20)}
    retriever = HybridRetriever(passages, encode)
    for step in range(5):
        ids = [*passages]
        remove = rng.choice(ids, 5, replace=False).tolist()
        add = {docid: passage() for docid in [*remove[:2], f"new{step}", f"old{step}"]}
        add[f"text{step}"] = {"text": passages[ids[1]]["text"]}
        if step % 2:
            passages = {docid: one for docid, one in passages.items() if docid not in remove} | add
            retriever = retriever.with_passages(add=add, remove=remove)
        else:
            passages = dict(rng.permutation([*{**passages, **add}.items()]).tolist())
            retriever = retriever.with_passages(passages)
        retriever.save(path)
        retriever = HybridRetriever.load(path, encode) if rng.integers(2) else retriever
        fresh = HybridRetriever(passages, encode)
        assert [(docid, retriever[docid]) for docid in retriever] == [(docid, fresh[docid]) for docid in fresh]
        assert sorted(retriever._fields) == sorted(fresh._fields)
        assert sorted(retriever._nested) == sorted(fresh._nested)
        np.testing.assert_array_equal(retriever.vectors(retriever.ids), fresh.vectors(fresh.ids))
        for query in QUERIES:
            for where in (None, {"source": "s1"}, lambda fields: "tags" in fields):
                assert retriever.search(query, where=where) == fresh.search(query, where=where)


def test_passages_without_identifiers_keep_what_is_known_of_their_texts():
    asked = []

    def counted(texts):
        asked.extend(texts)
        return encode(texts)

    old = HybridRetriever([*TEXTS.values()], counted)
    asked.clear()
    assert old.with_passages([*TEXTS.values()][1:]).ids == [*map(str, range(59))]
    assert len(asked) == 4  # three are compared, and one warms up


def test_passages_can_be_looked_up():
    retriever = HybridRetriever([{"id": 7, "text": "a cat", "tags": ["x"]}, "a dog"], encode)
    assert (7 in retriever, "7" in retriever, np.int64(7) in retriever, 1 in retriever, None in retriever) == (
        True, True, True, True, False,
    )  # fmt: skip
    retriever[7]["tags"].append("y")
    assert retriever["7"] == {"id": "7", "text": "a cat", "tags": ["x"]}
    assert HybridRetriever([retriever[docid] for docid in retriever], encode).search("cat") == retriever.search("cat")
    found = retriever.search("dogs")
    np.testing.assert_array_equal(retriever.vectors(ids(found)), encode([passage.text for passage in found]))


def test_an_event_loop_goes_on_while_a_query_is_encoded():
    going = threading.Event()

    def slow(texts):
        assert texts != ["cat goose"] or going.wait(10)
        return encode(texts)

    async def both():
        searching = asyncio.ensure_future(retriever.asearch("cat goose", 3, where={"source": "s1"}))
        await asyncio.sleep(0)
        going.set()
        return await searching

    retriever = HybridRetriever(PASSAGES, encode, encode_query=slow)
    assert asyncio.run(both()) == RETRIEVER.search("cat goose", 3, where={"source": "s1"})
    with pytest.raises(TypeError, match="write k for top_k"):
        asyncio.run(RETRIEVER.asearch("cat", top_k=3))


def test_equal_texts_are_encoded_once():
    asked = []

    def counted(texts):
        asked.extend(texts)
        return encode(texts)

    made = HybridRetriever(["cat", "dog", "cat"], counted)
    assert asked == ["cat", "dog", "cat"]  # the last one is a query
    np.testing.assert_array_equal(made.vectors(["0", "1", "2"]), encode(["cat", "dog", "cat"]))


@pytest.mark.parametrize(
    ("added", "kind"), [([0.0, 0.0], "f2"), ([1e-3, 0.5], "f2"), ([1e-9, 2e-9], "f4"), ([1e6, 0.0], "f4")]
)
def test_added_vectors_that_float16_cannot_hold_make_float32_of_all(added, kind):
    def encoder(texts):
        return np.array([added if text == "new" else [1.0, 0.5] for text in texts], np.float32)

    first = HybridRetriever(["cat", "dog", "goose"], encoder, vectors=np.array([[1, 0.5]] * 3, np.float16))
    made = first.with_passages(add={"n": "new", "m": "cat", "o": "dog"})
    assert made._vectors.array.dtype == kind
    np.testing.assert_allclose(made.vectors(["n"]), [added], rtol=1e-3)


def test_texts_that_are_equal_keep_their_own_vectors():
    own = np.array([[1.0, 0.0], [1.0, 0.001]])
    first = HybridRetriever({"a": "cat", "b": "cat"}, lambda texts: own[: len(texts)], vectors=own)
    again = first.with_passages({"b": "cat", "a": "cat"})
    np.testing.assert_array_equal(again._vectors.documents(["a", "b"]), first._vectors.documents(["a", "b"]))


def as_int8(texts):
    return np.rint(encode(texts) * 100 / np.abs(encode(texts)).max(axis=1, keepdims=True)).astype(np.int8)


@pytest.mark.parametrize(
    ("encoder", "kind", "after"),
    [
        (encode, "f2", "f2"),
        (as_int8, "i1", "i1"),
        (encode, "f4", "f4"),
        (encode, "f8", "f8"),
        (encode, "i8", "f4"),
        (lambda texts: as_int8(texts) * np.float32(0.3), "i1", "f4"),
    ],
)
def test_short_vectors_stay_what_they_are(tmp_path, encoder, kind, after):
    texts = [*TEXTS.values(), "a new goose"]
    rows = (encoder(texts) if encoder in (encode, as_int8) else as_int8(texts)) * (30 if kind == "i8" else 1)
    rows = np.asfortranarray(rows.astype(kind))
    rows.flags.writeable = False
    first = HybridRetriever([*TEXTS.values()], encoder, vectors=rows[:-1])
    first.save(tmp_path / "saved")
    opened = HybridRetriever.load(tmp_path / "saved", encoder)
    again = opened.with_passages(add={"60": "a new goose"})
    assert opened._vectors.array.dtype == ("f4" if kind == "i8" else kind)
    assert again._vectors.array.dtype == after
    anew = HybridRetriever(texts, encoder, vectors=rows.astype("f8"))
    for query in QUERIES:
        assert ids(opened.search(query)) == ids(first.search(query))
        found, expected = ({one.doc_id: one.cosine for one in made.search(query)} for made in (again, anew))
        assert found == pytest.approx(expected, abs=2e-3)


@pytest.mark.parametrize("form", [list, lambda ids: dict.fromkeys(ids, 1), lambda ids: ids[0]])
def test_a_weight_is_learned_from_questions_kept_and_saved(tmp_path, form):
    asked = []

    def counted(texts):
        asked.append(len(texts))
        return encode(texts)

    old = HybridRetriever(PASSAGES, encode, encode_query=counted, depth=20)
    near = {query: VECTORS.nearest(VECTORS.query("q", query), 2) for query in ["cat", "snow egg", "moss", "lake river"]}
    questions = {query: form(docids) for query, docids in near.items()}
    asked.clear()
    new = old.learn_weight(questions)
    assert asked == [4]
    qrels = {query: dict.fromkeys([kept] if isinstance(kept, str) else kept, 1) for query, kept in questions.items()}
    search = HybridSearch(INDEX, VECTORS, k=20).learn_weight({query: query for query in near}, qrels)
    assert (old.weight, new.weight) == (1, search.weight)
    assert new.weight > 1.1
    HybridRetriever(PASSAGES, encode, weight=np.float32(2)).save(tmp_path / "two")
    assert HybridRetriever.load(tmp_path / "two", encode).weight == 2
    expected = list(search(Query("q", "cat goose")))[:10]
    new.save(tmp_path / "new")
    for one in (new, new.with_passages(PASSAGES), HybridRetriever.load(tmp_path / "new", encode)):
        assert [(passage.doc_id, passage.score) for passage in one.search("cat goose")] == expected
    assert old.search("cat goose") == HybridRetriever(PASSAGES, encode, depth=20).search("cat goose")


def test_a_threshold_from_questions_decides_that_nothing_is_found():
    """As many questions as are kept find a passage, and passages above the limit stay as they are."""
    questions = [f"{first} {second}" for first in WORDS[:4] for second in WORDS[4:9]]
    found = {question: RETRIEVER.search(question, 200) for question in questions}
    highest = sorted(max(passage.confidence for passage in passages) for passages in found.values())
    limit = RETRIEVER.threshold(questions)
    assert limit == pytest.approx(highest[1] + 0.9 * (highest[2] - highest[1]))  # place 0.1 x 19
    assert RETRIEVER.threshold(questions, keep=0) == highest[-1]
    for question, passages in found.items():
        kept = RETRIEVER.search(question, 200, min_confidence=limit)
        expected = [passage for passage in passages if passage.confidence >= limit]
        assert [(p.doc_id, p.score) for p in kept] == [(p.doc_id, p.score) for p in expected]
        assert [p.rank for p in kept] == [*range(1, len(kept) + 1)]
    assert [*map(bool, RETRIEVER.batch_search(questions, min_confidence=limit))].count(False) == 2


def test_saved_and_loaded_whole(tmp_path):
    path = tmp_path / "chunks"
    passages = {**PASSAGES, "ü#1": {"text": "Gänse \ud800 fliegen", "tags": ["a", None, 1.5]}}
    mirrored = {"encode_query": lambda texts: encode(texts)[:, ::-1], "depth": np.int64(7)}
    retriever = HybridRetriever(passages, encode, **mirrored)
    retriever.save(path)
    content = path.read_bytes()
    again = HybridRetriever.load(path, encode, encode_query=lambda texts: encode(texts)[:, ::-1])
    assert not again._vectors.array.flags.owndata  # mapped, as the index is
    assert [again.search(query) for query in QUERIES] == [retriever.search(query) for query in QUERIES]
    again.save(path)
    assert path.read_bytes() == content
    for loaded, parts in (
        ((encode,), "a query|encoder"),
        ((lambda texts: encode(texts)[:, ::-1],), "passage 'p0'|encoder"),
        ((lambda texts: encode(texts)[:, :5],), "5 dimensions|8"),
    ):
        refuses(lambda loaded=loaded: HybridRetriever.load(path, *loaded), FormatError, f"chunks|{parts}", "|")
    with np.load(path) as opened:
        arrays = dict(opened)
    other = arrays["vectors"] + np.eye(61, 8, -7, dtype=np.float32)  # of one passage
    with (tmp_path / "stale").open("wb") as file:
        write_mappable(file, {**arrays, "vectors": other})
    refuses(lambda: HybridRetriever.load(tmp_path / "stale", encode), FormatError, "has changed", "|")
    for place in np.random.default_rng(2).integers(0, len(content), 60).tolist():
        path.write_bytes(content[:place] + bytes([content[place] ^ 4]) + content[place + 1 :])
        try:
            found = HybridRetriever.load(path, encode, encode_query=lambda texts: encode(texts)[:, ::-1])
        except FormatError:
            continue
        assert found.search("cat") == retriever.search("cat")  # of a byte that is not read
    del arrays["digest"]
    lacking = np.frombuffer(arrays["content"].tobytes().replace(b'"depth"', b'"width"'), np.uint8)
    fewer = arrays["passage_offsets"][:-1]
    wider = arrays["index.docid_order"].astype(np.int64)
    for changed, part in (
        ({"content": lacking}, "no retriever|'depth'"),
        ({"passage_offsets": fewer}, "not as many passages"),
        ({"index.docid_order": wider}, "no index"),
    ):
        with (tmp_path / "lacking").open("wb") as file:
            write_mappable(file, {"digest": _digest(arrays | changed), **arrays, **changed})
        refuses(
            lambda: HybridRetriever.load(tmp_path / "lacking", encode, encode_query=mirrored["encode_query"]),
            FormatError,
            part,
            "|",
        )
    path.write_bytes(content[: len(content) // 2])
    refuses(lambda: HybridRetriever.load(path, encode), FormatError, "chunks")
    with pytest.raises(ParameterError, match="cannot be saved"):
        HybridRetriever([{"text": "a", "field": float("nan")}], encode).save(path)
    assert path.read_bytes() == content[: len(content) // 2]


def make(passages=PASSAGES, encode=encode, **options):
    return HybridRetriever(passages, encode, **options)


def indexed(*places):
    """An encoder that answers as OpenAI's, whose items have these indexes."""
    return lambda texts: {"data": [{"embedding": [1.0], "index": place} for place in places]}


def narrowed(texts):
    return encode(texts)[:, : 5 if "a text" in texts else 8]


ROWS = encode([*TEXTS.values()])


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: make([]), "no passages"),
        (lambda: make("cat"), "passages|no sequence"),
        (lambda: make(["cat", 3]), "passage 1|int 3"),
        (lambda: make([{"source": "a"}]), "passage 0|None"),
        (lambda: make([{"id": 1, "text": "a"}, {"text": "b"}]), "passage 1 occurs twice"),
        (lambda: make({1.5: "cat"}), "identifier|float 1.5"),
        (lambda: make(depth=0), "depth"),
        (lambda: make(pd.DataFrame({"title": ["cat"]})), "passage 0|NoneType"),
        (lambda: make(pd.Series(["cat", "dog"], index=["a", "a"])), "passage 'a' occurs twice"),
        (lambda: make(encode="model"), "encoder|str 'model'|model.encode"),
        (lambda: make(encode=SimpleNamespace()), "encoder|namespace|model.encode"),
        *[(lambda n=n: make(["cat", "dog"], indexed(*n)), f"indexes|{[*n]}") for n in ((0, 0), (1, 2), (0, None))],
        (lambda: make(encode=lambda texts: ROWS[:3]), "(3, 8)|60 texts"),
        (lambda: make(encode=lambda texts: [[1.0], [1.0, 2.0]]), "encoder returned list"),
        (lambda: make(encode=lambda texts: None), "encoder returned None"),
        (lambda: make(encode=lambda texts: encode(texts) * np.nan), "finite"),
        (lambda: make(encode=lambda texts: encode(texts) * 1j), "no vector for each text"),
        (lambda: make(vectors=ROWS[1:]), "60 docids for 59 vectors"),
        (lambda: make(vectors=ROWS[::-1]), "passage 'p0'|this encoder|cosine"),
        (lambda: make(vectors=ROWS[:, :4]), "8 dimensions|4"),
        (lambda: make(vectors=np.where(np.arange(60)[:, None] == 9, np.nan, ROWS)), "nan"),
        (lambda: make(vectors=np.where(np.arange(60)[:, None] == 0, np.nan, ROWS).astype("f2")), "nan|finite"),
        (lambda: RETRIEVER.search("cat", 0), "k must be"),
        (lambda: RETRIEVER.search("cat", max_per_group=0), "max_per_group"),
        (lambda: RETRIEVER.search("cat", near_duplicates=80), "near_duplicates|threshold"),
        (lambda: RETRIEVER.search("cat", where={"sauce": "s1"}), "'sauce'"),
        (lambda: RETRIEVER.search("cat", where=["source"]), "where|['source']"),
        (lambda: RETRIEVER.search("cat", where={"id": 1.5}), "where|float 1.5"),
        *[
            (lambda where=where: RETRIEVER.search("cat", where=where), f"{part}|operators|lambda fields")
            for where, part in (
                ({"group": {"$gt": 3}}, "'group'"),
                ({"group": [3, {"$gt": 3}]}, "'group'"),
                ({"group": {"gte": 3}}, "'gte'"),
                ({"$and": [{"group": 3}]}, "'$and'"),
            )
        ],
        (lambda: RETRIEVER.search("cat", max_per_group=1, group="sorce"), "max_per_group|'sorce'|did you mean source?"),
        (lambda: make(["cat"]).search("cat", max_per_group=1), "max_per_group|'group'"),
        (lambda: RETRIEVER.search("cat", max_per_group=1, group=["source"]), "max_per_group|['source']"),
        (lambda: RETRIEVER.search("cat", max_per_group=0, where={"id": []}), "max_per_group"),
        *[
            (
                lambda value=value: make([{"text": "cat", "group": value}]).search("cat", max_per_group=1),
                f"group|{part}",
            )
            for value, part in ((None, "max_per_group"), (np.nan, "no value"), (["a"], "passage 0"), (1.5, "float 1.5"))
        ],
        (lambda: make([{"text": "cat", "lock": threading.Lock()}]), "passage 0|copied|lock"),
        (lambda: RETRIEVER.search("cat", near_duplicates=True), "threshold|True"),
        (lambda: make(language=None), "language|None"),
        (lambda: make(None), "passages|None"),
        (lambda: make({"a": {"id": "b", "text": "cat"}}), "passage 'a'|id 'b'"),
        (lambda: make({"\ud800": "cat"}), "docid|surrogate"),
        *[
            (lambda fields=fields: make([{"text": "a", **fields}]).save("no/folder"), f"passage 0|{part}")
            for fields, part in (
                ({1: 2}, "1"),
                ({None: 2}, "None"),
                ({"t": (1, 2)}, "'t'"),
                ({1: 1, "1": 2}, "1"),
                ({"n": np.int64(3)}, "int64"),
                ({"n": 10**5000}, "'n'|int"),
                ({"a": {"b": {True: 1}}}, "'a'"),
                ({"x": float("nan")}, "'x'|nan"),
                ({"x": OrderedDict(a=1)}, "'x'"),
                ({"x": "\ud83d\ude00"}, "'x'"),
                ({"x": IntEnum("E", "a").a}, "'x'"),
            )
        ],
        *[
            (lambda options=options: RETRIEVER.batch_search([], **options), parts)
            for options, parts in (
                ({"where": {"sauce": "s1"}}, "'sauce'"),
                ({"where": {"sauce": {"$gt": 3}}}, "no passage has a field 'sauce'"),
                ({"group": "source"}, "group|'source'|max_per_group="),
                ({"k": 0}, "k must be"),
                ({"min_confidence": "high"}, "min_confidence|str 'high'"),
                ({"min_confidence": float("nan")}, "min_confidence|nan"),
                ({"mmr": 1.5}, "mmr|relevance_weight|1.5"),
                ({"near_duplicates": -1}, "threshold|-1"),
                ({"max_per_group": 1, "group": "sorce"}, "max_per_group|'sorce'"),
            )
        ],
        (lambda: make(encode=narrowed).with_passages(add={"new": "a text"}), "5 dimensions|8"),
        (lambda: RETRIEVER.with_passages(add=PASSAGES), "add|passage 'p0'|remove="),
        (lambda: RETRIEVER.with_passages(add=[{"id": "p99", "text": "a"}, "an egg"]), "'an egg'|no id|'id': "),
        (lambda: RETRIEVER.with_passages(remove="p77"), "remove|'p77'"),
        (lambda: RETRIEVER.with_passages(remove=["p7", "p7"]), "remove|'p7'|twice"),
        (lambda: RETRIEVER.with_passages(remove=[*PASSAGES]), "no passages"),
        (lambda: RETRIEVER["p77"], "'p77'|ids"),
        (lambda: RETRIEVER.vectors(["p1", "p77"]), "'p77'"),
        (lambda: HybridRetriever.load(None, encode), "path|None|file"),
        (lambda: RETRIEVER.save(3), "path|int 3|file"),
        *[(lambda n=n: make([{n: "cat"}]), f"passage 0|{n!r}|'text'") for n in ("content", "page_content")],
        (lambda: RETRIEVER.threshold(["cat"] * 9), "9 questions|10"),
        (lambda: RETRIEVER.threshold("cat"), "questions|no sequence"),
        (lambda: RETRIEVER.threshold(["cat"] * 10, keep=90), "keep|90"),
        (lambda: make(["cat"], lambda texts: np.zeros((len(texts), 2))).threshold(["dog"] * 10), "'dog' finds no"),
        (lambda: make(weight=-1), "weight|-1"),
        (lambda: RETRIEVER.learn_weight(["cat"]), "questions|['cat']"),
        (lambda: RETRIEVER.learn_weight({}), "0 topics"),
        (lambda: RETRIEVER.learn_weight({"cat": []}), "1 topics"),
        (lambda: RETRIEVER.learn_weight({"cat": ["p1", "p77"]}), "'cat'|no passage|'p77'"),
        (lambda: RETRIEVER.learn_weight({"cat": {"p1": True}}), "p1|True"),
        (lambda: RETRIEVER.learn_weight({3: "p1"}), "int 3"),
        (lambda: RETRIEVER.learn_weight({"cat": [["p1"]]}), "an id|list ['p1']"),
        (lambda: RETRIEVER.with_passages(remove=[*RETRIEVER]), "no passages"),
        (lambda: RETRIEVER.search(["cat"]), "list ['cat']"),
        (lambda: RETRIEVER.batch_search("cat"), "queries|no sequence"),
        (lambda: RETRIEVER.batch_search([["cat"]]), "list ['cat']"),
    ],
)
def test_refuses_what_does_not_fit(call, parts):
    refuses(call, ParameterError, parts, "|")
