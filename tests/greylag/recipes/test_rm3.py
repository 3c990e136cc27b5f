"""RM3 as a model that is tuned on training queries."""

import pytest

from greylag.rankers import ModelRanker
from greylag.recipes.rm3 import RM3Recipe
from tests.greylag.recipes.test_sources import CANDIDATES, GRID, INDEX, QIDS, QRELS, RANKINGS, mean


def test_the_model_is_the_tuned_baseline_of_the_automatic_choice():
    fitted, tuned = RM3Recipe(grid=GRID).fit(RANKINGS, QRELS, INDEX), CANDIDATES.tune(QIDS)
    assert list(map(str, fitted.model.features)) == [f"stage:{tuned.rm3}"]
    ranked = ModelRanker(fitted.model, INDEX).run(RANKINGS[:8])
    assert mean(ranked) == pytest.approx(tuned.training_score) == fitted.model.provenance["training_score"]
    assert "RM3 with k1, b, fb_docs, fb_terms, original_weight tuned on 8 queries" in fitted.model.summary()
    assert str(fitted).endswith(f", original_weight {tuned.original_weight:g}")
    assert fitted.ends["original_weight"] == (0.3, 0.7)
