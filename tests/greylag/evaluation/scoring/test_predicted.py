"""Prediction-powered inference against its formula, closed forms, and simulations whose means are known."""

import json
import math
from functools import partial

import numpy as np
import pytest
from scipy import stats

from greylag.base import ParameterError, Ranking, Run
from greylag.evaluation import correct_by_people, evaluate, parse_measure
from greylag.evaluation.scoring.predicted import (
    Corrected,
    Corrections,
    check_coverage,
    check_predictions,
    evaluate_with_predictions,
)
from tests.refusals import refuses

TRIALS = 2000
BAND = 4 * math.sqrt(0.95 * 0.05 / TRIALS)


def draw(kind, size, rng):
    """Scores by people, whose mean is 0, and by predictions."""
    if kind == "skewed":
        scores, errors = rng.exponential(1, (2, size)) - 1
        return scores, 1 + 0.5 * scores + 0.5 * errors
    scores = rng.normal(0, 1, size)
    if kind == "good":
        return scores, scores + rng.normal(0, 0.4, size)
    if kind == "biased":
        return scores, 2 + 0.5 * scores + rng.normal(0, 0.3, size)
    return scores, rng.normal(0, 1, size)


def simulate(kind, n, more=100):
    rng, found = np.random.default_rng(n), []
    for _ in range(TRIALS):
        scores, guesses = draw(kind, n + more, rng)
        found.append(correct_by_people(scores[:n], guesses[:n], guesses[n:]))
    return found


def both(measure, found):
    """The mean of a measure of the corrected intervals, and of those by people alone."""
    return (np.mean([measure(*getattr(one, name)) for one in found]) for name in ("interval", "people_interval"))


def width(low, high):
    return high - low


@pytest.mark.parametrize("n", [8, 10, 25])
def test_intervals_of_skewed_scores_hold_as_often_as_students(n):
    found = simulate("skewed", n)
    covered, alone = both(lambda low, high: low <= 0 <= high, found)
    assert covered > alone - 0.01
    assert np.mean([one.worth for one in found]) > n


@pytest.mark.parametrize("n", [8, 10, 25, 50, 100])
@pytest.mark.parametrize("kind", ["good", "biased", "useless"])
def test_95_percent_of_the_intervals_contain_the_mean(kind, n):
    """Also where predictions are off by two standard deviations; and the p of a mean of 0 is below .05 in 5 %."""
    found = simulate(kind, n)
    covered, _ = both(lambda low, high: low <= 0 <= high, found)
    assert 0.95 - BAND < covered < 0.95 + (BAND if n > 10 else 0.02 + BAND)
    assert np.mean([one.p < 0.05 for one in found]) == pytest.approx(1 - covered, abs=1e-9)
    assert np.mean([one.corrected for one in found]) == pytest.approx(0, abs=4 / math.sqrt(n * TRIALS))
    wide, alone = both(width, found)
    if kind == "useless":
        assert wide < (1.02 if n > 10 else 1.1) * alone
        assert np.mean([one.worth for one in found]) > (0.97 if n > 10 else 0.9) * n
    else:
        assert wide < 0.85 * alone
        assert np.median([one.worth for one in found]) > 1.5 * n
        assert np.var([one.corrected for one in found]) < 0.75 * np.var([one.people for one in found])


@pytest.mark.parametrize("seed", range(10))
def test_it_is_the_formula_of_prediction_powered_inference(seed):
    """With its weight, from NumPy's regression and shrunk by F, which SciPy's t of the correlation gives."""
    rng = np.random.default_rng(seed)
    scores, guesses = draw("biased", 90, rng)
    y, f, more = scores[:30], guesses[:30], guesses[30:]
    found = correct_by_people(y, f, more)
    fit = stats.linregress(f, y)
    slope = fit.slope * (1 - (fit.stderr / fit.slope) ** 2)
    assert found.weight == pytest.approx(slope * 60 / 90)
    assert found.corrected == pytest.approx(y.mean() + found.weight * (more.mean() - f.mean()))
    assert found.people == y.mean()
    assert found.predicted == pytest.approx(guesses.mean())
    alone = stats.ttest_1samp(y, 0).confidence_interval(0.95)
    assert found.people_interval == pytest.approx((alone.low, alone.high))
    line = np.vander(f, 2)  # the hat matrix and the line's value at the mean of all predictions, by least squares
    leverages = np.diag(line @ np.linalg.pinv(line))
    weights = np.array([guesses.mean(), 1.0]) @ np.linalg.pinv(line)
    residuals = y - y.mean() - slope * (f - f.mean())
    parts = np.array(
        [((weights * residuals / (1 - leverages)) ** 2).sum(), slope**2 * guesses.var(ddof=1) / 90]  # HC3
    )
    freedom = parts.sum() ** 2 / (parts**2 / (28, 89)).sum()  # Satterthwaite's
    assert found.interval == pytest.approx(stats.t.interval(0.95, freedom, found.corrected, parts.sum() ** 0.5))
    if found.worth < 90:  # a whole number of topics below and one above are as wide, or wider and narrower
        half = (found.interval[1] - found.interval[0]) / 2
        ends = [
            stats.t.ppf(0.975, m - 1) * y.std(ddof=1) / m**0.5
            for m in (math.floor(found.worth), math.floor(found.worth) + 1)
        ]
        assert ends[0] + 1e-12 >= half >= ends[1] - 1e-12
    shifted = correct_by_people(y, 3 * f + 7, 3 * more + 7)
    assert shifted.corrected == pytest.approx(found.corrected)
    assert shifted.interval == pytest.approx(found.interval)


def test_predictions_that_are_useless_leave_students_interval():
    """Also those that say the contrary, or the same of all topics."""
    y = np.random.default_rng(0).normal(0.3, 1, 20)
    for f in (-y, np.zeros(20), 1.0 * (y == y.max())):  # or the same of all but one
        found = correct_by_people(y, f, np.arange(50.0))
        expected = stats.ttest_1samp(y, 0)
        interval = expected.confidence_interval(0.95)
        assert (found.weight, found.worth, found.corrected) == (0, pytest.approx(20), y.mean())
        assert found.interval == pytest.approx((interval.low, interval.high))
        assert found.p == pytest.approx(expected.pvalue)


def test_perfect_predictions_are_the_interval_of_all_topics():
    scores = np.random.default_rng(1).normal(0.3, 1, 120)
    found = correct_by_people(scores[:20], scores[:20], scores[20:])
    expected = stats.ttest_1samp(scores, 0)
    assert found.corrected == pytest.approx(scores.mean())
    assert found.interval == pytest.approx(tuple(expected.confidence_interval(0.95)))
    assert found.p == pytest.approx(expected.pvalue)


@pytest.mark.parametrize("score", [0.1, -0.5, 1.0, 0.0])
@pytest.mark.parametrize("n", [8, 30])
def test_equal_scores_have_no_interval_and_the_exact_p(n, score):
    """Whatever was predicted; of scores of 0 there is nothing to test."""
    for guesses in (np.random.default_rng(n).random(n + 9), np.full(n + 9, 0.1)):
        found = correct_by_people(np.full(n, score), guesses[:n], guesses[n:])
        assert (found.corrected, found.weight, found.worth) == (pytest.approx(score), 0, n)
        assert found.interval == found.people_interval == (None if score else (0, 0))
        assert found.p == (2 / 2**n if score else 1)


def test_a_run_that_ranks_none_of_the_topics_that_people_judged_is_refused():
    people = {f"q{n}": {"a": n % 2, "b": 1} for n in range(9)}
    more = {**people, "q9": {"a": 1, "b": 0}}
    ranked = Run(tuple(Ranking(qid, "", ("a", "b"), [2.0, 1.0]) for qid in more))
    for absent in (Run(()), ranked.head(0), Run((ranked["q9"],))):
        found = [{"a": evaluate(ranked, q, ["AP"]), "b": scored(absent, q)} for q in (people, more)]
        assert evaluate_with_predictions(*found).means[1].estimate.people == 0
        call = partial(evaluate_with_predictions, *found, "a")
        refuses(call, ParameterError, "b did not run|people judged|leave it out", "|")


def scored(run, qrels):
    """The scores of a run, which may have none of the topics."""
    return evaluate(run.select_queries(qrels), qrels, ["AP"])


def test_a_sentence_without_an_interval_leaves_it_out():
    found = correct_by_people(np.full(9, 0.5), np.zeros(9), np.zeros(9))
    row = Corrected("a", "b", parse_measure("AP"), found, 0.5)
    shown = Corrections(9, 9, (), (row,))
    assert shown.sentences == ["a minus b: AP is +0.5000. 9 judged and 9 predicted topics are worth 9 judged ones."]
    table = shown.tables[1]
    assert dict(zip(table.header, table.rows[0], strict=True))["low"] is None
    assert json.loads(json.dumps(shown.to_dict(), allow_nan=False))["differences"][0]["estimate"]["interval"] is None


@pytest.mark.parametrize(("n", "more"), [(40, 40), (100, 100), (200, 400)])
@pytest.mark.parametrize(("kind", "squared"), [("good", 1 / 1.16), ("biased", 0.25 / 0.34)])
def test_worth_is_the_number_of_topics_of_double_sampling(n, more, kind, squared):
    """Its variance is s^2 ((1 - r^2) / n + r^2 / (n + N)), with r the correlation of both scores (Cochran 12.7)."""
    expected = 1 / ((1 - squared) / n + squared / (n + more))
    worth = np.median([one.worth for one in simulate(kind, n, more)])
    assert worth == pytest.approx(expected, rel=0.06)


@pytest.mark.parametrize("kind", ["good", "biased", "useless", "skewed"])
def test_worth_says_whether_the_interval_is_narrower(kind):
    """Above n exactly if it is narrower than that by people alone, and never more than all topics."""
    found = [one for n in (8, 20) for one in simulate(kind, n, 20)[:500]]
    for one, n in zip(found, [8] * 500 + [20] * 500, strict=True):
        narrower = width(*one.interval) < width(*one.people_interval) * (1 - 1e-12)
        assert (one.worth > n + 1e-9) == narrower
        assert one.worth <= n + 20
    assert max(one.worth for one in found) == (40 if kind == "good" else pytest.approx(30, abs=10))


def test_predictions_of_fewer_documents_are_right_too():
    """If documents lack predictions on all topics alike, intervals hold as often; where people judged, they do not."""
    rng, covered = np.random.default_rng(3), {"alike": 0, "there": 0}
    for _ in range(TRIALS):
        truth = rng.random((125, 10)) < 0.4  # the relevance of the top 10 documents
        seen = rng.random((125, 10)) < 0.5
        seen_there = seen | (np.arange(125) >= 25)[:, None]
        for name, predicted in (("alike", seen), ("there", seen_there)):
            guesses = (truth & predicted).mean(axis=1)
            low, high = correct_by_people(truth.mean(axis=1)[:25], guesses[:25], guesses[25:]).interval
            covered[name] += low <= 0.4 <= high
    assert covered["alike"] / TRIALS == pytest.approx(0.95, abs=BAND)
    assert covered["there"] / TRIALS < 0.8


def judgements(topics, seed=0):
    """Two runs, people's judgements of the first ten topics, and predicted ones, which are lenient, of all."""
    rng = np.random.default_rng(seed)
    docids = tuple(f"d{i}" for i in range(30))
    truth = {str(q): {d: int(rng.random() < 0.3) for d in docids} for q in range(topics)}
    predicted = {q: {d: int(g or rng.random() < 0.15) for d, g in judged.items()} for q, judged in truth.items()}

    def run(help_):
        scores = {q: rng.random(30) + help_ * np.array([*truth[q].values()]) for q in truth}
        return Run(tuple(Ranking.sort(q, "", docids, scores[q]) for q in truth))

    return {"plain": run(0.0), "better": run(0.6)}, {str(q): truth[str(q)] for q in range(10)}, predicted


def test_runs_and_their_difference():
    runs, people, predicted = judgements(60)
    measures = ["AP", "P@5"]
    by_people = {name: evaluate(run, people, measures) for name, run in runs.items()}
    by_machine = {name: evaluate(run, predicted, measures) for name, run in runs.items()}
    found = evaluate_with_predictions(by_people, by_machine, "plain")
    assert (found.topics, found.others) == (10, 50)
    assert [(one.run, str(one.measure)) for one in found.means] == [
        (name, measure) for measure in measures for name in ("plain", "better")
    ]
    ap, p5 = found.differences
    assert (ap.run, ap.baseline) == ("better", "plain")
    assert ap.estimate.people == pytest.approx((by_people["better"].means - by_people["plain"].means)[0])
    assert ap.estimate.predicted == pytest.approx((by_machine["better"].means - by_machine["plain"].means)[0])
    expected = correct_by_people(
        (by_people["better"].values - by_people["plain"].values)[:, 1],
        (by_machine["better"].values - by_machine["plain"].values)[:10, 1],
        (by_machine["better"].values - by_machine["plain"].values)[10:, 1],
    )
    assert p5.estimate == expected
    smaller, larger = sorted((ap.estimate.p, p5.estimate.p))
    assert sorted((ap.corrected_p or 0, p5.corrected_p or 0)) == pytest.approx(
        [min(1, 2 * smaller), max(larger, min(1, 2 * smaller))]
    )
    assert str(found)


def test_of_many_runs_the_table_stands_for_sentences():
    runs, people, predicted = judgements(60)
    many = {f"r{n}": runs["plain"] for n in range(5)}
    scores = [{name: evaluate(run, qrels, ["AP"]) for name, run in many.items()} for qrels in (people, predicted)]
    found = evaluate_with_predictions(*scores)
    assert found.sentences == []
    assert found.tables[0].caption.startswith("10 topics judged by people, 50 more")
    assert len(found.tables[0].rows) == 5
    assert len(evaluate_with_predictions(*({n: s[n] for n in ("r0", "r1")} for s in scores)).sentences) == 2


_, PEOPLE, PREDICTED = judgements(20)


@pytest.mark.parametrize(
    ("people", "predicted", "parts"),
    [
        (PEOPLE, {q: j for q, j in PREDICTED.items() if q != "3"}, "1 10 3"),
        (PEOPLE, {q: PREDICTED[q] for q in PEOPLE}, "no topic that people did not judge"),
        (PEOPLE, {**PREDICTED, **PEOPLE}, "nothing to correct by"),
        (PEOPLE, {**PREDICTED, "4": {"x": 1}}, "4 none"),
        (PEOPLE, {q: {d: 3 * g for d, g in j.items()} for q, j in PREDICTED.items()}, "up to 1, 3"),
        ({q: PEOPLE[q] for q in "012"}, PREDICTED, "3 8"),
    ],
)
def test_judgements_that_cannot_be_corrected(people, predicted, parts):
    refuses(lambda: check_predictions(people, predicted), ParameterError, parts)


def test_scales_that_may_differ_are_pointed_out():
    _, people, predicted = judgements(20)
    assert check_predictions(people, predicted) == []
    graded = {q: {d: 2 * g for d, g in j.items()} for q, j in people.items()}
    [warning] = check_predictions(graded, {q: {d: 3 * g for d, g in j.items()} for q, j in predicted.items()})
    assert "people's grades go up to 2, predicted ones to 3" in warning


def test_predictions_of_other_pools_are_pointed_out():
    """On the topics of people, the documents that they judged; on others, the top of the run."""
    runs, people, predicted = judgements(20)
    assert check_coverage("plain", runs["plain"], people, predicted) == []
    tops = {q: {d: predicted[q][d] for d in [*predicted[q]][:15]} for q in people}
    [warning] = check_coverage("plain", runs["plain"], people, {**predicted, **tops})
    assert "100% on others" in warning
