from __future__ import annotations

import numpy as np
import pytest

from greylag import ParameterError
from greylag.structured import TrainingSet
from greylag_papers.schiegg_2016.trials import METHODS, EnsembleSettings, Perturbed, candidates
from tests.greylag.structured.models import Table, random_tables
from tests.greylag_papers.schiegg_2016.samples import GRID


def test_perturbed_members_have_the_given_distance_from_the_svm() -> None:
    training = TrainingSet(Table(), random_tables(0, 4, 5, 20))
    optimum = np.linspace(-1.0, 2.0, 20)
    np.testing.assert_array_equal(Perturbed(1, 10.0, 0.0).solve(training, optimum).weights, [optimum])
    members = Perturbed(6, 10.0, 0.5, seed=1).solve(training, optimum).weights
    distances = np.linalg.norm(members - optimum, axis=1)
    np.testing.assert_allclose(distances, 0.5 * np.linalg.norm(optimum))
    assert len(np.unique(members.round(6), axis=0)) == 6
    signed = TrainingSet(Table(nonnegative=(0,)), random_tables(0, 4, 5, 20))
    free = np.where(np.arange(20) == 0, np.maximum(members, 0.0), members)
    np.testing.assert_array_equal(Perturbed(6, 10.0, 0.5, seed=1).solve(signed, optimum).weights, free)


def test_all_methods_have_the_same_number_of_candidates() -> None:
    found = candidates(EnsembleSettings(name="s", **GRID), 3)
    assert tuple(found) == METHODS
    assert {len(learners) for learners in found.values()} == {2}
    assert len({str(learner) for learners in found.values() for learner in learners}) == 2 * len(METHODS)
    more = EnsembleSettings(name="s", **GRID | {"alphas": (0.01, 0.1, 1.0)})
    with pytest.raises(ParameterError, match=r"the same number of candidates, .* divmcl 2, cssvm-all 3, cssvm-best 3"):
        candidates(more, 3)
