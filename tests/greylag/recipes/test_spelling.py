"""Recipes by their spelling, and training with shortened queries."""

from dataclasses import replace

import pytest

from greylag.base import ParameterError, Ranking, Run
from greylag.features.evidence import Score
from greylag.features.spec import candidate_pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.analysis import STOP_WORDS, QueryForm
from greylag.learning.coordinate_ascent import CoordinateAscent
from greylag.learning.greedy import GreedySelection
from greylag.learning.preselect import MMRPreselection
from greylag.recipes import AutomaticRecipe, BaselineRecipe, MRFRecipe, baselines, train
from greylag.recipes.baselines import GRID, TunedMRFRecipe
from greylag.recipes.rm3 import RM3Recipe
from greylag.recipes.sources import FeatureSources
from greylag.recipes.spelling import MODEL_KINDS, model_files, parse_model
from tests.greylag.learning.samples import collection, rankings
from tests.refusals import refuses

SD = candidate_pool("sd")


@pytest.mark.parametrize(
    ("text", "recipe"),
    [
        ("mrf", MRFRecipe(SD, GreedySelection("AP"))),
        (
            "mrf(max_features=3,mu=500,profile=galago)",
            MRFRecipe(
                SD, GreedySelection("AP", max_features=3), parameters=FeatureParameters(mu=500, profile="galago")
            ),
        ),
        ("mrf(tune=true)", TunedMRFRecipe(MRFRecipe(SD, GreedySelection("AP")))),
        (
            "automatic(depth=50,folds=3,translate=false)",
            AutomaticRecipe(sources=FeatureSources(depth=50), folds=3, translate=False),
        ),
    ],
)
def test_recipes(text, recipe):
    assert parse_model(text, pool="sd") == (recipe, QueryForm())


def test_baselines_and_the_values_to_try():
    recipe = BaselineRecipe(baselines.BM25, objective="nDCG@10", grid={**GRID, "k1": (0.6, 2.0), "b": (1.0,)})
    assert parse_model("bm25(k1=[0.6,2],b=1)", "nDCG@10").recipe == recipe
    recipe = RM3Recipe(grid={**GRID, "fb_docs": (3,), "original_weight": (0.2, 0.4)})
    assert parse_model("rm3(fb_docs=3,original_weight=[0.2,0.4])").recipe == recipe


def test_learners_and_preselection():
    features = parse_features("score,FI/term/LM")
    recipe, _ = parse_model("coordinate-ascent(b=1,restarts=5,seed=2,preselect=1)", "RR", features=features)
    learner = CoordinateAscent("RR", restarts=5, seed=2)
    assert recipe == MRFRecipe(features, learner, parameters=FeatureParameters(b=1.0), preselection=MMRPreselection(1))


@pytest.mark.parametrize("name", [name for name, kind in MODEL_KINDS.items() if not kind.diversifies])
def test_every_model_takes_its_defaults(name):
    """What the help shows as defaults is what a model without options has."""
    if name == "lambdamart":
        pytest.importorskip("lightgbm")
    options = MODEL_KINDS[name].options
    given = {key: option.default for key, option in options.items() if option.default not in (None, ())}
    spelt = ",".join(
        f"{key}=[{','.join(map(str, value))}]" if isinstance(value, tuple) else f"{key}={str(value).lower()}"
        for key, value in given.items()
    )
    assert parse_model(f"{name}({spelt})", "nDCG@5") == parse_model(name, "nDCG@5")
    assert str(parse_model(name, "nDCG@5").recipe.measure) == "nDCG@5"


@pytest.mark.parametrize("name", [name for name, kind in MODEL_KINDS.items() if kind.pool])
def test_features_and_pools_of_every_model_that_takes_any(name):
    """The full pool, or features in its place; sd and features for the two that have features of their own."""
    if name == "lambdamart":
        pytest.importorskip("lightgbm")

    def given(**asked):
        recipe = parse_model(name, **asked).recipe
        return (recipe.sources.pool, recipe.sources.more) if own else tuple(recipe.features)

    own, score = name in ("automatic", "lambdamart"), (Score(),)
    assert given() == (("sd", ()) if own else candidate_pool("full"))
    assert given(features=score) == (("sd", score) if own else score)
    assert given(pool="fd") == (("fd", ()) if own else candidate_pool("fd"))
    assert given(pool="fd", features=score) == (("fd", score) if own else (*candidate_pool("fd"), *score))


@pytest.mark.parametrize(
    ("text", "more", "reason"),
    [
        ("svm", {}, "unknown model 'svm'"),
        ("bm25", {"pool": "sd"}, "bm25 takes no pool"),
        ("bm25", {"features": (Score(),)}, "bm25 takes no features"),
        ("automatic(preselect=3)", {}, "automatic has no option 'preselect'"),
        ("automatic(first_sentence=true)", {}, "automatic has no option 'first_sentence'"),
        ("mrf(restarts=2)", {}, "'restarts': use "),
        ("mrf(titles=t)", {}, "'titles'"),
        ("mrf(max_features=0)", {}, "max_features"),
        ("mrf(mu=1,mu=2)", {}, "mu twice"),
        ("mrf(tune=true,b=0.2)", {}, "b and tune=true"),
        ("mrf(preselect=0)", {}, "at least 1"),
        ("mrf(preselect_weight=1)", {}, "preselect_weight needs preselect"),
        ("coordinate-ascent(seed=-1)", {}, "seed"),
        ("listwise(penalty=0)", {}, "penalty"),
        ("bm25(mu=3)", {}, "'mu': use k1, b"),
        ("bm25(k1=[3,x])", {}, ": it must be a number"),
        ("bm25(k1=1_0)", {}, ": it must be a number"),
        ("bm25(b=3)", {}, "b is 3.0"),
        ("rm3(fb_docs=0)", {}, "fb_docs is 0"),
        ("lambdamart(mu=20)", {}, "'mu': use depth, trees"),
    ],
)
def test_mistakes(text, more, reason):
    refuses(lambda: parse_model(text, **more), ParameterError, reason, "|")


def test_files():
    assert model_files("mrf(mu=3,stop_words=a/b.txt)") == ["a/b.txt"]
    assert model_files("mrf(stop_words=lucene)") == model_files("mrf") == []


def test_queries_are_shortened_in_training_and_in_the_model(tmp_path):
    """As if the topics had been short."""
    index = collection()
    ranked, qrels = rankings(index)
    words = tmp_path / "words"
    words.write_text("please\n")
    recipe, form = parse_model(f"mrf(max_features=1,first_sentence=true,stop_words={words})", pool="sd")
    assert form == QueryForm(first_sentence=True, stop_words=frozenset(["please"]))
    long = [Ranking(one.qid, f"{one.query} please. Thank you.", one.docids, one.scores) for one in ranked]
    short = [Ranking(one.qid, f"{one.query} .", one.docids, one.scores) for one in ranked]
    result = train(Run(tuple(long)), qrels, index, recipe, folds=2, query_form=form)
    learned, held_out, scores = result.model, result.held_out, result.scores
    expected = train(Run(tuple(short)), qrels, index, recipe, folds=2)
    assert learned.query_form == form
    assert replace(learned, query_form=QueryForm()) == expected.model
    assert [one.docids for one in held_out.run.rankings] == [one.docids for one in expected.held_out.run.rankings]
    assert {name: one.means for name, one in scores.items()} == {
        name: one.means for name, one in expected.scores.items()
    }
    assert parse_model("bm25(stop_words=lucene)").query_form.stop_words == STOP_WORDS
