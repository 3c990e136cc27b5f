"""Views of documents without judgements, against an enumeration of all judgements that they could have."""

from itertools import product

import numpy as np
import pytest

from greylag.base import Ranking, Run
from greylag.evaluation import Evaluation, compare_scores, evaluate
from greylag.evaluation.scoring.holes import compare_with_holes, score_holes
from tests.greylag.evaluation.scoring import samples

DOCIDS = tuple(f"d{number}" for number in range(7))


def small_case(seed):
    """Two runs of one topic, and another on which they agree, with two of seven documents judged."""
    rng = np.random.default_rng(seed)
    qrels = {"q": {d: int(rng.integers(0, 2)) for d in rng.choice(DOCIDS, 2, replace=False)}, "r": {"x": 1}}

    def run():
        shown = tuple(rng.permutation(DOCIDS)[:5])
        return Run((Ranking("q", "", shown, np.zeros(5)), Ranking("r", "", ("x",), [1])))

    return {"a": run(), "b": run()}, qrels


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("name", ["P@3", "RBP", "RBP(p=0.5)@3", "RR", "Success@2"])
def test_scores_are_the_extremes_of_all_possible_judgements(seed, name):
    runs, qrels = small_case(seed)
    holes = score_holes(runs, qrels, [name])
    scored = {"a": [], "b": []}
    unknown = [docid for docid in DOCIDS if docid not in qrels["q"]]
    for grades in product([0, 1], repeat=len(unknown)):
        world = {**qrels, "q": {**qrels["q"], **dict(zip(unknown, grades, strict=True))}}
        for run_name, run in runs.items():
            scored[run_name].append(float(evaluate(run, world, [name]).means[0]))
    for run_name in runs:
        assert holes.not_relevant[run_name].means[0] == pytest.approx(min(scored[run_name]))
        assert holes.relevant[run_name].means[0] == pytest.approx(max(scored[run_name]))


@pytest.mark.parametrize("seed", range(6))
def test_left_out_is_the_measure_over_judged_documents_and_the_share_is_counted(seed):
    run, qrels = samples.random_case(np.random.default_rng(seed))
    names = ["AP", "nDCG@5", "P@5", "Rprec", "bpref"]
    holes = score_holes({"run": run}, qrels, names)
    expected = evaluate(run, qrels, [f"{n.split('@')[0]}(judged_only=True){n[len(n.split('@')[0]) :]}" for n in names])
    assert holes.left_out["run"].values.tolist() == expected.values.tolist()
    assert holes.not_relevant["run"].values.tolist() == evaluate(run, qrels, names).values.tolist()
    tops = [[d in qrels[q] for d in run[q].docids[:5]] for q in qrels if q in run and len(run[q])]
    assert holes.judged["run"][1] == pytest.approx(np.mean([np.mean(top) for top in tops]))


@pytest.mark.parametrize("teams", [{}, {"a": "x", "c": "x"}])
@pytest.mark.parametrize("seed", range(6))
def test_without_its_own_documents_a_run_scores_as_if_nobody_had_judged_them(seed, teams):
    rng = np.random.default_rng(seed)
    docids = [f"d{number}" for number in range(20)]
    qrels = {q: {d: int(rng.integers(0, 3)) for d in rng.choice(docids, 12, replace=False)} for q in "qrs"}
    runs = {name: Run(Ranking(q, "", tuple(rng.permutation(docids)[:8]), np.zeros(8)) for q in "qrs") for name in "abc"}
    names = ["AP", "nDCG@4", "P@4", "AP(rel=2)"]
    holes = score_holes(runs, qrels, names, teams)
    for name, run in runs.items():
        team = [other for other in runs if other == name or teams.get(other, other) == teams.get(name)]
        for column, (measure, cutoff, level) in enumerate(zip(names, (8, 4, 4, 8), (1, 1, 1, 2), strict=True)):
            tops = {one: {(q, d) for q in "qrs" for d in runs[one][q].docids[:cutoff]} for one in runs}
            own = set().union(*map(tops.get, team)) - set().union(*(tops[one] for one in runs if one not in team))
            own = {(q, d) for q, d in own if qrels[q].get(d, 0) >= level}
            left = {q: {d: g for d, g in judged.items() if (q, d) not in own} for q, judged in qrels.items()}
            assert holes.own[name][column] == len(own & tops[name])
            assert holes.without_own[name].means[column] == evaluate(run, left, [measure]).means[0]


def test_one_world_for_all_runs_and_grades_up_to_the_highest():
    """AP of the first run falls when the documents of the second count as relevant; a level above all grades counts."""
    runs = {"one": Run((Ranking("q", "", ("x",), [1]),)), "two": Run((Ranking("q", "", ("y", "z"), [2, 1]),))}
    found = score_holes(runs, {"q": {"x": 1}}, ["AP", "P(rel=3)@1"]).relevant
    assert [found[name].values.tolist() for name in runs] == [[[pytest.approx(n / 3), n - 1]] for n in (1, 2)]


def test_a_sentence_says_if_the_order_depends_on_them():
    qrels = {str(q): {"x": 1, "n": 0} for q in range(4)}
    tops = {"known": "xn", "new": "yx", "worst": "nw"}
    runs = {name: Run(tuple(Ranking(q, "", tuple(top), [2, 1]) for q in qrels)) for name, top in tops.items()}
    scores = {name: evaluate(run, qrels, ["P@1", "P@2"]) for name, run in runs.items()}
    holes = score_holes(runs, qrels, ["P@1", "P@2"])
    found = compare_with_holes(compare_scores(scores, "known"), holes)
    at_1, at_2, worst_1, _ = found.comparisons
    assert (at_1.holes.not_relevant, at_1.holes.relevant, at_1.holes.left_out) == (-1, 0, 0)
    assert "depends on documents without judgements" in at_1.verdict
    assert "-1.0000 if they count as not relevant, +0.0000 as relevant" in at_1.verdict
    assert (at_2.holes.not_relevant, at_2.holes.relevant, at_2.holes.left_out) == (0, 0.5, 0)
    assert "without judgements" not in worst_1.verdict
    shown = str(Evaluation(scores, found, holes=holes))
    for of, measure in ((at_1, "P@1"), (at_2, "P@2")):
        assert of.holes.sentence("new", "known", measure) in shown
    assert "left out" in shown


def test_differences_are_of_the_measure_that_is_compared():
    """Among measures over judged documents alone, which have no views of their own."""
    runs, qrels = small_case(0)
    names = ["P(judged_only=True)@3", "P@3", "AP"]
    scores = {name: evaluate(run, qrels, names) for name, run in runs.items()}
    found = compare_with_holes(compare_scores(scores, "b"), score_holes(runs, qrels, names)).comparisons
    assert [c.holes.not_relevant for c in found if c.holes][1:] == [c.difference for c in found][1:]


@pytest.mark.parametrize("baseline", ["r0", None])
def test_of_many_pairs_the_number_stands_for_sentences(baseline):
    """Half of the runs rank a document without judgements, so that their order with the others depends on it."""
    qrels = {str(q): {"x": 1, "n": 0} for q in range(4)}
    runs = {
        f"r{n}": Run(tuple(Ranking(q, "", ("x", "n") if n % 2 else ("y", "n"), [2, 1]) for q in qrels))
        for n in range(12)
    }
    scores = {name: evaluate(run, qrels, ["P@1"]) for name, run in runs.items()}
    holes = score_holes(runs, qrels, ["P@1"])
    found = compare_with_holes(compare_scores(scores, baseline), holes)
    told = [c for c in found.comparisons if c.holes and c.holes.sentence(c.run, c.baseline, "P@1")]
    shown = str(Evaluation(scores, found, holes=holes))
    assert f"the order of {len(told)} of {len(found.comparisons)} pairs of runs depends" in shown
    assert "The order of" not in shown
    assert (len(told), len(found.comparisons)) == ((6, 11) if baseline else (36, 66))
    assert (" against " in shown) == bool(baseline)
