"""The best of many systems against the definition written out, one query and one draw at a time."""

import math
from dataclasses import replace
from statistics import fmean, stdev

import numpy as np
import pytest
from scipy import stats

from greylag.evaluation import BestOfMany, Scores, best_of_many, detectable_difference, parse_measure
from greylag.evaluation.scoring.power import SIGNIFICANCE_LEVEL
from greylag.evaluation.scoring.selection_bias import FLIPS, simultaneous, widening

AP, LOSS = parse_measure("AP"), parse_measure("subtopic-loss@5")


def named(values, measure=AP):
    """Scores of systems a, b, c, ..., of values of shape (m, n)."""
    return {
        chr(97 + number): Scores.single(measure, {f"q{i}": float(value) for i, value in enumerate(row)})
        for number, row in enumerate(values)
    }


def sample(seed, *, systems=5, queries=12, gain=0.0):
    rng = np.random.default_rng(seed)
    values = rng.random((1, queries)) + 0.1 * rng.standard_normal((systems, queries))
    values[1] += gain
    return np.asarray(values)


def t_statistic(differences):
    error = stdev(differences) / math.sqrt(len(differences))
    return fmean(differences) / error if error > 1e-9 else math.copysign(math.inf, fmean(differences))


def best(values, queries):
    return max(range(len(values)), key=lambda j: (round(fmean(values[j, q] for q in queries), 12), -j))


def t_of_choice(values, seed):
    """|t| of the choice before it is widened; None if the baseline is chosen."""
    choice, unseen, error = chosen_by_definition(values, seed)
    return abs(fmean(unseen) - fmean(values[0])) / error if choice else None


@pytest.mark.parametrize("worse", [0.0, 3.0])
def test_intervals_are_widened_by_what_the_choice_is_worth_by_chance(worse, monkeypatch):
    """The definition, one draw at a time; a system that is far worse stays so."""
    monkeypatch.setattr("greylag.evaluation.scoring.selection_bias.NULL_CHOICES", 40)
    gains, n = np.random.default_rng(2).standard_normal((12, 15)), 15
    gains[0] = 0.0
    gains[11] -= worse
    below = [math.sqrt(n) * fmean(row) < -math.sqrt(2 * math.log(math.log(n))) * stdev(row) for row in gains.tolist()]
    assert below[11] or not worse
    means = gains.mean(axis=1, keepdims=True)
    kept, centred = means * np.array(below)[:, None], gains - means
    signs = 2.0 * np.random.default_rng(3).integers(0, 2, (40, n)) - 1.0
    found = [t_of_choice(centred * row + kept, 3) for row in signs]
    peaks = sorted((t for t in found if t is not None), reverse=True)
    assert 20 < len(peaks) <= 40
    critical = peaks[int(SIGNIFICANCE_LEVEL * len(peaks))] / float(stats.t.isf(0.025, n - 1))
    assert critical > 1
    assert widening(gains, 3) == pytest.approx(critical)


def test_the_more_alike_systems_the_wider():
    gains = np.random.default_rng(1).standard_normal((60, 200))
    gains = gains - gains[0]
    factors = [widening(gains[:systems], 0) for systems in (2, 60)]
    assert factors[0] == 1.0  # never narrower than Student's
    assert 1.03 < factors[1] < 1.15
    assert widening(np.zeros((3, 9)), 0) == 1.0


def chosen_by_definition(values, seed):
    """The choice, the scores of queries by choices without them, and the larger standard error."""
    n = values.shape[1]
    rng, unseen = np.random.default_rng(seed), [0.0] * n
    for _ in range(5):
        for part in np.array_split(rng.permutation(n), 5):
            others = [q for q in range(n) if q not in part]
            for q in part:
                unseen[q] += float(values[best(values, others), q]) / 5
    choice = best(values, list(range(n)))
    errors = [stdev([x - y for x, y in zip(row, values[0], strict=True)]) for row in (values[choice], unseen)]
    return choice, unseen, max(errors) / math.sqrt(n)


@pytest.mark.parametrize(("seed", "gain"), [(0, 0.05), (1, 0.2), (2, 0.0)])
def test_the_choice_is_scored_on_queries_that_had_no_part_in_it(seed, gain):
    values = sample(seed, gain=gain)
    choice, unseen, error = chosen_by_definition(values, 3)
    assert choice > 0
    found = best_of_many(named(values), "a", seed=3)
    assert found.chosen == "abcde"[choice]
    assert found.mean == pytest.approx(fmean(unseen))
    c, difference = found.comparison, fmean(unseen) - fmean(values[0])
    assert (c.mean, c.difference) == (pytest.approx(found.mean), pytest.approx(difference))
    error *= widening(values - values[0], 3)
    margin = float(stats.t.isf(0.025, values.shape[1] - 1)) * error
    assert c.interval == pytest.approx((difference - margin, difference + margin))
    assert c.corrected_p == pytest.approx(2 * stats.t.sf(abs(difference) / error, values.shape[1] - 1))
    assert c.detectable == pytest.approx(detectable_difference(error, values.shape[1]))
    assert c.wins == (values[choice] > values[0]).sum()


def test_a_rule_may_make_systems_of_its_own():
    """The mean of the two best, chosen anew without each part."""
    values = sample(6, gain=0.1)

    def rule(queries):
        two = sorted(np.argsort(-values[:, queries].mean(axis=1), kind="stable")[:2].tolist())
        return f"{two}", values[two].mean(axis=0)

    found = best_of_many(named(values), "a", rule=rule)
    rng, unseen = np.random.default_rng(0), np.zeros(12)
    for _ in range(5):
        for part in np.array_split(rng.permutation(12), 5):
            unseen[part] += rule(np.array([q for q in range(12) if q not in part]))[1][part] / 5
    assert found.chosen == rule(np.arange(12))[0]
    assert found.mean == pytest.approx(unseen.mean())
    assert found.all == simultaneous(named(values), "a")


def test_all_at_once_is_the_max_t_test():
    values, n = sample(0, systems=4, queries=9, gain=0.05), 9
    differences = [[float(d) for d in row] for row in values[1:] - values[0]]
    centred, rng, peaks = np.array([[d - fmean(row) for d in row] for row in differences]), np.random.default_rng(3), []
    while len(peaks) < FLIPS:
        signs = rng.integers(0, 2, (min(1000, FLIPS - len(peaks)), 1, n))
        flipped = np.where(signs == 1, centred, -centred)
        t = flipped.mean(axis=2) / (flipped.std(axis=2, ddof=1) / math.sqrt(n))
        peaks += np.abs(t).max(axis=1).tolist()
    peaks.sort()
    above = FLIPS - np.searchsorted(peaks, peaks, side="right")
    critical = min(t for t, n_above in zip(peaks, above, strict=True) if (1 + n_above) / (1 + FLIPS) < 0.05)
    for c, row in zip(simultaneous(named(values), "a", seed=3).comparisons, differences, strict=True):
        t = abs(t_statistic(row))
        assert c.corrected_p == pytest.approx((1 + sum(peak >= t for peak in peaks)) / (1 + FLIPS), abs=2e-4)
        margin = critical * abs(fmean(row)) / t
        assert c.interval == pytest.approx((fmean(row) - margin, fmean(row) + margin), rel=1e-3)


@pytest.mark.parametrize("seed", range(30))
def test_intervals_contain_0_if_and_only_if_p_is_not_significant(seed):
    found = best_of_many(named(sample(seed, gain=0.02 * (seed % 8))), "a")
    for c in (*found.all.comparisons, *filter(None, [found.comparison])):
        contains = c.interval[0] <= 0 <= c.interval[1]
        assert contains == (c.corrected_p >= SIGNIFICANCE_LEVEL)


@pytest.mark.parametrize("seed", range(5))
def test_a_copy_changes_nothing_and_more_systems_widen_intervals(seed):
    values = sample(seed, gain=0.1)
    once, twice = (best_of_many(named(part), "a") for part in (values, np.concatenate([values, values[1:2]])))
    assert (once.chosen, once.mean, once.comparison) == (twice.chosen, twice.mean, twice.comparison)
    fewer, more = simultaneous(named(values[:2]), "a"), once.all
    assert fewer.comparisons[0].interval[0] > more.comparisons[0].interval[0]
    assert fewer.comparisons[0].corrected_p <= more.comparisons[0].corrected_p


def test_a_system_that_did_not_run_gets_no_verdict():
    systems = named(sample(0, gain=0.1))
    systems["d"] = replace(systems["d"], values=np.zeros((12, 1)), missing=systems["d"].qids)
    found = best_of_many(systems, "a")
    assert [c.run for c in found.all.comparisons if c.not_run] == ["d"]
    assert all(math.isnan(c.corrected_p) == (c.run == "d") for c in found.all.comparisons)
    assert best_of_many(systems, "d").comparison.not_run == "d did not run, as it ranks no topic"


@pytest.mark.parametrize("n", [3, 7, 11])
def test_a_choice_that_is_ahead_by_the_same_everywhere_has_the_exact_p(n):
    """0.1 has a standard deviation by rounding, of which p would be 0."""
    values = np.repeat([[0.0], [0.1], [-0.2]], n, axis=1)
    found = best_of_many(named(values), "a")
    for c in (found.comparison, *found.all.comparisons):
        corrected = c is not found.comparison
        assert (c.interval, c.exact_p, c.corrected_p) == (None, None, min(1, 2 ** (1 - n) * (2 if corrected else 1)))
    assert (found.chosen, found.comparison.difference) == ("b", pytest.approx(0.1))


def test_losses_are_the_negated_gains():
    values = sample(2, gain=0.1)
    gain, loss = best_of_many(named(values), "a"), best_of_many(named(-values, LOSS), "a")
    assert gain.chosen == loss.chosen
    assert gain.mean == -loss.mean
    assert loss.comparison.direction == gain.comparison.direction == 1
    assert loss.comparison.interval == pytest.approx(tuple(-end for end in gain.comparison.interval[::-1]))
    assert loss.comparison.corrected_p == gain.comparison.corrected_p


def test_the_baseline_may_be_the_best_and_a_copy_of_it_is_not_better():
    values = sample(3)
    values[0] += 1.0
    values[2] = values[0]
    found = best_of_many(named(values), "a")
    assert (found.chosen, found.comparison) == ("a", None)
    copy = found.all.comparisons[1]
    assert (copy.difference, copy.interval, copy.corrected_p) == (0.0, (0.0, 0.0), 1.0)
    assert all(c.significant and c.direction == -1 for c in found.all.comparisons if c is not copy)
    assert best_of_many(named(values[:1]), "a") == BestOfMany("a", found.mean, None, None)
