"""A paragraph has every comparison by the first measure once, as its test has it."""

import re
from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest

from greylag.evaluation import Collections, Evaluation, Scores, compare_scores
from greylag.evaluation.reports.scores import ranked
from greylag.evaluation.reports.verdict import verdict
from greylag.evaluation.scoring.concordance import compare_measures
from greylag.evaluation.scoring.measures import parse_measures
from greylag.evaluation.scoring.significance import FINDINGS
from greylag.evaluation.scoring.teams import best_runs


def scores(rng, names, measures):
    """Scores whose means lie apart by more or less than the noise."""
    values = {name: rng.random((30, 2)) + rng.choice([0.0, 0.1, 0.6]) for name in names}
    parsed, qids = parse_measures(measures), tuple(map(str, range(30)))
    return {name: Scores(parsed, qids, of_one, (), ()) for name, of_one in values.items()}


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("measures", [["AP", "P@5"], ["subtopic-loss@5", "AP"]])
def test_findings_are_those_of_the_test(seed, measures):
    found = scores(np.random.default_rng(seed), "abcde", measures)
    for pairs, baseline in ((None, "a"), ([("a", "b"), ("a", "c"), ("b", "c"), ("d", "e")], None)):
        tested = compare_scores(found, baseline, pairs=pairs)
        told = verdict([(found, tested)])
        written = set[tuple[str, str, str]]()
        clauses = told.partition(f"By {measures[0]}, ")[2].split(". ")[0].removesuffix(".").split("; ")
        for clause in clauses:
            before, finding, after = re.split(r" (?:is|are) ((?:better|worse|not shown .*) than) ", clause)
            one, other = (re.findall(r"\b[a-e]\b", text) for text in (before, after))
            written |= {(run, finding, against) for run in one for against in other}
        first = [c for c in tested.comparisons if str(c.measure) == measures[0]]
        assert written == {(c.run, FINDINGS[c.significant * c.direction], c.baseline) for c in first}
        assert all(f"({c.difference:+.4f})" in told for c in first)
        missed = [c.detectable for c in first if not c.significant]
        assert ("(80 %)" in told) == bool(missed)
        assert all(f"{end:.4f}" in told for end in ([min(missed), max(missed)] if missed else []))


def test_of_all_pairs_the_best_run_is_told():
    found = scores(np.random.default_rng(2), [f"r{n:02}" for n in range(60)], ["AP", "P@5"])
    tested = compare_scores(found)
    told = verdict([(found, tested)])
    best = max(found, key=lambda name: found[name].means[0])
    beaten = sum(c.significant for c in tested.comparisons if best in (c.run, c.baseline) and str(c.measure) == "AP")
    numbers = [int(number) + 4 for number in re.findall(r"and (\d+) more", told)]
    assert told.startswith(f"By AP, {best} has the best mean, {found[best].means[0]:.4f}, and is better than ")
    assert numbers == [beaten, 59 - beaten]
    assert len(told) < 400


@pytest.mark.parametrize("names", ["abcd", "abcdefgh"])
def test_a_page_says_once_which_differences_its_queries_reveal(names):
    """Below the sentences of each comparison, or in the paragraph that stands for many; once per collection."""
    found = {
        name: one for n, name in enumerate(names) for one in [scores(np.random.default_rng(n), "a", ["AP", "P@5"])["a"]]
    }
    parts = {part: Evaluation(found).tested(compare_scores(found, "a")) for part in ("x", "y")}
    missed = [
        c.detectable for c in parts["x"].significance.comparisons if c.measure.family.name == "AP" and not c.significant
    ]
    ends = " to ".join(dict.fromkeys(f"{end:.4f}" for end in (min(missed), max(missed))))
    for page, times in ((parts["x"], 1), (Collections(parts), 2)):
        assert page.format("html").count(f"usually (80 %) reveal differences of {ends} by AP.") == times
        assert page.format("html").count("usually (80 %)") == times


def test_one_comparison_has_its_own_sentences():
    found = scores(np.random.default_rng(1), "ab", ["AP", "P@5"])
    tested = compare_scores(found, "a")
    assert verdict([(found, tested)]) == tested.comparisons[0].verdict


def test_means_that_are_equal_on_paper_are_equal():
    """.1, .1, .4 in another order have another last bit in their mean."""
    measures, qids = parse_measures(["P@10", "AP"]), ("1", "2", "3")
    orders = {"x": (0.1, 0.1, 0.4), "y": (0.4, 0.1, 0.1), "z": (0.1, 0.4, 0.1)}
    tied = {name: Scores(measures, qids, np.array([row, row[::-1]]).T, (), ()) for name, row in orders.items()}
    assert len({float(mean) for own in tied.values() for mean in own.means}) > 1
    for names in permutations(tied):
        own = {name: tied[name] for name in names}
        assert set(ranked(own).values()) == {1}
        assert best_runs(own, dict.fromkeys(names, "team"), []) == [names[0]]
        assert all(c.tau is c.tau_ap is None for c in compare_measures(own))
        for comparison in compare_scores(own, names[0]).comparisons:
            assert str(comparison.difference) == "0.0"
            assert "of 0.2000 is the same (" in comparison.verdict
    near = tied | {"w": replace(tied["x"], values=tied["x"].values + 1e-5)}
    assert "is less than 0.0001 higher" in compare_scores(near, "x").comparisons[-2].verdict


@pytest.mark.parametrize("measures", [["AP", "P@5"], ["utility", "AP"]])
def test_runs_that_did_not_run_are_told_apart(measures):
    """Each once, also if none ran; it is never the best, as by utility, which is below 0."""
    found = scores(np.random.default_rng(1), "abcd", measures)
    found = {name: replace(one, values=one.values - 5) for name, one in found.items()}
    found["c"] = replace(found["c"], values=np.zeros((30, 2)), missing=found["c"].qids)
    rest = {name: one for name, one in found.items() if name != "c"}
    told = " Not compared: c did not run, as it ranks no topic."
    for baseline in (None, "a", ["a", "b"]):
        others = verdict([(rest, compare_scores(rest, baseline))])
        assert verdict([(found, compare_scores(found, baseline))]) == others + told
    assert verdict([(found, compare_scores(found, "c"))]) == told.strip()
    one = verdict([({name: found[name] for name in "ac"}, compare_scores({name: found[name] for name in "ac"}, "a"))])
    assert one == "c is not compared with a: c did not run, as it ranks no topic."
