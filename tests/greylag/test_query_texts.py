"""Rankings without the text of their query: whatever reads it refuses them."""

from types import SimpleNamespace

import numpy as np
import pytest

from greylag import MMR, GeneralRanker, PositionalIndex, Ranking, Run, rerank, train
from greylag.adapters import run_from_pyserini
from greylag.errors import ParameterError
from greylag.features import FeatureExtractor, parse_features
from greylag.learning import GreedySelection
from greylag.manifold import ManifoldRanker
from greylag.rankers import RM3Stage
from greylag.recipes import MRFRecipe, cross_validate
from greylag.trec import read_run, write_run

TEXTS = {
    f"d{i}": text for i, text in enumerate(["cat sat", "cat dog", "dog ran", "cow ate grass", "cow and cat", "hen"])
}
INDEX = PositionalIndex.from_texts(TEXTS)
TOPICS = {f"q{i}": text for i, text in enumerate(["cat", "dog", "cow grass", "hen"])}
QRELS = {qid: {"d1": 1, "d3": 1} for qid in TOPICS}


def run_of(topics):
    """A run of all documents."""
    scores = np.arange(len(TEXTS), 0.0, -1.0)
    return Run(tuple(Ranking(qid, text, tuple(TEXTS), scores) for qid, text in topics.items()), "bm25")


@pytest.fixture
def textless(tmp_path):
    """The run as it is read without topics."""
    write_run(run_of(TOPICS), tmp_path / "bm25.run")
    return read_run(tmp_path / "bm25.run")


@pytest.mark.parametrize("stage", [GeneralRanker(INDEX), RM3Stage(INDEX), ManifoldRanker(INDEX)])
def test_stages(stage, textless):
    with pytest.raises(ParameterError, match=rf"query q0 .*text.*{type(stage).__name__}"):
        stage.run(textless)
    with pytest.raises(ParameterError, match="has no text"):
        (stage >> MMR(INDEX)).run(textless)
    with pytest.raises(ParameterError, match="has no text"):  # before any query is ranked
        stage.run([*run_of(TOPICS).rankings, textless["q3"]])
    if not isinstance(stage, ManifoldRanker):  # which has a vector of the query by its qid, perhaps
        with pytest.raises(ParameterError, match="query q1 has no text"):
            stage(textless["q1"])


def test_features(textless):
    with pytest.raises(ParameterError, match="which the feature latent reads"):
        FeatureExtractor(INDEX, parse_features("score,latent"))(textless["q0"])
    assert FeatureExtractor(INDEX, parse_features("score,document:length"))(textless["q0"]).shape == (6, 2)


def test_training(textless):
    recipe = MRFRecipe(parse_features("FI/term/LM,score"), GreedySelection("AP"))
    for fit in (
        lambda: train(textless, QRELS, INDEX),
        lambda: train(textless, QRELS, INDEX, recipe),
        lambda: cross_validate(recipe, textless, QRELS, INDEX, folds=2),
    ):
        with pytest.raises(ParameterError, match="query q0 has no text"):
            fit()


def test_hits_without_topics():
    hits = {qid: [SimpleNamespace(docid="d1", score=1.0)] for qid in TOPICS}
    with pytest.raises(ParameterError, match=r"query q0 .*text.*GeneralRanker"):
        GeneralRanker(INDEX).run(run_from_pyserini(hits))
    assert len(GeneralRanker(INDEX).run(run_from_pyserini(hits, topics=TOPICS))) == 4


def test_what_does_not_read_the_query_needs_none(textless):
    assert len(MMR(INDEX).run(textless)) == 4


def test_an_empty_query_of_passages_is_a_query():
    assert [passage.text for passage in rerank("", ["a cat", "a dog"], [1, 2], method="general")] == ["a dog", "a cat"]
