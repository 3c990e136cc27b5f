from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from greylag.errors import ModelError, ParameterError
from greylag.ranking import FloatArray, IntArray
from greylag.structured import CuttingPlane, TrainingSet
from greylag_papers.schiegg_2016.potts import (
    CAPACITY,
    N_FEATURES,
    PottsModel,
    Superpixels,
    best_labels,
    colour_features,
    neighbours,
)
from greylag_papers.schiegg_2016.synthetic_images import SyntheticImages

MODEL = PottsModel()
SHAPES = [(1, 1), (1, 6), (5, 1), (2, 2), (3, 4)]
POTTS_WEIGHTS = [0.0, 0.3, 3.0, -0.3, -3.0]


def labellings(shape: tuple[int, int]) -> IntArray:
    return np.array(list(product((0, 1), repeat=shape[0] * shape[1])))


def energies(shape: tuple[int, int], unary: FloatArray, pairwise: FloatArray) -> tuple[IntArray, FloatArray]:
    """All labellings and their E(y); neighbours are found by their distance."""
    places = list(product(range(shape[0]), range(shape[1])))
    across = [
        (p, q) for p, q in combinations(range(len(places)), 2) if np.subtract(places[q], places[p]).tolist() == [0, 1]
    ]
    down = [
        (p, q) for p, q in combinations(range(len(places)), 2) if np.subtract(places[q], places[p]).tolist() == [1, 0]
    ]
    ys = labellings(shape)
    cuts = sum((pairwise[i] * (ys[:, p] != ys[:, q]) for i, (p, q) in enumerate(across + down)), np.zeros(len(ys)))
    return ys, ys @ unary - cuts


def image(shape: tuple[int, int], seed: int) -> Superpixels:
    return Superpixels.from_colours(np.random.default_rng(seed).random((*shape, 3)))


def random_weights(rng: np.random.Generator, potts: float) -> FloatArray:
    return np.append(rng.standard_normal(N_FEATURES), potts)


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_cuts_are_the_best_labels(shape: tuple[int, int], sign: float) -> None:
    rng = np.random.default_rng(0)
    for scale in (1e-6, 0.3, 1.0, 1e9):
        for _ in range(10):
            unary = rng.standard_normal(shape[0] * shape[1])
            pairwise = sign * scale * rng.random(neighbours(shape).shape[1])
            ys, values = energies(shape, unary, pairwise)
            found = best_labels(shape, unary, pairwise)
            bound = (np.abs(unary).sum() + 2 * np.abs(pairwise).sum()) * (len(unary) + len(pairwise)) / CAPACITY
            assert values[(ys == found).all(axis=1)].item() >= values.max() - bound


@pytest.mark.parametrize("potts", POTTS_WEIGHTS)
def test_all_inference_is_exact(potts: float) -> None:
    rng = np.random.default_rng(1)
    ys = labellings((3, 4))
    for seed in range(4):
        x, truth = image((3, 4), seed), rng.integers(2, size=12)
        others = [rng.integers(2, size=12) for _ in range(3)]
        weights = random_weights(rng, potts)
        scores = np.array([MODEL.joint_feature(x, y) @ weights for y in ys])
        losses = np.array([MODEL.loss(truth, y) for y in ys])
        alike = np.array([np.mean([MODEL.similarity(y, other) for other in others]) for y in ys])
        for found, values in [
            (MODEL.infer(x, weights), scores),
            (MODEL.infer_augmented(x, truth, weights), scores + losses),
            (
                MODEL.infer_apart(x, truth, weights, others, task=0.5, similarity=-1.5),
                scores + 0.5 * losses - 1.5 * alike,
            ),
        ]:
            assert values[(ys == found).all(axis=1)].item() == pytest.approx(values.max(), abs=1e-5)


def test_ties_and_zeros() -> None:
    x = image((4, 5), 0)
    assert not MODEL.infer(x, np.zeros(N_FEATURES + 1)).any()
    assert best_labels((1, 2), np.array([1.0, -1.0]), np.array([1.0])).tolist() == [0, 0]  # E is 0 for 11, 10 and 00


def test_joint_feature_and_losses_by_hand() -> None:
    x = Superpixels((2, 2), np.arange(8.0).reshape(4, 2), np.array([1.0, 2.0, 4.0, 8.0]))
    y = np.array([1, 0, 1, 1])  # cuts the edges with affinities 1 and 8
    assert MODEL.joint_feature(x, y) == pytest.approx(np.array([0 + 4 + 6, 1 + 5 + 7, -9]) / 4)
    assert MODEL.loss(np.array([0, 0, 1, 1]), y) == 0.25
    assert MODEL.similarity(y, np.array([0, 0, 0, 1])) == 0.5


def test_colour_features() -> None:
    colours = np.array([[1.0, 0.5, 0.0], [0.0, 0.0, 0.0], [0.25, 0.25, 0.25]])
    found = colour_features(colours)
    assert found[0].tolist() == [1, 0, -1, 1, 0, 1, 0, 0, -1, 1, 1, 1]
    assert found[1, -3:].tolist() == [-1, -1, -1]
    assert found[2, -3:].tolist() == [-0.5, -1, -1]
    assert np.abs(colour_features(np.random.default_rng(0).random((500, 3)))).max() <= 1


def test_affinities_fall_with_contrast() -> None:
    plain = Superpixels.from_colours(np.full((3, 3, 3), 0.4))
    assert plain.affinities.tolist() == [1.0] * 12
    colours = np.array([[[0.0] * 3, [0.1] * 3, [0.9] * 3]])
    first, second = Superpixels.from_colours(colours).affinities
    assert (first, second) == pytest.approx((np.exp(-0.03 / 0.975), np.exp(-1.92 / 0.975)))


def test_cutting_plane_separates_an_image() -> None:
    drawn = SyntheticImages(n_categories=1, n_images=1, noise=0.02).draw()[0][0]
    example = (Superpixels.from_colours(drawn.colours), drawn.labels)
    solution = CuttingPlane(C=1e4).fit(MODEL, [example])
    assert MODEL.loss(drawn.labels, MODEL.infer(example[0], solution.weights)) < 0.01
    # No random labelling violates its constraint more than the one that inference found.
    hinge = TrainingSet(MODEL, [example]).hinge_losses(solution.weights)[0]
    rng = np.random.default_rng(2)
    for flips in rng.random((200, 192)) < rng.random((200, 1)):
        y = drawn.labels ^ flips
        difference = MODEL.joint_feature(example[0], y) - MODEL.joint_feature(example[0], drawn.labels)
        assert MODEL.loss(drawn.labels, y) + difference @ solution.weights <= hinge + 1e-5


def test_arrays_of_the_wrong_size_are_refused() -> None:
    with pytest.raises(ModelError, match="3 weights do not fit superpixels with 13 features: 14 are needed"):
        MODEL.infer(image((2, 2), 0), np.zeros(3))
    with pytest.raises(ParameterError, match="2 x 2 has 4 superpixels and 4 pairs of neighbours, not 4 and 3"):
        Superpixels((2, 2), np.zeros((4, 1)), np.zeros(3))
    with pytest.raises(ParameterError, match="at least 0, not -1"):
        Superpixels((1, 2), np.zeros((2, 1)), np.array([-1.0]))
