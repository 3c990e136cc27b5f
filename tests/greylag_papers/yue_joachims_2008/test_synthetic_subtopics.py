from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from greylag import ParameterError
from greylag_papers.yue_joachims_2008.synthetic_subtopics import falling
from tests.greylag_papers.yue_joachims_2008.samples import SETS


def test_sets_have_the_documented_shape() -> None:
    data = replace(SETS, n_sets=60, n_subtopics=10)
    sizes = []
    for frequencies, truth in data.draw():
        assert frequencies.shape == (20, 400)
        assert frequencies.sum(axis=1).ravel().tolist() == [[60.0] * 20]
        covered = truth.coverage.toarray()
        assert set(np.unique(covered)) == {0.0, 1.0}
        assert covered.any(axis=0).all()
        assert set(covered.sum(axis=1)) <= {1.0, 2.0, 3.0, 4.0}
        np.testing.assert_allclose(truth.weights, covered.sum(axis=0) / covered.sum())
        sizes.append(covered.shape[1])
    assert min(sizes) <= 2
    assert 8 < max(sizes) <= 10


def test_documents_with_a_common_subtopic_share_more_words() -> None:
    alike, unlike = [], []
    for frequencies, truth in replace(SETS, n_words=300, per_document=1, concentration=20.0).draw():
        tf, covered = frequencies.toarray(), truth.coverage.toarray()
        tf /= np.linalg.norm(tf, axis=1, keepdims=True)
        cosines, same = tf @ tf.T, covered @ covered.T > 0
        alike.append(cosines[same & ~np.eye(20, dtype=bool)].mean())
        unlike.append(cosines[~same].mean())
    assert np.mean(alike) > 1.5 * np.mean(unlike)


def test_sets_depend_on_the_seed_alone() -> None:
    first, again, other = SETS.draw(), SETS.draw(), replace(SETS, seed=4).draw()
    assert all((a != b).nnz == 0 for (a, _), (b, _) in zip(first, again, strict=True))
    assert all((a != b).nnz > 0 for (a, _), (b, _) in zip(first, other, strict=True))


def test_exponent_0_makes_subtopics_and_words_uniform() -> None:
    data = replace(SETS, n_sets=50, n_subtopics=2, per_document=1, n_words=500, concentration=1e6)
    for exponent, shares in ((0.0, (1 / 2, 1 / 2)), (1.0, (1 / 3, 2 / 3)), (2.0, (1 / 5, 4 / 5))):
        drawn = replace(data, exponent=exponent).draw()
        # The less popular subtopic is the second one if both occur.
        smaller = [truth.coverage.sum(axis=0).tolist()[0][-1] / 20 for _, truth in drawn if len(truth.weights) == 2]
        assert np.mean(smaller) == pytest.approx(shares[0], abs=0.03)
        words = sum(frequencies.sum(axis=0) for frequencies, _ in drawn).A1
        assert words[0] / words.sum() == pytest.approx(falling(400, exponent)[0], rel=0.1)
    np.testing.assert_allclose(falling(3, 2.0), [36 / 49, 9 / 49, 4 / 49])


@pytest.mark.parametrize(
    "options",
    [
        {"n_subtopics": 1},
        {"n_words": 0},
        {"concentration": 0.0},
        {"exponent": -1.0},
        {"exponent": np.inf},
        {"seed": -1},
    ],
)
def test_size_out_of_range(options: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match="size out of range in SyntheticSubtopics"):
        replace(SETS, **options)  # type: ignore[arg-type]
