"""The weight as a model: that of `HybridSearch.learn_weight`, and its file."""

import numpy as np
import pytest

from greylag import train
from greylag.base import ModelError, ParameterError
from greylag.index import ArrayVectors
from greylag.learning.model_files import trained_topics
from greylag.recipes import HybridModel, HybridRecipe, HybridSearch
from tests.greylag.recipes.test_hybrid import DOCIDS, INDEX, vectors
from tests.refusals import refuses

TOPICS = {f"t{n}": f"w{n}x w{n + 3}x" for n in range(1, 9)}
VECTORS = ArrayVectors(DOCIDS, vectors(1).array, {qid: np.eye(6)[n % 6] for n, qid in enumerate(TOPICS)})
QRELS = {qid: {VECTORS.nearest(VECTORS.query(qid, ""), 1)[0]: 1} for qid in [*TOPICS][1:]} | {"t1": {"d1": 0}}


@pytest.mark.parametrize("n_jobs", [1, 2])
def test_a_model_is_trained_of_all_topics_and_of_each_fold(tmp_path, n_jobs):
    result = train(INDEX.bm25(9).run(TOPICS), QRELS, INDEX, HybridRecipe(VECTORS, k=9), folds=3, n_jobs=n_jobs)
    search = HybridSearch(INDEX, VECTORS, k=9)
    assert result.model.weight == search.learn_weight(TOPICS, QRELS).weight > 1
    assert trained_topics(result.model.provenance) == {*TOPICS} - {"t1"}
    for fold, fitted in zip(result.held_out.folds, result.held_out.fitted, strict=True):
        others = search.learn_weight({qid: text for qid, text in TOPICS.items() if qid not in fold}, QRELS)
        assert fitted.model.weight == others.weight
        assert [result.held_out.run[qid] for qid in fold] == [others.run(TOPICS)[qid] for qid in fold]
    result.model.save(tmp_path / "model.json")
    loaded = HybridModel.load(tmp_path / "model.json")
    assert (loaded, loaded.on(INDEX)) == (result.model, result.model.weight)
    other = HybridModel(2.0, "elsewhere")
    assert other.on(INDEX, transfer=True) == 2
    refuses(lambda: other.on(INDEX), ModelError, "another collection", "|")


def test_a_fold_without_a_topic_to_learn_from_is_refused():
    run, judged = INDEX.bm25(9).run(TOPICS), {"t2": QRELS["t2"]}
    refuses(lambda: train(run, judged, INDEX, HybridRecipe(VECTORS, k=9), folds=2), ParameterError, "none of 4 folds")
