"""Small settings and trials for tests."""

import numpy as np

from greylag_papers.schiegg_2016.trials import Trial

N_FEATURES = 13
"""The number of features of `Superpixels.from_colours`."""
GRID = {
    "costs": (1.0, 10.0),
    "ensemble_costs": (10.0,),
    "alphas": (0.01, 0.1),
    "gradient_alphas": (0.1, 1.0),
    "diversities": (0.1, 1.0),
    "spreads": (0.1, 1.0),
    "rounds": 2,
}
ONE = {name: values[:1] if isinstance(values, tuple) else values for name, values in GRID.items()}
"""The same with one candidate per method."""


def trial(task, validation, losses, method="mcl"):
    """A trial with the given losses, shape (M, n), on the examples q0, q1, ..."""
    ids = tuple(f"q{i}" for i in range(len(losses[0])))
    return Trial(
        method, len(losses), task, None, validation, method != "mcl", 30.0, 0.1, 0.5, None, ids, np.array(losses)
    )
