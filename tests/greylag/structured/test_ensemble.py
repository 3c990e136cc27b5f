"""The result of ensemble learners."""

from __future__ import annotations

import numpy as np
import pytest

from greylag.structured import Ensemble
from tests.greylag.structured.models import Table, random_tables


def test_size_angle_and_losses() -> None:
    ensemble = Ensemble(np.eye(3), epochs=4, converged=True)
    assert len(ensemble) == 3
    assert ensemble.mean_angle == pytest.approx(90.0)
    examples = random_tables(0, n=5, outputs=6, d=3)
    losses = ensemble.losses(Table(), examples)
    assert losses.tolist() == [[truth[np.argmax(x[:, m])] for x, truth in examples] for m in range(3)]
    assert ensemble.losses(Table(), []).shape == (3, 0)
