"""The choice of a diversifier, against the same cross-validation written out."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.base import ParameterError, Run, read_json_lines
from greylag.diversity import MMR, PM2, SVMDiv, XQuAD
from greylag.evaluation import (
    best_of_many,
    evaluate_by_subtopic,
    read_aspects,
    read_run,
    read_subtopic_qrels,
    split_folds,
)
from greylag.evaluation.scoring.selection_bias import unseen_scores
from greylag.features.stage_registry import StageStep
from greylag.index import ArrayVectors
from greylag.index.positional import PositionalIndex
from greylag.recipes import choose_diversifier, fit_svmdiv
from greylag.recipes.diversifiers import CHOSEN, NONE, TRIED_WEIGHTS
from tests.greylag.diversity import samples
from tests.refusals import refuses

N = 15
QIDS = [f"q{number}" for number in range(10)]
TEXTS, _ = samples.texts(1, N)
INDEX = PositionalIndex.from_texts(TEXTS)
FIRST = Run(tuple(samples.ranking(seed, N, qid) for seed, qid in enumerate(QIDS)), "first")
QRELS = {qid: samples.judgements(seed, N) for seed, qid in enumerate(QIDS)}
VECTORS = ArrayVectors(list(TEXTS), np.random.default_rng(5).standard_normal((N, 3)))
MEASURE = "alpha-nDCG@5"


def truth(qrels):
    """Scores of aspects that are the judgements."""
    return {qid: {s: {d: float(g) for d, g in judged.items()} for s, judged in by.items()} for qid, by in qrels.items()}


def choose(**options):
    return choose_diversifier(FIRST, QRELS, **{"index": INDEX, "measure": MEASURE, "folds": 3, **options})


def test_the_measure_may_be_that_of_relevance():
    found = choose(methods=["mmr"], measure="nDCG@10")
    expected = evaluate_by_subtopic(FIRST, QRELS, ["nDCG@10"]).values
    assert found.scores[NONE].values.tolist() == expected.repeat(2, axis=1).tolist()
    assert "nDCG@10" in str(found)


@pytest.mark.parametrize("seed", range(3))
def test_weights_are_chosen_on_the_other_folds(seed):
    found = choose(vectors=VECTORS, methods=["mmr"], seed=seed)
    runs = {weight: MMR(vectors=VECTORS, relevance_weight=weight).run(FIRST) for weight in TRIED_WEIGHTS}
    expected, chosen = {}, []
    for fold in split_folds(QIDS, 3, seed):
        others = {qid: QRELS[qid] for qid in QIDS if qid not in fold}
        means = {
            weight: round(evaluate_by_subtopic(run, others, [MEASURE]).by_measure[MEASURE], 12)
            for weight, run in runs.items()
        }
        chosen.append(max(weight for weight in TRIED_WEIGHTS if means[weight] == max(means.values())))
        held_out = evaluate_by_subtopic(runs[chosen[-1]], {qid: QRELS[qid] for qid in fold}, [MEASURE, "nDCG@10"])
        expected |= dict(zip(held_out.qids, held_out.values.tolist(), strict=True))
    assert found.weights == {"mmr": tuple(chosen)}
    assert dict(zip(QIDS, found.scores["mmr"].values.tolist(), strict=True)) == expected
    assert (
        found.scores[NONE].values.tolist() == evaluate_by_subtopic(FIRST, QRELS, [MEASURE, "nDCG@10"]).values.tolist()
    )


def test_judgements_of_a_fold_do_not_change_its_weights():
    fold = split_folds(QIDS, 3, 0)[1]
    other = QRELS | {qid: samples.judgements(seed + 50, N) for seed, qid in enumerate(fold)}
    for methods in (["mmr"], ["mmr", "xquad"]):
        options = {"index": INDEX, "aspects": truth(QRELS), "measure": MEASURE, "folds": 3, "methods": methods}
        one, two = (choose_diversifier(FIRST, qrels, **options) for qrels in (QRELS, other))
        assert all(one.weights[name][1] == two.weights[name][1] for name in methods)
    assert one.weights != two.weights  # those of other folds may


def test_all_that_need_no_more_than_what_is_given():
    assert {"mmr", "coverage", "essential-pages", "svmdiv"} <= choose().stages.keys()
    given = choose(index=None, vectors=VECTORS).stages.keys()
    assert "mmr" in given
    assert not given & {"coverage", "xquad", "svmdiv", "random", "cssvm"}
    assert choose(index=None, aspects=truth(QRELS)).stages.keys() == {"pm2", "xquad"}


def test_recommendations():
    """Aspects that are the judgements help, others at random do not; doing nothing is among the choices."""
    good = choose(index=None, aspects=truth(QRELS))
    assert good.recommended == good.best in ("xquad", "pm2")
    assert good.scores[CHOSEN].means[0] > good.scores[NONE].means[0]
    step = good.stages[good.best]
    kind = {"xquad": XQuAD, "pm2": PM2}[step.name]
    best = kind(aspects=truth(QRELS), **dict(step.options)).run(FIRST)
    strength = next(iter(dict(step.options)))
    for weight in TRIED_WEIGHTS:
        other = kind(aspects=truth(QRELS), **{strength: weight}).run(FIRST)
        means = [evaluate_by_subtopic(run, QRELS, [MEASURE]).means[0] for run in (best, other)]
        assert means[0] >= means[1] - 1e-12
    ideal = Run(tuple(XQuAD(aspects=truth(QRELS), relevance_weight=0.0).run(FIRST).rankings), "ideal")
    bad = choose_diversifier(ideal, QRELS, index=INDEX, measure=MEASURE, folds=3)
    assert bad.best == bad.recommended == NONE
    assert "Recommended: none." in str(bad)


def test_costs_without_an_interval_are_told_without_it():
    found = choose(index=None, aspects=truth(QRELS))
    costs = [replace(c, interval=None, p=2 / 2**9, difference=-0.25) for c in found.costs.comparisons]
    shown = replace(found, costs=replace(found.costs, comparisons=tuple(costs)))
    assert f"It costs relevance: -0.2500 {found.cost}. Keep the first stage" in str(shown)
    assert str(shown).count("[") == str(found).count("[") - len(costs) - 1


def test_losses_are_kept_low():
    found = choose(methods=["mmr", "xquad"], aspects=truth(QRELS), measure="subtopic-loss@5")
    assert found.best == "xquad"
    assert found.scores["xquad"].means[0] < found.scores[NONE].means[0]


def test_any_number_of_workers():
    one, two = (choose(methods=["mmr", "svmdiv"], n_jobs=n_jobs) for n_jobs in (1, 2))
    assert str(one) == str(two)
    assert (one.weights, one.stages) == (two.weights, two.stages)


def test_weights_that_are_given_are_not_tuned():
    spelt = choose(methods=["mmr(relevance_weight=0.5)", "mmr(relevance_weight=0.6)"])
    assert spelt.weights == {"mmr(relevance_weight=0.5)": (), "mmr(relevance_weight=0.6)": ()}


def test_svmdiv_from_texts():
    """From texts, without a query of its fold; the same as over an index of them."""
    found = choose(methods=["svmdiv"])
    for fold in split_folds(QIDS, 3, 0):
        known = {qid: QRELS[qid] for qid in QIDS if qid not in fold}
        stage = fit_svmdiv([FIRST[qid] for qid in known], known, TEXTS)
        assert isinstance(stage, SVMDiv)
        again = fit_svmdiv([FIRST[qid] for qid in known], known, INDEX)
        assert stage.model.weights == again.model.weights
        held_out = evaluate_by_subtopic(stage.run(FIRST), {qid: QRELS[qid] for qid in fold}, [MEASURE])
        rows = [QIDS.index(qid) for qid in fold]
        assert held_out.values[:, 0].tolist() == found.scores["svmdiv"].values[rows, 0].tolist()
    assert fit_svmdiv(FIRST, QRELS, TEXTS, C=0.5, picks=3, depth=7).model.provenance["C"] == 0.5


def test_a_query_that_the_run_lacks_counts():
    fewer = replace(FIRST, rankings=FIRST.rankings[:-1])
    found = choose_diversifier(fewer, QRELS, index=INDEX, measure=MEASURE, folds=3, methods=["mmr", "svmdiv"])
    assert all(scores.values[-1].tolist() == [0.0, 0.0] for scores in found.scores.values())


def nested_choice(methods, queries, folds):
    """All scores of what is chosen by some queries: a method by weights from other folds, then its best weight."""
    by_weight = {NONE: {1.0: evaluate_by_subtopic(FIRST, QRELS, [MEASURE])}}
    for name in methods:
        stages = {weight: StageStep.parse(f"{name}(relevance_weight={weight})").make(INDEX) for weight in TRIED_WEIGHTS}
        by_weight[name] = {w: evaluate_by_subtopic(stage.run(FIRST), QRELS, [MEASURE]) for w, stage in stages.items()}
    values = {
        name: {w: dict(zip(QIDS, scores.values[:, 0].tolist(), strict=True)) for w, scores in of.items()}
        for name, of in by_weight.items()
    }

    def best_weight(name, seen):
        means = {w: round(sum(of[qid] for qid in seen) / len(seen), 12) for w, of in values[name].items()}
        return max(w for w, mean in means.items() if mean == max(means.values()))

    def held_out(name):
        total = 0.0
        for fold in folds:
            part = [qid for qid in queries if qid in fold]
            weight = best_weight(name, [qid for qid in queries if qid not in fold] or part)
            total += sum(values[name][weight][qid] for qid in part)
        return round(total / len(queries), 12)

    name = max(values, key=held_out)
    return values[name][best_weight(name, queries)]


def test_the_recommendation_is_corrected_for_all_that_was_chosen():
    """The weight, too, is chosen anew without each part of the queries."""
    methods, folds = ["mmr", "dpp"], split_folds(QIDS, 3, 0)

    def rule(queries):
        chosen = nested_choice(methods, [QIDS[number] for number in queries], folds)
        return "", np.array([chosen[qid] for qid in QIDS])

    found = choose(methods=methods)
    assert found.winner.mean == pytest.approx(unseen_scores(rule, len(QIDS), 0).mean(), abs=1e-12)
    values = found.scores[found.best].values[:, 0]
    assert found.winner.mean != pytest.approx(values.mean(), abs=1e-6)


def test_the_recommendation_is_corrected_for_the_choice():
    """The comparisons are those of none and the methods, as evaluated."""
    found = choose(aspects=truth(QRELS), methods=["mmr", "xquad", "pm2"])
    scores = {
        name: replace(found.scores[name], measures=(found.measure,), values=found.scores[name].values[:, :1])
        for name in (NONE, "mmr", "xquad", "pm2")
    }
    expected = best_of_many(scores, NONE)
    assert found.gains.comparisons[:-1] == expected.all.comparisons
    assert found.gains.comparisons[-1].run == CHOSEN
    corrected = found.winner.comparison
    assert corrected.verdict in str(found)
    assert found.recommended == (found.best if corrected.significant else NONE)


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ({"index": None}, "give an index, vectors or scores of aspects"),
        ({"methods": ["mmr", "mmr"]}, "twice"),
        ({"index": None, "methods": ["svmdiv"]}, "svmdiv needs an index"),
        ({"cost": "subtopic-loss@5"}, "subtopic-loss@5|nDCG@10"),
    ],
)
def test_refusals(options, parts):
    refuses(lambda: choose(**options), ParameterError, parts, "|")


@pytest.mark.long
@pytest.mark.parametrize("name", ["ambient", "div400_dev"])
def test_the_gains_on_the_page(name, data):
    """The table of "From passages to a method" is what `choose_diversifier` finds."""
    folder = data(name)
    records = (record for _, record in read_json_lines(folder / "docs.jsonl.gz"))
    index = PositionalIndex.from_texts({str(r["id"]): f"{r.get('title', '')}\n{r['contents']}" for r in records})
    first, qrels = read_run(folder / "candidates.run"), read_subtopic_qrels(folder / "qrels.subtopics.txt")
    methods = {"MMR": "mmr", "MSD": "msd", "DPP": "dpp", "xQuAD": "xquad", "PM-2": "pm2"}
    methods |= {"Essential Pages": "essential-pages", "coverage": "coverage"}
    aspects = read_aspects(folder / "subtopics.tsv")
    choice = choose_diversifier(first, qrels, index=index, aspects=aspects, methods=[*methods.values()])
    found = {NONE: [f"{choice.scores[NONE].means[0]:.3f}".lstrip("0"), ""]}
    gains, costs = ({c.run: c for c in tests.comparisons} for tests in (choice.gains, choice.costs))
    for label, method in methods.items():
        gain, star = gains[method], "*" * gains[method].significant
        found[label] = [f"{gain.mean:.3f}".lstrip("0") + star, f"{costs[method].difference:+.3f}".replace("0.", ".")]
    page = (Path(greylag.__file__).parents[1] / "docs" / "evidence" / "diversity.md").read_text()
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in page.splitlines() if line.startswith("| ")]
    columns = slice(1, 3) if name == "ambient" else slice(3, 5)
    assert {row[0]: row[columns] for row in rows if row[0] in found} == found
