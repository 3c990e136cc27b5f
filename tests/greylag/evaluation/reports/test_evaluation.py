"""One call that compares runs, and the value that prints itself.

Tests `comparison`.
"""

import io
import json
import re
from dataclasses import replace

import numpy as np
import pandas
import pytest

from greylag import __version__
from greylag.base import GreylagError, Ranking, Run
from greylag.evaluation import (
    Collections,
    Evaluation,
    compare,
    compare_scores,
    evaluate,
    evaluate_by_subtopic,
    write_run,
)
from greylag.evaluation.reports.earlier import digests
from greylag.evaluation.scoring.concordance import compare_measures
from greylag.evaluation.scoring.holes import score_holes
from greylag.evaluation.scoring.predicted import Corrections, evaluate_with_predictions
from tests.greylag.evaluation.scoring import samples
from tests.refusals import refuses

NAMES = ["AP", "P@5"]


@pytest.fixture
def runs():
    """Runs without ties."""
    tied = {name: samples.random_case(np.random.default_rng(seed))[0] for seed, name in enumerate(("one", "two"))}
    return {name: Run(tuple(one.permute(range(len(one))) for one in run.rankings)) for name, run in tied.items()}


QRELS = samples.random_case(np.random.default_rng(0))[1]


def test_runs_are_taken_as_they_come(runs, tmp_path):
    """A run, its file, its scores by docid and its frame give the same."""
    write_run(runs["two"], tmp_path / "two.run")
    found = compare(runs, QRELS, NAMES, baseline="one")
    for other in (tmp_path / "two.run", str(tmp_path / "two.run"), runs["two"].to_dict(), runs["two"].to_frame()):
        assert str(compare({**runs, "two": other}, QRELS, NAMES, baseline="one")) == str(found)
    expected = {name: evaluate(run, QRELS, NAMES) for name, run in runs.items()}
    tests, absent = compare_scores(expected, "one"), found.unretrieved
    again = Evaluation(expected, tests, found.unjudged, digests=digests(QRELS), unretrieved=absent)
    pairs = {(qid, docid): grade for qid, judged in QRELS.items() for docid, grade in judged.items()}
    nowhere = {*pairs} - {(qid, docid) for run in runs.values() for qid in run for docid in run[qid].docids}
    assert absent == (len(nowhere), sum(pairs[one] > 0 for one in nowhere), len(pairs), 2)
    assert f"{absent[0]} of {absent[2]} judged documents are in none of the 2 runs, {absent[1]} of them" in str(found)
    assert compare({"c": (runs, QRELS)}, measures=NAMES).tables()[0].caption.count("c: 160 of 360 judged doc") == 1
    assert found.to_dict() == again.to_dict()
    assert compare(runs, QRELS, NAMES).significance is None
    assert len(compare(runs, QRELS, NAMES, all_pairs=True).significance.comparisons) == 2


def test_views_are_those_of_their_functions(runs):
    holes = score_holes(runs, QRELS, NAMES)
    found = compare(runs, QRELS, NAMES, baseline="one", unjudged=True)
    assert found.holes.table == holes.table
    assert found.significance.comparisons[0].holes.relevant == pytest.approx(
        holes.relevant["two"].means[0] - holes.relevant["one"].means[0]
    )
    more = {f"q{n}": {f"d{i}": (i + n) % 2 for i in range(9)} for n in range(20)}
    people = {qid: {d: 1 - grade for d, grade in more[qid].items()} for qid in [*more][:9]}
    of = {name: {q: {d: float(-hash_) for hash_, d in enumerate(reversed([*more[q]][k:]))} for q in more}
          for k, name in enumerate(("one", "two"))}  # fmt: skip
    found = compare(of, people, NAMES, baseline="one", predicted=more)
    scores = [{name: evaluate(run, qrels, NAMES) for name, run in of.items()} for qrels in (people, more)]
    expected = evaluate_with_predictions(*scores, "one").to_dict()
    agreed = found.to_dict().pop("agreement")
    assert found.to_dict() == {"greylag": __version__} | expected | {"agreement": agreed}
    assert agreed["judges"] == ("people", "predicted")
    assert agreed["rankings"][0]["first"] == "AP, people"
    assert agreed["kappa"] == pytest.approx(-3280 / 3281)
    assert len(found.tables()) == 4


def test_the_best_run_of_each_team_is_shown_and_tested(runs):
    """Chosen by the first measure, with the baseline; all runs are pooled."""
    many = {**runs, **{f"{name}-half": run.head(3) for name, run in runs.items()}}
    scores = {name: evaluate(run, QRELS, NAMES).means[0] for name, run in many.items()}
    teams = {"one": "x", "one-half": "x", "two": "y", "two-half": "y"}
    every = compare(many, QRELS, NAMES, baseline="two-half", unjudged=teams)
    found = every.best_of(teams)
    best = {max((n for n in many if teams[n] == team), key=scores.get) for team in "xy"}
    assert {*found.scores} == best | {"two-half"}
    assert len(found.significance.comparisons) == 2 * len(best - {"two-half"})
    whole = score_holes(many, QRELS, NAMES, teams).table
    assert [*found.holes.table.rows] == [row for name in found.scores for row in whole.rows if row[0] == name]
    refuses(lambda: found.gated("lower"), GreylagError, "every run best_of")
    refuses(found.sheets, GreylagError, "all runs best_of")
    for table in [*found.tables(wide=True), found.tables(per_query=True)[0]]:
        run = [*table.header].index("run")
        assert table.header[run + 1] == "team"
        assert {row[run] for row in table.rows} <= {*found.scores}
        assert all(row[run + 1] == teams[row[run]] for row in table.rows)
    assert found.format("csv").startswith("run,team,AP")
    assert r"run & team & AP &" in found.to_latex()
    tau = compare(many, QRELS, NAMES, other_qrels=QRELS).correlated().best_of({n: n for n in "abcd"} | teams)
    two = {name: tau.scores[name] for name in tau.scores}
    assert tau.rankings == compare_measures(two)
    assert (
        tau.agreement.rankings
        == compare({name: many[name] for name in two}, QRELS, NAMES, other_qrels=QRELS).agreement.rankings
    )
    assert "best run by AP" in str(found)
    assert found.to_dict()["best_of"] == teams
    assert ({*every.scores}, every.teams) == ({*many}, None)
    kept = {name: found.scores[name] for name in found.scores}
    alone = compare_scores(kept, "two-half")
    assert [replace(c, holes=None) for c in found.significance.comparisons] == [*alone.comparisons]
    assert found.significance.comparisons[0].holes is not None


def test_judgements_by_subtopic_have_measures_of_diversity():
    run, qrels = samples.random_subtopic_case(np.random.default_rng(3))
    found = compare({"run": run}, qrels).scores["run"]
    assert [str(measure) for measure in found.measures] == ["alpha-nDCG@10", "ERR-IA@10", "S-recall@10"]
    assert found.values.tolist() == evaluate_by_subtopic(run, qrels, found.measures).values.tolist()


def test_frames_and_notebooks(runs):
    found = compare(runs, QRELS, NAMES, baseline="one")
    frame = found.to_frame()
    assert [*frame.columns] == ["run", *NAMES]
    assert frame["AP"].tolist() == [found.scores[name].by_measure["AP"] for name in runs]
    queries = found.to_frame("polars", per_query=True)
    assert queries["P@5"].to_list() == [value for one in found.scores.values() for value in one.values[:, 1].tolist()]
    assert repr(found) == f"<Evaluation of one, two: Means over {len(QRELS)} judged queries.>"
    assert found._repr_html_().count("<table>") == 2


def test_warnings_are_kept_and_logged(runs, caplog):
    new = Run(
        tuple(
            Ranking(q, "", (*(f"new{n}" for n in range(5)), *r.docids), np.arange(5 + len(r), 0, -1))
            for q, r in runs["one"].items()
        )
    )
    found = compare({**runs, "copy": runs["one"], "new": new}, QRELS, NAMES)
    same, unjudged = found.warnings
    assert same == "one and copy are the same rankings"
    assert "of new, " in unjudged
    assert caplog.messages == [*found.warnings]


def test_runs_without_common_topics_are_warned_of(runs, caplog):
    odd, even = ({qid: runs["one"][qid] for qid in [*QRELS][n::2] if qid in runs["one"]} for n in (0, 1))
    halves = {"odd": Run(tuple(odd.values())), "even": Run(tuple(even.values()))}
    found = compare(halves | {"one": runs["one"]}, QRELS, NAMES, baseline="odd")
    assert [warning for warning in found.warnings if "topic in common" in warning] == [
        "not compared: even and odd rank no topic in common"
    ]


def test_tables_of_a_paper_have_labels_of_their_own(runs):
    parts = {"a": compare(runs, QRELS, ["AP"]), "b": compare(runs, QRELS, ["P@5"])}
    shown = Collections(parts).format("latex")
    assert re.findall(r"\\label{(.*)}", shown) == ["tab:greylag", "tab:greylag-2"]


def test_one_run_has_agreement_without_tau(runs, recwarn):
    other = {qid: {docid: 1 - min(grade, 1) for docid, grade in of.items()} for qid, of in QRELS.items()}
    found = compare({"one": runs["one"]}, QRELS, NAMES, other_qrels=other)
    assert (found.agreement.rankings, len(found.agreement.tables), len(recwarn)) == ((), 1, 0)
    assert found.agreement.kappa is not None


def test_a_table_by_team_says_so(runs):
    teams = True, dict.fromkeys(runs, "t")
    by_run, by_team = (compare(runs, QRELS, NAMES, unjudged=given).holes for given in teams)
    assert "no other run has in" in by_run.table.caption
    assert "no run of another team has in" in by_team.table.caption
    assert "its team not been pooled" in by_team.table.caption


RUN = Run((Ranking("1", "", ("a",), [1.0]), Ranking("2", "", ("a",), [1.0])))
TWO = {"a": RUN, "b": RUN.head(0)}
MOVED = {"a": RUN, "b": Run(tuple(Ranking(qid, "", ("b", "a"), [2.0, 1.0]) for qid in "12"))}
JUDGED = {"1": {"a": 1}, "2": {"b": 1}}
SUBTOPICS = {"1": {"s": {"a": 1}}, "2": {"s": {"a": 1}}}


VIEWS = [
    lambda corrected: corrected.correlated(),
    lambda corrected: corrected.by_category({"1": "x"}),
    lambda corrected: corrected.best_of({"a": "x", "b": "y"}),
]


def corrected():
    """An evaluation whose means are corrected."""
    scores = {name: evaluate(run, JUDGED) for name, run in MOVED.items()}
    return Evaluation(scores, corrections=Corrections(1, 1, (), ()))


ODD_NAMES = (1, None, ("a", 1), "", "a\nb", "a\r", "a\u2028b")


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: compare([RUN, RUN], JUDGED), ("by name",)),
        (lambda: compare(RUN, JUDGED), ("by name",)),
        (lambda: compare({}, JUDGED), ("by name",)),
        (lambda: compare({"a": evaluate(RUN, JUDGED)}, JUDGED), ("compare_scores",)),
        (lambda: compare(TWO, JUDGED, []), ("no measures",)),
        (lambda: compare(TWO, JUDGED, {"AP"}), ("measures", "set")),
        (lambda: compare({"a": "no.run", "b": RUN}, JUDGED, baseline="c"), ("'c'", "a, b")),  # before runs are read
        (lambda: compare({"a": RUN}, JUDGED, all_pairs=True), ("'a'",)),
        (lambda: compare(TWO, JUDGED, baseline="a", all_pairs=True), ("all_pairs", "'a'")),
        *((lambda name=name: compare({name: "no.run", "b": RUN}, JUDGED), (repr(name), "line")) for name in ODD_NAMES),
        (lambda: Evaluation({1: evaluate(RUN, JUDGED)}), ("int 1",)),  # type: ignore[dict-item]
        (lambda: compare(TWO, JUDGED).gated("lower"), ("fail_if", "baseline")),
        (lambda: compare(TWO, JUDGED, all_pairs=True).gated("lower"), ("fail_if", "baseline")),
        (lambda: compare(TWO, JUDGED, baseline="a").gated("low"), ("fail_if", "'low'")),
        (lambda: compare(TWO, JUDGED).by_category({"9": "x"}), ("'9'",)),
        (lambda: compare(MOVED, JUDGED, baseline="a").gated(0.1), ("fail_if 0.1", "5 topics, not 2", "give more")),
        (
            lambda: compare(MOVED, JUDGED, baseline="a").by_category({"1": "x"}).gated("worse"),
            ("category x: ", "2 topics, not 1", "another category"),
        ),
        *(
            (lambda given=given: compare(TWO, JUDGED, baseline="a").gated(given), ("fail_if", "perhaps 0.02"))
            for given in (2, "2")
        ),
        (lambda: compare({"a": "no.run", "b": RUN}, JUDGED, baseline="a", margin=2), ("perhaps 0.02",)),
        (lambda: compare(TWO, JUDGED).by_category({"1": "all"}), ("category", "'all'")),
        (lambda: compare(TWO, JUDGED).by_category({"1": "run"}), ("category", "'run'")),
        (lambda: compare({"mean": (TWO, JUDGED)}), ("collection", "'mean'")),
        (lambda: compare(TWO, JUDGED).ordered(["b", "c"]), ("order", "lacks a")),
        *((lambda view=view: view(corrected()), ("predicted", "leave")) for view in VIEWS),
        (lambda: compare(TWO, JUDGED, ["alpha-nDCG@5"]), ("alpha-nDCG@5", "read_subtopic_qrels")),
        (lambda: compare(TWO, SUBTOPICS, unjudged=True), ("1", "'s'")),
        (lambda: compare(TWO, JUDGED, predicted=JUDGED, unjudged=True), ("unjudged",)),
        (lambda: compare(TWO, JUDGED, predicted=JUDGED), ("nothing to correct",)),
        (lambda: compare({"x": (TWO, JUDGED)}, other_qrels=JUDGED), ("other_qrels", "several collections")),
        (lambda: compare(TWO, JUDGED).best_of({"a": "x"}), ("teams", "no team of b")),
        (lambda: compare(TWO, JUDGED, ["AP"]).correlated(), ("tau", "two")),
        (lambda: compare({"a": RUN}, JUDGED).correlated(), ("tau", "two")),
        (lambda: compare(TWO, JUDGED, other_qrels={"9": {"a": 1}}), ("no topic in common",)),
        (lambda: compare(TWO, SUBTOPICS, other_qrels=JUDGED), ("1", "'s'")),
        (lambda: compare({"a": "no.run", "b": RUN}, JUDGED), ("no.run", "1 of 2")),
        (lambda: compare({"a": "no.run", "b": [RUN]}, JUDGED), ("2 of 2",)),
        (lambda: compare({"a": {"9": {"a": 1.0}}}, JUDGED), ("a: ", "9", "1, 2")),
        (lambda: compare(TWO, [RUN]), ("judgements", "list")),
        (lambda: compare(TWO), ("judgements", "nfcorpus")),
        (lambda: compare({"x": (TWO, JUDGED)}, JUDGED), ("judgements", "nfcorpus")),
        (lambda: compare({"x": (TWO, JUDGED), "y": ({"a": RUN}, JUDGED)}), ("x and y", "b")),
        (
            lambda: compare({"x": (TWO, JUDGED), "y": ({"a": {"9": {"a": 1.0}}, "b": RUN}, JUDGED)}),
            ("collection y", "9"),
        ),
        (lambda: compare({"x": (TWO, JUDGED)}, predicted=JUDGED), ("several collections",)),
        (lambda: compare(TWO, JUDGED, baseline={"a"}), ("baseline", "set")),  # type: ignore[arg-type]
        (lambda: compare(TWO, JUDGED).format("doc"), ("form", "'doc'", "latex")),
        (lambda: compare(TWO, JUDGED).format("parquet"), ("to_parquet",)),
        (lambda: Evaluation({}), ("no scores",)),
        (lambda: Evaluation({"a": evaluate(RUN, JUDGED), "b": evaluate(RUN, JUDGED, ["AP"])}), ("'a'", "'b'")),
    ],
)
def test_refused(call, parts):
    refuses(call, GreylagError, "|".join(parts), "|")


def test_runs_are_best_first_after_the_baseline():
    """By the first measure, whatever their order; a list has the runs' tags."""
    runs = [Run(samples.random_case(np.random.default_rng(seed))[0].rankings, f"r{seed}") for seed in range(5)]
    means = {run.tag: evaluate(run, QRELS, NAMES).means[0] for run in runs}
    best = sorted(means, key=lambda name: -means[name])
    assert [*compare(runs, QRELS, NAMES).scores] == best
    assert [*compare(runs, QRELS, NAMES).ordered(means).scores] == [*means]
    found = compare(runs, QRELS, NAMES, baseline=best[2])
    assert [*found.scores] == [best[2], *best[:2], *best[3:]]
    assert [row[0] for row in found.tables()[0].rows] == [*found.scores]
    assert str(found).endswith(found.verdict)


def test_a_gate_is_a_form_of_its_own(runs):
    categories = {qid: "odd" if n % 2 else "even" for n, qid in enumerate(QRELS)}
    found = compare(runs, QRELS, NAMES, baseline="one").by_category(categories).gated("lower")
    assert str(found) == str(found.gate)
    assert {check.topics for check in found.gate.checks} == {"all", "even", "odd"}
    content = json.loads(found.format("json"))
    assert content["gate"]["passed"] == found.gate.passed
    odd = found.scores["two"].values[1::2, 0].mean()
    assert content["categories"]["odd"]["two"]["AP"] == pytest.approx(odd)
    assert "Means by category" in str(replace(found, gate=None))


def test_csv_is_read_as_the_frame(runs):
    one_collection = compare({"c": (runs, QRELS)}, measures=NAMES, baseline="one")
    tested = compare(runs, QRELS, NAMES, all_pairs=True), compare(runs, QRELS, NAMES, baseline="one")
    for found in (*tested, one_collection):
        for per_query in (False, True):
            read = pandas.read_csv(io.StringIO(found.format("csv", per_query=per_query)))
            pandas.testing.assert_frame_equal(read, found.to_frame(per_query=per_query), check_dtype=False)


def test_json_is_read_again(runs):
    found = compare(runs, QRELS, NAMES, all_pairs=True, unjudged=True)
    content = json.loads(found.format("json"))
    views = "unjudged_at_10 unretrieved holes".split()
    assert {*content} == {"greylag", "trec_eval", "runs", "digests", "significance", *views}
    assert content["runs"]["one"]["means"] == found.scores["one"].by_measure
