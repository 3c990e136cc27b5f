"""Rankings without the text of their query: whatever reads it refuses them."""

from types import SimpleNamespace

import numpy as np
import pytest

from greylag import MMR, GeneralRanker, PositionalIndex, Ranking, Run, rerank, train
from greylag.base import ParameterError
from greylag.evaluation import read_run, write_run
from greylag.features import FeatureExtractor, parse_features
from greylag.learning import GreedySelection
from greylag.passages import run_from_pyserini
from greylag.rankers import ManifoldRanker, RM3Stage
from greylag.recipes import MRFRecipe, cross_validate
from tests.refusals import refuses

TEXTS = {
    f"d{i}": text for i, text in enumerate(["cat sat", "cat dog", "dog ran", "cow ate grass", "cow and cat", "hen"])
}
INDEX = PositionalIndex.from_texts(TEXTS)
TOPICS = {f"q{i}": text for i, text in enumerate(["cat", "dog", "cow grass", "hen"])}
QRELS = {qid: {"d1": 1, "d3": 1} for qid in TOPICS}
RUN = Run(tuple(Ranking(qid, text, tuple(TEXTS), np.arange(6.0, 0, -1)) for qid, text in TOPICS.items()), "bm25")
RECIPE = MRFRecipe(parse_features("FI/term/LM,score"), GreedySelection("AP"))
HITS = {qid: [SimpleNamespace(docid="d1", score=1.0)] for qid in TOPICS}


@pytest.fixture
def textless(tmp_path):
    """The run as it is read without topics."""
    write_run(RUN, tmp_path / "bm25.run")
    return read_run(tmp_path / "bm25.run")


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        *(
            (stage.run, f"query q0|text|{type(stage).__name__}")
            for stage in (GeneralRanker(INDEX), RM3Stage(INDEX), ManifoldRanker(INDEX))
        ),
        ((GeneralRanker(INDEX) >> MMR(INDEX)).run, "query q0|text"),
        (lambda run: GeneralRanker(INDEX).run([*RUN.rankings, run["q3"]]), "query q3"),  # before any query is ranked
        (lambda run: GeneralRanker(INDEX)(run["q1"]), "query q1"),
        (lambda run: RM3Stage(INDEX)(run["q1"]), "query q1"),
        (lambda run: FeatureExtractor(INDEX, parse_features("score,latent"))(run["q0"]), "query q0|latent"),
        (lambda run: train(run, QRELS, INDEX), "query q0"),
        (lambda run: train(run, QRELS, INDEX, RECIPE), "query q0"),
        (lambda run: cross_validate(RECIPE, run, QRELS, INDEX, folds=2), "query q0"),
        (lambda run: GeneralRanker(INDEX).run(run_from_pyserini(HITS)), "query q0|text|GeneralRanker"),
    ],
)
def test_what_reads_the_query_refuses_to(call, parts, textless):
    refuses(lambda: call(textless), ParameterError, parts, "|")


def test_what_does_not_read_the_query_needs_none(textless):
    assert len(MMR(INDEX).run(textless)) == 4
    assert FeatureExtractor(INDEX, parse_features("score,document:length"))(textless["q0"]).shape == (6, 2)
    assert len(GeneralRanker(INDEX).run(run_from_pyserini(HITS, topics=TOPICS))) == 4
    # An empty query of passages is a query.
    assert [passage.text for passage in rerank("", ["a cat", "a dog"], [1, 2], method="general")] == ["a dog", "a cat"]
