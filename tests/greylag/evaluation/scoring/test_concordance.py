"""Kappa against scikit-learn's, tau-AP against its definition over all orders of ties, and both in evaluations."""

from itertools import pairwise, permutations

import numpy as np
import pytest
from scipy import stats
from sklearn.metrics import cohen_kappa_score

from greylag.base import ParameterError
from greylag.evaluation import compare_qrels, evaluate, read_qrels, read_run
from greylag.evaluation.scoring.concordance import cohen_kappa, compare_judgements, compare_measures, correlate, tau_ap
from tests.refusals import refuses


@pytest.mark.parametrize("seed", range(6))
def test_kappa_is_scikit_learns(seed):
    first, second = np.random.default_rng(seed).integers(0, 4, (2, 50))
    assert cohen_kappa(first, second) == pytest.approx(cohen_kappa_score(first, second, weights="quadratic"))
    relevant = (first > 1).astype(int), (second > 1).astype(int)
    assert cohen_kappa(*relevant) == pytest.approx(cohen_kappa_score(*relevant))
    assert cohen_kappa(first, first) == 1
    by_chance = np.array([(a, b) for a, count in enumerate((1, 2, 4)) for b in (0, 0, 2) for _ in range(count)]).T
    assert cohen_kappa(*by_chance) == 0
    assert cohen_kappa(first * 0 + 3, second * 0 + 3) is None


def by_definition(truth, order):
    """Of an order of items without ties; equal items of the truth are in one order as often as in the other."""
    n = len(order)
    right = [
        sum((truth[order[j]] > truth[order[i]]) + (truth[order[j]] == truth[order[i]]) / 2 for j in range(i)) / i
        for i in range(1, n)
    ]
    return 2 / (n - 1) * sum(right) - 1


@pytest.mark.parametrize("seed", range(12))
def test_tau_ap_is_its_definition_over_all_orders_of_ties(seed):
    rng = np.random.default_rng(seed)
    truth, estimate = rng.integers(0, 6, 6) * 1.0, rng.integers(0, 4 if seed % 2 else 99, 6) * 1.0
    orders = [o for o in permutations(range(6)) if all(estimate[a] >= estimate[b] for a, b in pairwise(o))]
    assert tau_ap(truth, estimate) == pytest.approx(np.mean([by_definition(truth, order) for order in orders]))


def test_an_exchange_at_the_top_counts_more():
    truth = np.arange(5.0, 0, -1)
    top, bottom = (tau_ap(truth, truth[list(order)]) for order in ([1, 0, 2, 3, 4], [0, 1, 2, 4, 3]))
    assert tau_ap(truth, truth) == 1
    assert tau_ap(truth, -truth) == -1
    assert (top, bottom) == (pytest.approx(0.5), pytest.approx(1 - 2 / 16))


def test_real_runs_by_two_measures_and_by_two_assessors(data):
    folder = data("trec_covid_runs")
    qrels, rng = read_qrels(folder / "qrels.txt.gz"), np.random.default_rng(0)
    other = {q: {d: int(rng.choice([g, 2 - g], p=[0.8, 0.2])) for d, g in of.items()} for q, of in [*qrels.items()][5:]}
    other[next(iter(other))] |= {"unknown": 1}
    runs = {path.name: read_run(path) for path in sorted(folder.glob("runs/*.gz"))}
    scores, theirs = ({n: evaluate(run, of, ["AP", "P@10"]) for n, run in runs.items()} for of in (qrels, other))
    [found] = compare_measures(scores)
    means = np.array([run.means for run in scores.values()]).T
    assert (found.first, found.second) == ("AP", "P@10")
    assert found.tau == pytest.approx(stats.kendalltau(*means).statistic)
    assert found.tau_ap == tau_ap(*means)
    agreed = compare_judgements(("nist", "new"), (qrels, other), (scores, theirs))
    assert (agreed.documents, agreed.alone) == (sum(map(len, other.values())) - 1, (0, 1))
    both = np.array([(qrels[q][d], g) for q, of in other.items() for d, g in of.items() if d in qrels[q]])
    assert agreed.kappa == pytest.approx(cohen_kappa_score(*(both > 0).T))
    assert agreed.weighted_kappa == pytest.approx(cohen_kappa_score(*both.T, weights="quadratic"))
    ap = [[evaluate(run, {q: of[q] for q in other}, ["AP"]).means[0] for run in runs.values()] for of in (qrels, other)]
    assert agreed.rankings[0].tau == pytest.approx(stats.kendalltau(*ap).statistic)
    assert len(agreed.tables) == 2
    tied = correlate("a", "b", np.zeros(3), np.arange(3.0))
    assert (tied.tau, tied.tau_ap) == (None, None)


def test_judgements_are_compared_without_runs():
    """On the topics of both, whose number is said where one has more."""
    first = {f"q{n}": {f"d{i}": (i * n) % 3 for i in range(8)} for n in range(6)}
    second = {f"q{n}": {f"d{i}": (i + n) % 3 for i in range(2, 9)} for n in range(2, 9)}
    found = compare_qrels(first, second)
    pairs = [(first[q][d], second[q][d]) for q in ("q2", "q3", "q4", "q5") for d in first[q] if d in second[q]]
    one, other = np.array(pairs).T
    row = dict(zip(found.tables()[0].header, found.tables()[0].rows[0], strict=True))
    assert row.pop("kappa") == pytest.approx(cohen_kappa_score(one > 0, other > 0))
    assert row.pop("weighted") == pytest.approx(cohen_kappa_score(one, other, weights="quadratic"))
    assert row == {"judges": "first and second", "topics": 4, "documents": 24, "only first": 8, "only second": 4}
    assert "Both judged 4 topics, which alone count here (6 of first, 7 of second)." in str(found)
    assert "Both judged" not in str(compare_qrels(first, first))
    assert "first and second" in found.format("html")
    assert "24" in found.to_latex()
    assert repr(found) == "<QrelsAgreement on 4 topics>"
    refuses(lambda: compare_qrels(first, {"x": {"a": 1}}), ParameterError, "no topic in common", "|")


@pytest.mark.parametrize(
    ("second", "reason"),
    [
        ({"d": 1, "e": 1}, "all 2 documents have one grade"),
        ({"d": 1, "e": 2}, "all 2 documents have one verdict, relevant or not"),
        ({"f": 1}, "both judged no document"),
        ({"d": 1, "e": 0}, None),
    ],
)
def test_a_blank_kappa_has_a_reason(second, reason):
    found = compare_qrels({"1": {"d": 1, "e": 1}}, {"1": second})
    assert (found.agreement.kappa is None) == (reason is not None)
    assert ("No kappa" in str(found)) == (reason is not None)
    assert reason is None or f"No kappa: {reason}." in str(found)
