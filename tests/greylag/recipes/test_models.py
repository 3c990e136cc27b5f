"""Linear models, their files and explanations, and rerankers.

Tests `greylag.rankers.model` and `greylag.rankers.stages`.
"""

from dataclasses import replace
from inspect import signature

import numpy as np
import pytest
from sklearn.base import RegressorMixin
from sklearn.cluster import KMeans
from sklearn.ensemble import IsolationForest, RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.naive_bayes import GaussianNB
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from sklearn.tree import DecisionTreeRegressor
from sklearn.utils import all_estimators

from greylag.base import ModelError, Query, Ranking
from greylag.features.cliques import relevance_models
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import PythonFeature
from greylag.features.spec import FeatureSpec
from greylag.features.spelling import parse_feature, parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.analysis import QueryForm
from greylag.index.positional import PositionalIndex
from greylag.learning.extraction import training_data
from greylag.rankers.explanation import explain
from greylag.rankers.model import RankingModel
from greylag.rankers.stages import EstimatorRanker, ModelRanker, RM3Stage
from greylag.recipes.baselines import values_at_ends
from tests.greylag.diversity import samples
from tests.greylag.learning.samples import collection, rankings, trained
from tests.refusals import refuses


@pytest.mark.parametrize(("profile", "matched"), [("indri", 2), ("galago", 2), ("inquery", 1)])
def test_models_rank_with_their_own_window_profile(tmp_path, profile, matched):
    index = PositionalIndex.from_texts({"near": "new york", "far": "new big york", "none": "york city"})
    feature = FeatureSpec.parse("SD/unordered/BM25-U-2")
    RankingModel((feature,), (1.0,), FeatureParameters(profile=profile)).save(tmp_path / "model.json")
    model = RankingModel.load(tmp_path / "model.json")
    assert model.parameters.profile == profile
    ranked = ModelRanker(model, index)(Ranking("1", "new york", ("none", "far", "near"), np.zeros(3)))
    assert np.count_nonzero(ranked.scores) == matched


def test_files_round_trip_and_do_not_depend_on_threads(tmp_path):
    index = collection()
    for name, jobs in (("one", 1), ("two", 2)):
        trained(index, jobs, retrain=True).save(tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()
    model = RankingModel.load(tmp_path / "one")
    assert model == trained(index, retrain=True)
    assert model.fingerprint == index.fingerprint
    assert model.collection["documents"] == 40
    ranking = rankings(index)[0][0]
    assert ModelRanker(model, index)(ranking) == ModelRanker(trained(index, retrain=True), index)(ranking)


def test_models_shorten_queries_as_in_training(tmp_path):
    """Scores and explanations of a whole topic are those of the query that the model was trained on."""
    index = PositionalIndex.from_texts({"a": "slabs of iron", "b": "cones and slabs", "c": "what cones"})
    form = QueryForm(True, frozenset({"what", "known"}))
    features = (FeatureSpec("FI", "term", "LM"), FeatureSpec("FI", "expansion", "LM"))
    plain = RankingModel(features, (1.0, 0.5), FeatureParameters(fb_docs=2))
    plain.save(tmp_path / "plain.json")
    assert "query_form" not in (tmp_path / "plain.json").read_text()
    replace(plain, query_form=form).save(tmp_path / "model.json")
    model = RankingModel.load(tmp_path / "model.json")
    assert model.query_form == form
    whole, short = (
        Ranking("q", text, ("a", "b", "c"), np.zeros(3)) for text in ("What known slabs? Cones, too.", "slabs?")
    )
    assert ModelRanker(model, index)(whole).scores.tolist() == ModelRanker(plain, index)(short).scores.tolist()
    assert ModelRanker(model, index)(whole).scores.tolist() != ModelRanker(plain, index)(whole).scores.tolist()
    assert ModelRanker(model, index)(whole).query == whole.query
    assert explain(model, index, whole, "b") == explain(plain, index, short, "b")


def test_spellings_of_one_file(tmp_path):
    names = ["run:a.run", "run:./a.run@z", "prior:x/a.tsv", "run:y/b.run", "run:x//b.run"]
    model = RankingModel(tuple(map(parse_feature, names)), (1.0,) * len(names))
    placed = model.with_files({"a.run": "new.run", "a.tsv": "new.tsv", "x/b.run": "c.run"})
    assert list(map(str, placed.features)) == [
        "run:new.run", "run:new.run@z", "prior:new.tsv", "run:y/b.run", "run:c.run"
    ]  # fmt: skip
    assert model.with_files({"./a.run": "new.run"}).features[:2] == placed.features[:2]


RNG = np.random.default_rng(4)
WORDS = ["cat", "dog", "pig", "cow"]
INDEX = PositionalIndex.from_texts({f"d{i}": " ".join(RNG.choice(WORDS, size=9)) for i in range(40)})
EXTRACTOR = FeatureExtractor(INDEX, parse_features("FI/term/BM25,SD/unordered/LM-U-4"))
RANKINGS = [
    Ranking(f"q{i}", " ".join(RNG.choice(WORDS, size=2)), tuple(f"d{i}" for i in range(40)), np.zeros(40))
    for i in range(6)
]
QRELS = {f"q{i}": {f"d{d}": int(RNG.integers(3)) for d in range(40)} for i in range(6)}


@pytest.mark.parametrize("estimator", [LinearRegression(), DecisionTreeRegressor(max_depth=4, random_state=0)])
def test_ranks_by_the_predictions(estimator):
    data = training_data(RANKINGS, QRELS, EXTRACTOR)
    stage = EstimatorRanker(estimator.fit(data.features, data.grades), EXTRACTOR)
    for ranking in RANKINGS:
        predicted = dict(zip(ranking.docids, estimator.predict(EXTRACTOR(ranking)), strict=True))
        result = stage(ranking)
        assert [predicted[docid] for docid in result.docids] == result.scores.tolist()
        assert sorted(result.docids) == sorted(ranking.docids)


def boosted_trees(**options):
    """Make a classifier of LightGBM."""
    lightgbm = pytest.importorskip("lightgbm")
    return lightgbm.LGBMClassifier(n_estimators=5, min_child_samples=2, verbose=-1, **options)


DATA = training_data(RANKINGS, QRELS, EXTRACTOR)


def own_ranking(ranking, scores):
    """Sort by scores, ties in the incoming order, in plain Python."""
    return [ranking.docids[row] for row in sorted(range(len(ranking)), key=lambda row: -scores[row])]


@pytest.mark.parametrize(
    "make",
    [
        LogisticRegression,
        LinearSVC,
        lambda: make_pipeline(StandardScaler(), SVC()),
        GaussianNB,
        lambda: RandomForestClassifier(n_estimators=9, random_state=0),
        boosted_trees,
    ],
)
def test_a_classifier_ranks_by_how_likely_documents_are_relevant(make):
    """Not by its labels, of which nearly all documents have the same."""
    classifier = make().fit(DATA.features, DATA.grades > 1)
    for ranking in RANKINGS:
        features = EXTRACTOR(ranking)
        scores = (
            classifier.decision_function(features)
            if hasattr(classifier, "decision_function")
            else classifier.predict_proba(features)[:, 1]
        )
        result = EstimatorRanker(classifier, EXTRACTOR)(ranking)
        assert list(result.docids) == own_ranking(ranking, scores)
        assert len(set(result.scores.tolist())) > 2


@pytest.mark.parametrize("grades", [(0, 1, 2), (-1, 4, 9)])
@pytest.mark.parametrize("make", [LogisticRegression, boosted_trees])
def test_a_classifier_of_grades_ranks_by_the_expected_grade(make, grades):
    classifier = make().fit(DATA.features, np.array(grades)[DATA.grades])
    for ranking in RANKINGS:
        shares = classifier.predict_proba(EXTRACTOR(ranking))
        result = EstimatorRanker(classifier, EXTRACTOR)(ranking)
        expected = [sum(p * grade for p, grade in zip(row, grades, strict=True)) for row in shares]
        assert dict(zip(result.docids, result.scores, strict=True)) == pytest.approx(
            dict(zip(ranking.docids, expected, strict=True))
        )


def test_raw_scores_of_an_objective_of_ones_own_rank():
    def squared(grades, scores):
        return scores - grades, np.ones(len(grades))

    trees = boosted_trees(objective=squared).fit(DATA.features, DATA.grades > 1)
    raw = trees.predict(EXTRACTOR(RANKINGS[0]), raw_score=True)
    assert list(EstimatorRanker(trees, EXTRACTOR)(RANKINGS[0]).docids) == own_ranking(RANKINGS[0], raw)


class Fixed:
    """Predicts the given values."""

    def __init__(self, *values):
        self.values = values

    def predict(self, X):
        return list(self.values)


GRADES, RELEVANT = DATA.grades, np.where(DATA.grades > 1, "good", "not")
TWO = np.column_stack([GRADES > 0, GRADES > 1])


@pytest.mark.parametrize(
    ("estimator", "reason"),
    [
        (LinearSVC().fit(DATA.features, GRADES), "LinearSVC.predict gives classes"),
        (LogisticRegression().fit(DATA.features, RELEVANT), "LogisticRegression has the classes good, not"),
        (GaussianNB().fit(DATA.features, RELEVANT), "GaussianNB has the classes good, not"),
        (make_pipeline(StandardScaler(), SVC()).fit(DATA.features, RELEVANT), "Pipeline has the classes good, not"),
        (RandomForestClassifier(n_estimators=2).fit(DATA.features, TWO), "RandomForestClassifier has the classes list"),
        (
            RandomForestClassifier(n_estimators=2).fit(DATA.features, GRADES > 9),
            "RandomForestClassifier has the classes ndarray array([False])",
        ),
        (KMeans(2).fit(DATA.features), "KMeans is of the type clusterer"),
        (IsolationForest(n_estimators=2).fit(DATA.features), "IsolationForest is of the type outlier_detector"),
        (StandardScaler().fit(DATA.features), "StandardScaler() predicts nothing"),
        (LogisticRegression(), "LogisticRegression is not fitted"),
        (make_pipeline(StandardScaler(), LinearRegression()), "Pipeline is not fitted"),
        (LogisticRegression, "LogisticRegression"),
        (lambda features: features[:, 0], "function <lambda> predicts nothing"),
        (LinearRegression().fit(DATA.features, TWO), "LinearRegression.predict gave an array of shape (40, 2)"),
        (MLPClassifier(2, max_iter=9).fit(DATA.features, TWO), "MLPClassifier.predict_proba gives probabilities"),
        (
            LinearRegression().fit(DATA.features[:, :1], GRADES),
            "LinearRegression.predict refuses the features of query q0",
        ),
        (Fixed(1.0), "Fixed.predict gave an array of shape (1,) with 1 finite"),
        (Fixed(*[1.0] * 39, float("nan")), "shape (40,) with 39 finite"),
    ],
)
def test_estimators_that_do_not_rank(estimator, reason):
    refuses(lambda: EstimatorRanker(estimator, EXTRACTOR)(RANKINGS[0]), ModelError, reason, "|")


def test_rankers_and_estimators_with_mixins_alone():
    lightgbm = pytest.importorskip("lightgbm")
    trees = lightgbm.LGBMRanker(n_estimators=3, min_child_samples=2, verbose=-1)
    trees.fit(DATA.features, GRADES, group=np.diff(DATA.offsets))
    expected = own_ranking(RANKINGS[0], trees.predict(EXTRACTOR(RANKINGS[0])))
    assert list(EstimatorRanker(trees, EXTRACTOR)(RANKINGS[0]).docids) == expected

    class Own(RegressorMixin):
        def predict(self, X):
            return -X[:, 0]

    first = EXTRACTOR(RANKINGS[0])[:, 0]
    assert list(EstimatorRanker(Own(), EXTRACTOR)(RANKINGS[0]).docids) == own_ranking(RANKINGS[0], -first)


CLEAR = np.repeat([0, 1, 2], 30)
"""Grades of documents, the worst first."""
COLUMNS = np.column_stack([8 * CLEAR, 8 * CLEAR, np.full(90, 9)]) + np.random.default_rng(3).random((90, 3))
COLUMNS[:30, 0] = 0.0  # for those that ask whether a value is 0
LEARN_NOTHING_HERE = {
    "DummyClassifier", "DummyRegressor",
    "CategoricalNB",  # takes each value for a category
    "SGDRegressor",  # its steps are too long for columns of this size
    "RANSACRegressor",  # takes the smaller class for outliers
}  # fmt: skip
PARTS = {
    "estimator": LogisticRegression(), "param_grid": {}, "param_distributions": {"C": [1.0]},
    "estimators": [("a", LogisticRegression()), ("b", GaussianNB())], "steps": [("a", LogisticRegression())],
    "base_estimator": LogisticRegression(), "transformers": [], "transformer_list": [],
}  # fmt: skip
SEED = 0


def constructed(kind):
    """Make an estimator of scikit-learn, with a classifier for what has to be named, or else a regressor."""
    required = [p.name for p in signature(kind).parameters.values() if p.default is p.empty and p.name in PARTS]
    values = {name: PARTS[name] for name in required}
    if issubclass(kind, RegressorMixin):
        values = {name: {"estimators": [("a", LinearRegression())]}.get(name, LinearRegression()) for name in required}
    seeded = {"random_state": SEED} if "random_state" in signature(kind).parameters else {}
    return kind(**values, **seeded)


@pytest.mark.long
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("form", ["text", "two", "three"])
@pytest.mark.parametrize(("name", "kind"), all_estimators())
def test_every_estimator_of_scikit_learn_ranks_best_first_or_is_refused(name, kind, form):
    columns = (PythonFeature(str(n), lambda ranking, n=n: COLUMNS[list(map(int, ranking.docids)), n]) for n in range(3))
    target = {"text": np.where(CLEAR > 0, "good", "not"), "two": CLEAR > 0, "three": CLEAR}[form]
    try:
        estimator = constructed(kind)
        estimator.fit(COLUMNS, target)
    except Exception as error:
        pytest.skip(f"is not fitted to these: {error}")
    ranking = Ranking("q", "cat", tuple(map(str, range(90))), np.zeros(90))
    refusal = ""
    try:
        ranked = EstimatorRanker(estimator, FeatureExtractor(INDEX, tuple(columns)))(ranking)
    except ModelError as error:
        refusal = str(error)
    if refusal:
        assert "\n" not in refusal
        return
    grades = CLEAR[list(map(int, ranked.docids))]
    assert form != "text"
    assert grades[:60].all() or name in LEARN_NOTHING_HERE
    assert form == "two" or (np.diff(grades) <= 0).all() or name in {*LEARN_NOTHING_HERE, "BernoulliNB"}


def test_composes_and_keeps_the_order_of_ties():
    pipeline = (lambda query: Ranking(query.qid, query.text, ("d3", "d1", "d2"), np.zeros(3))) >> EstimatorRanker(
        Fixed(1, 2, 1), EXTRACTOR
    )
    assert pipeline(Query("q", "cat")).docids == ("d1", "d3", "d2")
    assert len(EstimatorRanker(Fixed(), EXTRACTOR)(Ranking("q", "cat", (), np.zeros(0)))) == 0


def test_a_warning_names_documents_that_the_index_lacks(caplog):
    ranked = EstimatorRanker(Fixed(1, 2), EXTRACTOR).run([Ranking("q", "cat", ("d1", "gone", "d2"), np.zeros(3))])
    assert (ranked["q"].docids, ranked["q"].scores.tolist()) == (("d2", "d1", "gone"), [2.0, 1.0, 1.0])
    (message,) = caplog.messages
    assert "gone" in message
    assert "d1" not in message


def test_scores_are_the_sums_of_the_model_and_ties_keep_their_order():
    index = collection()
    specs = parse_features("FI/term/LM,SD/unordered/BM25-U-4")
    model = RankingModel(specs, (0.75, -2.0), FeatureParameters(mu=20.0))
    ranking = Ranking("q", "cat dog", tuple(f"d{i}" for i in range(40)), np.zeros(40))
    features = FeatureExtractor(index, specs, model.parameters)(ranking)
    result = ModelRanker(model, index)(ranking)
    expected = dict(zip(ranking.docids, features @ [0.75, -2.0], strict=True))
    assert result.scores == pytest.approx([expected[docid] for docid in result.docids])
    tied = ModelRanker(RankingModel(specs, (0.0, 0.0)), index)(ranking)
    assert tied.docids == ranking.docids


SAMPLE = samples.index(1, 15)
RANKED = samples.ranking(2, 15)


def test_scores_are_those_of_the_expanded_query():
    parameters = FeatureParameters(k1=1.4, b=0.3, fb_docs=3, fb_terms=4, mu=50.0)
    stage = RM3Stage(SAMPLE, original_weight=0.3, k1=1.4, b=0.3, fb_docs=3, fb_terms=4, mu=50.0)
    terms, probabilities = relevance_models(SAMPLE, RANKED, [parameters])
    model = dict.fromkeys(SAMPLE.query_terms(RANKED.query).tolist(), 0.0)
    for term in SAMPLE.query_terms(RANKED.query).tolist():
        model[term] += 0.3 / len(SAMPLE.query_terms(RANKED.query))
    for term, probability in zip(terms.tolist(), probabilities[:, 0].tolist(), strict=True):
        model[term] = model.get(term, 0.0) + 0.7 * probability
    scores = np.zeros(len(RANKED))
    for term, weight in model.items():
        if term >= 0:
            one = Ranking("q", SAMPLE.terms_of(np.array([term]))[0], RANKED.docids, RANKED.scores)
            scores += weight * FeatureExtractor(SAMPLE, parse_features("FI/term/BM25"), parameters)(one)[:, 0]
    ranked = stage(RANKED)
    found = dict(zip(ranked.docids, ranked.scores.tolist(), strict=True))
    assert [found[docid] for docid in RANKED.docids] == pytest.approx(scores.tolist())


def test_the_query_alone_is_bm25():
    bm25 = FeatureExtractor(SAMPLE, parse_features("FI/term/BM25"))(RANKED)[:, 0]
    assert RM3Stage(SAMPLE, original_weight=1.0)(RANKED).docids == RANKED.rescore(bm25).docids
    assert RM3Stage(SAMPLE, original_weight=0.0)(RANKED).docids != RANKED.rescore(bm25).docids


def test_values_at_the_ends_of_what_was_tried_are_told_unless_nothing_is_beyond():
    grid = {"k1": (0.0, 0.9, 2.0), "b": (0.0, 0.4, 1.0), "mu": (500.0,), "original_weight": (0.0, 0.5, 1.0)}
    for inside in ({"k1": 0.0, "b": 0.0, "original_weight": 0.0}, {"k1": 0.9, "b": 1.0, "original_weight": 1.0}):
        assert values_at_ends(grid, {**inside, "mu": 500.0}) == {}
    assert values_at_ends(grid, {"k1": 2.0, "b": 0.4}) == {"k1": (0.0, 2.0)}
    assert values_at_ends({"k1": (0.3, 0.9)}, {"k1": 0.3}) == {"k1": (0.3, 0.9)}
