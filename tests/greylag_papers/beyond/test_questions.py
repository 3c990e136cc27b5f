"""What questions gain for hybrid search: by hand on the demonstration's topics, and on values that are made up."""

import numpy as np
import pytest

from greylag import read_qrels, read_topics
from greylag.base import Query, read_json_lines
from greylag.evaluation import evaluate
from greylag.index import ArrayVectors, build_index
from greylag.index.positional import PositionalIndex
from greylag.recipes import HybridSearch
from greylag.studies.study import Context
from greylag_papers.beyond import questions
from greylag_papers.beyond.questions import CONFIDENCE, COSINE, LEARNED, NUMBERS, Answers, area, ask, limits_of, rows_of
from tests.greylag.studies.samples import DEMO
from tests.greylag_papers.beyond.samples import lengths

SIZES, DRAWS, SEED = (5, 8), 3, 1


@pytest.fixture(scope="module")
def asked(tmp_path_factory):
    """A search in the demonstration, its topics but for four strange ones, their judgements, and what they gain."""
    build_index(DEMO / "docs.jsonl", folder := tmp_path_factory.mktemp("questions") / "index")
    texts = {doc["id"]: f"{doc['title']}\n{doc['contents']}" for _, doc in read_json_lines(DEMO / "docs.jsonl")}
    every, qrels = read_topics(DEMO / "topics.tsv"), read_qrels(DEMO / "qrels.txt")
    rows, queries = np.array([*map(lengths, texts.values())]), {qid: lengths(text) for qid, text in every.items()}
    search = HybridSearch(PositionalIndex.from_lucene(folder), ArrayVectors([*texts], rows, queries), k=20)
    topics = dict([*every.items()][4:])
    foreign = [Query(qid, text) for qid, text in every.items() if qid not in topics]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(questions, "LIMITED", 6)
        return search, topics, qrels, foreign, ask(search, topics, qrels, foreign, SIZES, DRAWS, SEED, Context(folder))


def test_gains_are_those_of_searches_that_learned_from_the_drawn_questions(asked):
    search, topics, qrels, _, answers = asked
    rng, qids = np.random.default_rng(SEED), [*topics]
    orders = [[qids[place] for place in rng.permutation(len(qids))] for _ in range(DRAWS)]

    def values(by, among):
        run = by.run({qid: topics[qid] for qid in among})
        return dict(
            zip(among, evaluate(run, {qid: qrels[qid] for qid in among}, ["nDCG@10"]).values[:, 0], strict=True)
        )

    before, weights = values(search, qids), set()
    for size in SIZES:
        gained = {qid: [] for qid in qids}
        for order in orders:
            learned = search.learn_weight({qid: topics[qid] for qid in order[:size]}, qrels)
            weights.add(learned.weight)
            for qid, value in values(learned, order[size:]).items():
                gained[qid].append(value - before[qid])
        np.testing.assert_allclose(answers.gains[size], [np.mean(own) for own in gained.values() if own], atol=1e-12)
    assert len(weights) > 1
    means = [
        np.mean([*values(search.__class__(search.index, search.vectors, k=20, weight=2.0**power), qids).values()])
        for power in np.arange(-4, 9) / 2
    ]
    assert answers.best == pytest.approx(max(means) - np.mean([*before.values()]))


def test_areas_and_shares_are_those_of_searches_without_the_relevant_documents(asked):
    search, topics, qrels, foreign, answers = asked
    queries = [Query(qid, text) for qid, text in topics.items()]
    docids = search.index.docids_of(np.arange(search.index.n_documents))

    def lost(query):
        relevant = {docid for docid, grade in qrels[query.qid].items() if grade > 0}
        return search.scores(query, lambda number: docids[number] not in relevant)

    found, without, strange = (
        [max(hits.confidence) for hits in map(find, some)]
        for find, some in ((search.scores, queries), (lost, queries), (search.scores, foreign))
    )
    limits = answers.limits[CONFIDENCE]
    for name, others in (("answerable", without), ("own", strange)):
        pairs = [(one > other) + (one == other) / 2 for one in found for other in others]
        assert limits[name] == pytest.approx(np.mean(pairs))
    first = [
        (max(hits.bm25[:1]), qrels[hits.query.qid].get(hits.docids[0], 0) > 0) for hits in map(search.scores, queries)
    ]
    pairs = [(a > b) + (a == b) / 2 for a, is_relevant in first for b, other in first if is_relevant > other]
    assert answers.limits["BM25"]["relevant"] == pytest.approx(np.mean(pairs))
    rng, shares = np.random.default_rng(SEED), []
    for _ in range(DRAWS):
        order = rng.permutation(len(queries))
        limit = np.quantile([found[place] for place in order[:6]], 0.1)
        left = order[6:]
        shares.append(
            (
                np.mean([found[place] >= limit for place in left]),
                np.mean([without[place] < limit for place in left]),
                np.mean([value < limit for value in strange]),
            )
        )
    assert [*limits.values()][3:] == pytest.approx(np.mean(shares, axis=0))


def test_numbers_with_another_weight_of_the_cosine(asked):
    hits = asked[0].scores(asked[3][0])
    for name, factor in ((CONFIDENCE, 4), (f"{CONFIDENCE}, 2", 2), (f"{CONFIDENCE}, 8", 8)):
        by_hand = hits.general / np.log(len(hits.docids)) + factor * (hits.cosines - hits.mean) / (1 - hits.mean)
        np.testing.assert_allclose(NUMBERS[name](hits), by_hand)


def test_an_area_is_the_share_of_pairs_in_order():
    assert area(np.array([1.0, 3.0]), np.array([0.0, 2.0, 3.0])) == pytest.approx((1 + 2.5) / 6)
    assert area(np.array([]), np.array([1.0])) == 0.5
    assert limits_of(np.ones(3), np.zeros(3), np.zeros(2), []) == {"answerable": 1.0, "own": 1.0}


def test_rows_count_gains_that_are_significant_among_collections():
    """Two of three differences have a p of .03, which Holm's correction doubles."""
    limits = {name: {"relevant": 0.5, "answerable": 0.6, "own": 0.7 + 0.1 * (name == CONFIDENCE)} for name in NUMBERS}
    noise = np.tile([0.01, -0.01], 50)
    gains = {
        "a": {5: noise + 0.02, 10: noise + 0.02},
        "b": {5: noise - 0.0022, 10: noise - 0.01},
        "c": {5: noise + 0.0022},
    }
    answers = {name: Answers(own, 0.01 * (1 + len(own)), limits) for name, own in gains.items()}
    rows = rows_of(answers, {name: name for name in answers})
    assert rows[f"a, {LEARNED}"] == pytest.approx({"5 questions": 0.02, "10 questions": 0.02, "the best": 0.03})
    five, ten, best = (rows[f"all, {LEARNED}, {which}"] for which in ("5 questions", "10 questions", "the best"))
    assert five["mean"] == pytest.approx(0.02 / 3)
    assert (five["least"], five["above"]) == (pytest.approx(-0.0022), 2)
    assert [(row["significant"], row["significantly below"]) for row in (five, ten)] == [(1, 0), (1, 1)]
    assert best["least"] == 0.02
    assert rows[f"all, {CONFIDENCE}"]["own"] == pytest.approx(0.8)
    assert rows[f"all, {CONFIDENCE} less {COSINE}, own"]["mean"] == pytest.approx(0.1)
