"""SVM-div: ranking, and training by its recipe."""

import logging
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest

from greylag.base import Pipeline, Ranking, Run
from greylag.diversity import CSSVM, PRESETS, CoverageModel, RandomOrder, SVMDiv
from greylag.index.positional import PositionalIndex
from greylag.learning import CuttingPlane
from greylag.recipes import C_GRID, DiversityRecipe
from greylag.recipes.diversity import mean_loss
from greylag_papers.schiegg_2016.coulomb import Coulomb
from tests.greylag.diversity import samples

N = 15


@pytest.fixture(scope="module")
def index():
    return samples.index(1, N)


def test_uses_titles(index):
    titles = samples.texts(1, N)[1]
    weights = [1.0 if name.startswith("title") else 0.0 for name in samples.MODEL.features.names]
    model = replace(samples.MODEL, titles=True, weights=(tuple(weights),))
    ranking = samples.ranking(6, N)
    assert SVMDiv(model, index, titles=titles)(ranking).docids != ranking.docids
    # A model trained without titles ignores them.
    assert SVMDiv(replace(model, titles=False), index, titles=titles)(ranking).docids == ranking.docids


def test_cssvm_fuses_its_members(index):
    """Ties keep the incoming order."""
    stage = CSSVM(samples.ENSEMBLE, index, depth=12, k=5)
    for seed in range(8):
        ranking = samples.ranking(seed, N)
        members = [SVMDiv(model, index, depth=12, k=5)(ranking) for model in samples.ENSEMBLE.members]
        assert len({member.docids for member in members}) == 3
        score = {d: sum(Fraction(1, 61 + member.docids.index(d)) for member in members) for d in ranking.docids}
        fused = stage(ranking)
        assert (fused.qid, fused.query) == (ranking.qid, ranking.query)
        assert fused.docids == tuple(sorted(ranking.docids, key=lambda d: (-score[d], ranking.docids.index(d))))
        assert fused.scores.tolist() == [pytest.approx(float(score[d]), rel=1e-14) for d in fused.docids]
        assert fused.docids[12:] == ranking.docids[12:]


def test_an_ensemble_of_one_is_svmdiv(index):
    ranking = samples.ranking(7, N)
    assert CSSVM(samples.MODEL, index)(ranking).docids == SVMDiv(samples.MODEL, index)(ranking).docids
    empty = Ranking("q", "", (), np.empty(0))
    assert CSSVM(samples.ENSEMBLE, index)(empty) == empty
    assert isinstance(RandomOrder(1) >> CSSVM(samples.ENSEMBLE, index), Pipeline)


@pytest.fixture(scope="module")
def collection():
    """Queries whose documents each cover one of six subtopics, which their words reveal.

    Each subtopic has three words that about half of its documents contain. Every document has rare words, most of them
    in the largest subtopic, which misleads methods that count words.
    """
    rng = np.random.default_rng(1)
    contents, rankings, qrels = {}, [], {}
    for q in range(14):
        judged = {f"s{s}": {} for s in range(6)}
        for i in range(30):
            s = min(int(rng.geometric(0.35)) - 1, 5)
            own = [f"q{q}s{s}w{w}" for w in range(3) if rng.random() < 0.6]
            rare = [f"q{q}d{i}r{r}" for r in range(int(rng.integers(0, 8)) + 6 * (s == 0))]
            contents[f"q{q}d{i}"] = " ".join([*own * 2, *rare])
            judged[f"s{s}"][f"q{q}d{i}"] = 1
        qrels[f"q{q}"] = judged
        rankings.append(Ranking(f"q{q}", "", tuple(f"q{q}d{i}" for i in range(30)), np.arange(30.0, 0, -1)))
    return PositionalIndex.from_texts(contents), Run(tuple(rankings)), qrels


def few(run, number):
    return Run(run.rankings[:number])


@pytest.fixture(scope="module")
def examples(collection):
    index, rankings, qrels = collection
    return DiversityRecipe(CuttingPlane()).prepare(rankings, qrels, index).args


def test_learns_which_words_matter(collection, examples):
    index, rankings, _ = collection
    make, known = examples
    qids = list(known)
    training, test = ({qid: known[qid] for qid in part} for part in (qids[:8], qids[8:]))
    fitted = DiversityRecipe(CuttingPlane(C=10.0), k=4).weigh(make, training)
    model = fitted.model
    assert model.fingerprint == index.fingerprint
    assert model.provenance["queries"] == [*fitted.queries] == qids[:8]
    assert fitted.chosen_on == ()
    assert str(fitted).startswith(f"svmdiv on 8 queries: C 10, objective {model.provenance['objective']:.6g}, gap ")
    assert model.provenance["C"] == 10.0
    assert model.provenance["method"] == "svmdiv"
    assert model.provenance["gap"] <= 10.0 * 1e-3 + 1e-9
    weights = np.array(model.weights[0])
    learned = mean_loss(CoverageModel(4), test.values(), weights)
    counting = np.array([1.0 if name == "count>=1 in 0.001" else 0.0 for name in model.features.names])
    assert learned < 0.5 * mean_loss(CoverageModel(4), test.values(), counting)
    # The stage picks what the model infers.
    for ranking in rankings.rankings[8:]:
        x, _ = known[ranking.qid]
        picked = tuple(ranking.docids[i] for i in CoverageModel(4).infer(x, weights))
        assert SVMDiv(model, index, k=4)(ranking).docids[:4] == picked


def test_validation_chooses_the_cost(examples):
    make, known = examples
    training = dict(list(known.items())[:5])
    validation = dict(list(known.items())[5:9])
    fitted = DiversityRecipe(CuttingPlane(C=123.0), k=4).weigh(make, training | validation, list(validation))
    model = fitted.model
    assert model.provenance["C"] in C_GRID
    assert model.provenance["validation"] == [*fitted.chosen_on] == list(validation)
    assert str(fitted).startswith(f"svmdiv on 5 queries, C chosen on 4 more: C {model.provenance['C']:g}, ")
    solutions = dict(CuttingPlane().fit_path(CoverageModel(4), list(training.values()), C_GRID))
    losses = [mean_loss(CoverageModel(4), validation.values(), solution.weights) for solution in solutions.values()]
    assert mean_loss(CoverageModel(4), validation.values(), np.array(model.weights[0])) == min(losses) < max(losses)
    assert C_GRID[int(np.argmin(losses))] == model.provenance["C"]


def test_the_loss_of_an_ensemble_is_pick_best(examples):
    _, known = examples
    members = np.random.default_rng(3).standard_normal((3, PRESETS["svmdiv"].n_features))
    least = [min(truth.loss(CoverageModel(4).infer(x, w)) for w in members) for x, truth in known.values()]
    assert mean_loss(CoverageModel(4), known.values(), members) == pytest.approx(np.mean(least))
    assert np.mean(least) < min(mean_loss(CoverageModel(4), known.values(), w) for w in members)


def test_ensembles_are_trained_and_validated(examples, monkeypatch):
    make, known = examples
    training = dict(list(known.items())[:3])
    validation = dict(list(known.items())[3:9])
    learner, grid = Coulomb(M=3, alpha=2.0, seed=4), (0.01, 1.0, 100.0)
    monkeypatch.setattr("greylag.recipes.diversity.C_GRID", grid)
    found = {C: replace(learner, C=C).fit(CoverageModel(4), list(training.values())) for C in grid}
    losses = [mean_loss(CoverageModel(4), validation.values(), found[C].weights) for C in grid]
    recipe = DiversityRecipe(learner, k=4, validate=True)
    model = recipe.weigh(make, training | validation, list(validation)).model
    best = grid[int(np.argmin(losses))]
    assert np.array(model.weights).tobytes() == found[best].weights.tobytes()
    made = {"M": 3, "alpha": 2.0, "assignment": "all", "seed": 4, "C": best, "mean_angle": found[best].mean_angle}
    assert {key: model.provenance[key] for key in made} == made
    assert replace(recipe, learner=replace(learner, C=best)).weigh(make, training).model.weights == model.weights
    again = replace(recipe, retrain=True).weigh(make, training | validation, list(validation))
    every = replace(recipe, learner=replace(learner, C=best)).weigh(make, training | validation)
    assert again.model.weights == every.model.weights != model.weights
    assert (again.chosen_on, again.queries) == ((), every.queries)


def test_queries_without_a_covered_subtopic_are_dropped(collection, caplog):
    index, rankings, qrels = collection
    partial = {"q0": qrels["q0"], "q1": {}, "q2": {"s": {"q2d0": 0}}, "q3": {"s": {"q3d29": 1}}}
    with caplog.at_level(logging.WARNING, "greylag"):
        _, examples = DiversityRecipe(CuttingPlane(), depth=20).prepare(few(rankings, 5), partial, index).args
    assert list(examples) == ["q0"]
    assert len(examples["q0"][0]) == 20
    assert "dropped 2 queries without judgements: q1, q4" in caplog.text
    assert "dropped 2 queries in which no candidate covers a subtopic: q2, q3" in caplog.text


def test_fewer_candidates_than_k(collection):
    index, rankings, qrels = collection
    model = DiversityRecipe(CuttingPlane(), depth=3).fit(few(rankings, 3), qrels, index).model
    assert np.isfinite(model.weights).all()
    assert len(SVMDiv(model, index, k=5)(rankings.rankings[4].head(3))) == 3


@pytest.mark.parametrize("kind", [SVMDiv, CSSVM])
def test_as_many_documents_are_diversified_as_were_trained_on(collection, kind, caplog):
    index, rankings, qrels = collection
    model = DiversityRecipe(CuttingPlane(), k=3, depth=8).fit(few(rankings, 3), qrels, index).model
    stage, ranking = kind(model, index), rankings.rankings[4]
    assert (model.depth, stage.depth) == (8, 8)
    assert stage(ranking).docids[8:] == ranking.docids[8:]
    assert stage(ranking) == kind(model, index, depth=8)(ranking)
    assert not caplog.records
    deeper = kind(model, index, depth=20)
    assert [record.getMessage() for record in caplog.records] == [
        "the model was trained on the top 8 documents, and is to diversify 20"
    ]
    assert deeper(ranking).docids[8:] != ranking.docids[8:]
