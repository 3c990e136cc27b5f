from dataclasses import replace

import numpy as np
import pytest

from greylag.evaluation import split_folds
from greylag.learning import GreedySelection, Objective, linear_scores
from greylag_papers.metzler_2007.choice import choose_learner, held_out_means
from tests.greylag.learning.samples import random_data


def explicit(data, learner, measure, folds, seed):
    """Cross-validated means by number of features."""
    means = []
    for features in range(1, learner.max_features + 1):
        values = {}
        for part in split_folds(data.qids, folds, seed):
            selection = replace(learner, max_features=features).fit(
                data.select_queries([qid for qid in data.qids if qid not in part])
            )
            own = data.select_queries(part)
            scores = linear_scores(own, list(selection.columns), np.array(selection.weights))
            values.update(zip(own.qids, measure.evaluate(own, scores), strict=True))
        means.append(float(np.mean(list(values.values()))))
    return means


@pytest.mark.parametrize("epsilon", [0.0, 0.05])  # with the second, selection stops before max_features
def test_the_choice_is_by_cross_validation(epsilon):
    data = random_data(21, queries=15, documents=25, features=5)
    measure = Objective("nDCG", 10)
    learners = [GreedySelection(Objective("nDCG", k), max_features=4, epsilon=epsilon) for k in (3, 10, 20)]
    expected = [explicit(data, learner, measure, 3, 7) for learner in learners]
    learner, held_out = choose_learner(data, learners, measure, folds=3, seed=7)
    np.testing.assert_allclose(held_out, expected, rtol=1e-12)
    flat = [value for own in expected for value in own]
    best, features = divmod(int(np.argmax(flat)), 4)
    assert learner == replace(learners[best], max_features=features + 1)
    alone = held_out_means(data, learners[1], measure, folds=3, seed=7, n_jobs=2)
    np.testing.assert_array_equal(alone, held_out[1])
