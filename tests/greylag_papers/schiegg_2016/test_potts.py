from itertools import combinations, product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_matrix
from scipy.sparse.csgraph import maximum_flow

from greylag_papers.schiegg_2016.potts import (
    PRECISION,
    PottsModel,
    Superpixels,
    best_labels,
    colour_features,
    improve,
    inverse_frequencies,
    make_network,
    neighbours,
)
from tests.greylag_papers.schiegg_2016.samples import N_FEATURES

MODEL = PottsModel()
SHAPES = [(1, 1), (1, 6), (5, 1), (2, 2), (3, 4)]
POTTS_WEIGHTS = [(0.0, 0.0), (0.3, 0.0), (0.0, 0.3), (2.0, 3.0)]


def labellings(P, K):
    return np.array(list(product(range(K), repeat=P)))


def energies(shape, unary, pairwise):
    """All labellings and their E(y); neighbours are found by their distance."""
    places = list(product(range(shape[0]), range(shape[1])))
    edges = [
        (p, q)
        for step in ([0, 1], [1, 0])
        for p, q in combinations(range(len(places)), 2)
        if np.subtract(places[q], places[p]).tolist() == step
    ]
    ys = labellings(*unary.shape)
    cuts = sum((pairwise[i] * (ys[:, p] != ys[:, q]) for i, (p, q) in enumerate(edges)), np.zeros(len(ys)))
    return ys, unary[np.arange(len(unary)), ys].sum(axis=1) - cuts


def image(shape, seed):
    return Superpixels.from_colours(np.random.default_rng(seed).random((*shape, 3)))


@pytest.mark.parametrize("shape", SHAPES)
def test_cuts_are_the_best_labels(shape):
    rng = np.random.default_rng(0)
    for scale in (1e-6, 0.3, 1.0, 1e9):
        for _ in range(20):
            unary = rng.standard_normal((shape[0] * shape[1], 2))
            pairwise = scale * rng.random(neighbours(shape).shape[1])
            ys, values = energies(shape, unary, pairwise)
            found = best_labels(shape, unary, pairwise)
            bound = (np.abs(unary).sum() + pairwise.sum()) * (len(unary) + len(pairwise)) / PRECISION
            assert values[(ys == found).all(axis=1)].item() >= values.max() - bound


@given(seed=st.integers(0, 2**32 - 1), rows=st.integers(1, 25), columns=st.integers(1, 25), scale=st.floats(0.01, 10))
@settings(max_examples=60, deadline=None)
def test_cuts_agree_with_maximum_flows(seed, rows, columns, scale):
    """scipy finds the value of the minimum cut of the same integers."""
    rng = np.random.default_rng(seed)
    first, second = neighbours((rows, columns))
    unary, pairwise = rng.integers(-1000, 1000, rows * columns), rng.integers(0, int(1000 * scale) + 1, len(first))
    network, P = make_network(np.array([first, second]), rows * columns), rows * columns
    y = improve(np.column_stack([np.zeros_like(unary), unary]), pairwise, *network)
    tails = np.concatenate([first, second, np.full(P, P), np.arange(P)])
    heads = np.concatenate([second, first, np.arange(P), np.full(P, P + 1)])
    capacities = np.concatenate([pairwise, pairwise, np.maximum(unary, 0), np.maximum(-unary, 0)]).astype(np.int32)
    graph = csr_matrix((capacities, (tails, heads)), shape=(P + 2, P + 2))
    flow = maximum_flow(graph, P, P + 1).flow_value
    assert unary @ y - pairwise @ (y[first] != y[second]) == np.maximum(unary, 0).sum() - flow


@pytest.mark.parametrize("shape", [(1, 5), (2, 3), (2, 4)])
def test_several_labels_are_within_a_factor_of_two(shape):
    rng, exact, cases = np.random.default_rng(3), 0, 40
    for _ in range(cases):
        unary = rng.standard_normal((shape[0] * shape[1], 3))
        pairwise = rng.random(neighbours(shape).shape[1])
        ys, values = energies(shape, unary, pairwise)
        found = values[(ys == best_labels(shape, unary, pairwise)).all(axis=1)].item()
        least = unary.max(axis=1).sum()  # the bound is on costs, which are at least 0 below this
        assert least - found <= 2 * (least - values.max()) + 1e-9
        exact += found >= values.max() - 1e-9
    assert exact > 0.8 * cases


def test_no_move_improves_many_labels():
    rng, shape = np.random.default_rng(4), (9, 11)
    unary, pairwise = rng.standard_normal((99, 5)), rng.random(neighbours(shape).shape[1])
    y = best_labels(shape, unary, pairwise)
    first, second = neighbours(shape)

    def energy(labels):
        return float(unary[np.arange(99), labels].sum() - pairwise @ (labels[first] != labels[second]))

    for k in range(5):
        for moved in rng.random((100, 99)) < rng.random((100, 1)):
            assert energy(np.where(moved, k, y)) <= energy(y) + 1e-9


@pytest.mark.parametrize(
    ("model", "shape", "potts"),
    [
        *((MODEL, (3, 4), potts) for potts in POTTS_WEIGHTS),
        *((PottsModel(2, (0.5, 3.0)), (2, 4), potts) for potts in POTTS_WEIGHTS),
        (PottsModel(3, (0.5, 1.0, 2.0)), (2, 3), (0.0, 0.0)),  # where each superpixel has its own best label
    ],
)
def test_all_inference_is_exact(model, shape, potts):
    rng, P, K = np.random.default_rng(1), shape[0] * shape[1], model.n_labels
    ys = labellings(P, K)
    for seed in range(4):
        x, truth = image(shape, seed), rng.integers(K, size=P)
        others = [rng.integers(K, size=P) for _ in range(3)]
        weights = np.append(rng.standard_normal((K - 1) * N_FEATURES), potts)
        scores = np.array([model.joint_feature(x, y) @ weights for y in ys])
        losses = np.array([model.loss(truth, y) for y in ys])
        alike = np.array([np.mean([model.similarity(y, other) for other in others]) for y in ys])
        for found, values in [
            (model.infer(x, weights), scores),
            (model.infer_augmented(x, truth, weights), scores + losses),
            (
                model.infer_apart(x, truth, weights, others, task=0.5, similarity=-1.5),
                scores + 0.5 * losses - 1.5 * alike,
            ),
        ]:
            assert values[(ys == found).all(axis=1)].item() == pytest.approx(values.max(), abs=1e-9)


def test_ties_and_zeros():
    x = image((4, 5), 0)
    assert not MODEL.infer(x, np.zeros(N_FEATURES + 2)).any()
    unary = np.array([[0.0, 1.0], [0.0, -1.0]])
    assert best_labels((1, 2), unary, np.array([1.0])).tolist() == [0, 0]  # E is 0 for 11, 10 and 00


def test_joint_feature_and_losses_by_hand():
    x = Superpixels((2, 2), np.arange(8.0).reshape(4, 2), np.array([1.0, 2.0, 4.0, 8.0]))
    y = np.array([1, 0, 1, 1])  # cuts the edges with affinities 1 and 8
    assert MODEL.joint_feature(x, y) == pytest.approx(np.array([0 + 4 + 6, 1 + 5 + 7, -2, -9]) / 4)
    assert MODEL.loss(np.array([0, 0, 1, 1]), y) == 0.25
    assert MODEL.similarity(y, np.array([0, 0, 0, 1])) == 0.5
    three = PottsModel(3, (1.0, 2.0, 4.0))
    assert three.joint_feature(x, np.array([1, 0, 2, 2])) == pytest.approx(np.array([0, 1, 4 + 6, 5 + 7, -3, -13]) / 4)
    assert three.loss(np.array([2, 0, 1, 1]), y) == (4 + 0 + 0 + 0) / 4


def test_rare_classes_weigh_more():
    weights = inverse_frequencies([np.array([0, 0, 0, 1]), np.array([0, 0, 0, 2])], 3)
    assert weights == pytest.approx((8 / 18, 8 / 3, 8 / 3))


def test_colour_features():
    colours = np.array([[1.0, 0.5, 0.0], [0.0, 0.0, 0.0], [0.25, 0.25, 0.25]])
    found = colour_features(colours)
    assert found[0].tolist() == [1, 0, -1, 1, 0, 1, 0, 0, -1, 1, 1, 1]
    assert found[1, -3:].tolist() == [-1, -1, -1]
    assert found[2, -3:].tolist() == [-0.5, -1, -1]
    assert np.abs(colour_features(np.random.default_rng(0).random((500, 3)))).max() <= 1


def test_affinities_fall_with_contrast():
    plain = Superpixels.from_colours(np.full((3, 3, 3), 0.4))
    assert plain.affinities.tolist() == [1.0] * 12
    colours = np.array([[[0.0] * 3, [0.1] * 3, [0.9] * 3]])
    first, second = Superpixels.from_colours(colours).affinities
    assert (first, second) == pytest.approx((np.exp(-0.03 / 0.975), np.exp(-1.92 / 0.975)))
