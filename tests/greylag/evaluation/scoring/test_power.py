"""The numbers that power before the run names, by losses that are simulated anew and gated by the gate itself."""

import numpy as np
import pytest
from scipy import stats

from greylag.base import ParameterError
from greylag.evaluation import Evaluation, Scores, compare_scores, parse_measure
from greylag.evaluation.reports.gate import check_gate, parse_rules
from greylag.evaluation.scoring.power import least_loss, loss_power, topics_for_loss
from tests.refusals import refuses

DRAWS = 400
BAND = 4 * np.sqrt(0.8 * 0.2 / DRAWS)


def run(seed, n=40, name="AP"):
    """Scores of a run, skewed, with topics of which it finds nothing."""
    rng = np.random.default_rng(seed)
    values = np.clip(rng.beta(0.6, 1.2, (n, 1)) - 0.05, 0, 1)
    values = 1 - values if name == "subtopic-loss@5" else values
    return Scores((parse_measure(name),), tuple(map(str, range(n))), values, (), ())


def found(one, loss, topics):
    """The share of new losses that the gate finds."""
    rng, sign = np.random.default_rng(99), 1 if one.measures[0].family.lower_is_better else -1
    values, failed = one.values[:, 0], 0
    share = loss / (1 - values if sign > 0 else values).mean()
    for _ in range(DRAWS):
        drawn = rng.choice(values, topics)
        worse = np.where(rng.random(topics) < share, float(sign > 0), drawn)
        both = {
            name: Scores(one.measures, tuple(map(str, range(topics))), column[:, None], (), ())
            for name, column in (("then", drawn), ("now", worse))
        }
        failed += not check_gate({"all": both}, compare_scores(both, "then"), parse_rules("worse")).passed
    return failed / DRAWS


@pytest.mark.parametrize(("seed", "loss", "name"), [(0, 0.05, "AP"), (1, 0.1, "AP"), (2, 0.05, "subtopic-loss@5")])
def test_the_number_that_is_named_finds_four_fifths_of_losses(seed, loss, name):
    one = run(seed, name=name)
    (power,) = Evaluation({"a": one}).powered(loss).powers
    assert found(one, loss, power.topics) == pytest.approx(0.8, abs=BAND)
    assert found(one, loss, power.topics // 2) < 0.8 - BAND / 2
    assert found(one, loss, 40) == pytest.approx(power.found, abs=BAND)
    assert found(one, power.least, 40) == pytest.approx(0.8, abs=BAND)


def test_more_measures_need_more_topics_and_too_many_are_not_named():
    gaps = run(3).values[:, 0]
    alone, five = (topics_for_loss(gaps, 0.05, comparisons=number) for number in (1, 5))
    assert alone < five
    assert topics_for_loss(gaps, 1e-4) is None
    assert least_loss(np.full(3, 0.5)) is None  # three topics show nothing, even if all is lost
    # Every topic loses all: equal losses have the exact p, 1 / 2^n.
    assert [loss_power(np.full(9, 0.5), 0.5, n) for n in (4, 5)] == [0.0, 1.0]


def test_the_share_is_that_of_scipys_test():
    """Of the same draws."""
    gaps, rng = run(4).values[:, 0], np.random.default_rng([0, 30])
    drawn = gaps[rng.integers(0, 40, (2000, 30))]
    lost = drawn * (rng.random((2000, 30)) < 0.1 / gaps.mean())
    p = stats.ttest_1samp(lost, 0, axis=1, alternative="greater").pvalue
    assert loss_power(gaps, 0.1, 30) == (p < 0.05).mean()


def test_tables_and_refusals():
    two = Evaluation({"a": run(0), "b": run(1)})
    made = two.powered("0.05")
    (table,) = made.tables()[1:]
    assert [row[0] for row in table.rows] == ["a", "b"]
    assert "of losses of 0.05" in table.caption
    assert [row[2].value for row in table.rows] == [power.found for power in made.powers]  # a share, as in JSON
    assert made.to_dict()["power"][1]["topics"] == made.powers[1].topics
    refuses(lambda: two.powered(0.9), ParameterError, "a loss of 0.9|AP of a|smaller", "|")
    refuses(lambda: Evaluation({"a": run(0, n=1)}).powered(0.01), ParameterError, "two topics or more")
    refuses(lambda: Evaluation({"a": run(0, name="gm_map")}).powered(0.01), ParameterError, "of a mean|gm_map", "|")
    refuses(lambda: Evaluation({"a": run(0, name="utility")}).powered(0.01), ParameterError, "of a mean|utility", "|")
    refuses(lambda: two.powered("5%"), ParameterError, "write 0.05")
