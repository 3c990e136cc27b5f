"""Every road by which a gate says "passed", tried with a run that must fail, and with one that must pass.

A run is worse on all topics, or on those of one category alone, where means over all topics are higher.
"""

import json
import re
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from greylag import __version__, compare, write_run
from greylag.base import Ranking, Run
from greylag.cli.evaluate import _prepare
from greylag.evaluation import Scores, compare_scores, parse_measure, read_evaluation
from greylag.evaluation.reports.gate import Floors, check_gate
from tests.greylag.cli.conftest import write_qrels
from tests.greylag.evaluation.reports.test_gate import check
from tests.refusals import refuses

QIDS, DOCIDS = [f"q{n}" for n in range(20)], [f"d{n}" for n in range(12)]
QRELS = {qid: {docid: int(n < 3) for n, docid in enumerate(DOCIDS)} for qid in QIDS}
CATEGORIES = {qid: "hard" if n < 8 else "easy" for n, qid in enumerate(QIDS)}
MEASURES = "nDCG@5", "unj@5"  # of the second, less is better


def ranking(qid, place):
    """Relevant documents from a place on, below documents that are not judged."""
    others = [f"new{n}" for n in range(9)]
    return Ranking(qid, "", (*others[:place], *DOCIDS[:3], *others[place:]), np.arange(12.0, 0, -1))


def make(place_in):
    """A run with relevant documents from a place on that depends on the category and, a little, on the topic."""
    return Run(tuple(ranking(qid, place_in[CATEGORIES[qid]] + n % 2) for n, qid in enumerate(QIDS)))


RUNS = {
    "then": make({"hard": 0, "easy": 3}),
    "before": make({"hard": 0, "easy": 3}),
    "same": make({"hard": 0, "easy": 3}),
    "worse": make({"hard": 4, "easy": 5}),
    "worse in one": make({"hard": 3, "easy": 0}),
    "better": make({"hard": 0, "easy": 0}),
}
RULES = "lower", "worse", "0.1"
TESTS, CORRECTIONS = ("t", "wilcoxon", "randomization"), ("holm", "bh")


@dataclass(frozen=True)
class Road:
    """How a run is held against baselines."""

    rule: str
    test: str
    correction: str
    baselines: tuple[str, ...]
    categories: bool
    earlier: bool  # whether the baselines are JSON of an evaluation

    def files(self, folder):
        """The baselines' files."""
        if self.earlier:
            return {name: folder / f"{name}.json" for name in self.baselines}
        return {name: folder / f"{name}.run" for name in self.baselines}


ROADS = [
    Road(*road)
    for road in product(RULES, TESTS, CORRECTIONS, [("then",), ("then", "before")], [False, True], [False, True])
]


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Runs, judgements, categories, and evaluations of the baselines."""
    folder = tmp_path_factory.mktemp("gate")
    write_qrels(QRELS, folder / "qrels.txt")
    (folder / "kinds.csv").write_text("".join(f"{qid},{name}\n" for qid, name in CATEGORIES.items()))
    for name, run in RUNS.items():
        write_run(run, folder / f"{name}.run")
        (folder / f"{name}.json").write_text(compare({name: run}, QRELS, MEASURES).format("json"))
    return folder


def gate(road, run, folder, measures=MEASURES):
    """The gate in Python."""
    runs = {**road.files(folder), "mine": run}
    found = compare(runs, QRELS, measures, test=road.test, correction=road.correction, baseline=road.baselines)
    return (found.by_category(CATEGORIES) if road.categories else found).gated(road.rule).gate


@pytest.mark.parametrize("road", ROADS)
def test_a_run_that_is_worse_fails_on_every_road(road, folder):
    found = gate(road, RUNS["worse"], folder)
    assert [check.failed for check in found.checks] == [True] * len(found.checks)
    assert len(found.checks) == 2 * len(road.baselines) * (3 if road.categories else 1)
    found = gate(road, RUNS["worse in one"], folder)
    failed = {(check.topics, check.baseline, check.measure) for check in found.checks if check.failed}
    if road.categories:
        assert failed >= {*product(["hard"], road.baselines, MEASURES)}
        assert not any(topics == "easy" for topics, *_ in failed)
    elif road.rule != "0.1":
        assert found.passed
    assert gate(road, RUNS["better"], folder).passed
    same = gate(road, RUNS["same"], folder)
    assert same.passed
    assert {check.note for check in same.checks} == {"identical"}
    assert f"; {len(same.checks)} identical, " in str(same)


@pytest.mark.parametrize("road", ROADS[::7])
def test_the_shell_fails_alike(road, folder, command):
    for name in ("worse", "worse in one", "better", "same"):
        words = ["evaluate", "--qrels", folder / "qrels.txt", f"mine={folder / f'{name}.run'}", "--fail-if", road.rule]
        words += [word for measure in MEASURES for word in ("-m", measure)]
        words += [word for label, path in road.files(folder).items() for word in ("--baseline", f"{label}={path}")]
        words += ["--test", road.test, "--correction", road.correction]
        words += ["--categories", folder / "kinds.csv"] if road.categories else []
        found = gate(road, RUNS[name], folder)
        code, out, _ = command(*words)
        assert (code, out) == (0 if found.passed else 3, f"{found}\n")
        code, out, _ = command(*words, "--format", "json")
        assert code == (0 if found.passed else 3)
        assert json.loads(out)["gate"] == json.loads(json.dumps(found.to_dict(), allow_nan=False))
        assert command(*words, "--format", "csv")[0] == code


BEGINNINGS = {
    "text": r"gate failed for 2 <b>: 3 of 7 checks fail; .*, or below its floor; 1 topics have .*\ntopics ",
    "csv": r"gate,topics,run,.*\nfailed,",
    "tsv": r"gate\ttopics\trun\t.*\nfailed\t",
    "markdown": r"\*\*gate failed for 2 \\<b\\>: 3 of 7 checks fail; .*\*\*\n\n\| gate \| topics ",
    "latex": r"% gate failed for 2 <b>: 3 of 7 checks fail; .*\n% topics .*\n",
    "json": r'{\n "gate": {\n  "passed": false,',
    "html": r"(?s).*<section>\n<h2 id=.section-1.>Gate</h2>\n<p>gate failed for 2 &lt;b&gt;: 3 of 7 checks fail; ",
    "junit": r'<\?xml .*\n<testsuites>\n<testsuite name="greylag 2 &lt;b&gt;" tests="7" failures="3" ',
}


@pytest.mark.parametrize("form", BEGINNINGS)
def test_a_failed_gate_is_what_each_form_begins_with(form, folder, command, tmp_path):
    (tmp_path / "kinds.csv").write_text("".join(f"{qid},{name}\n" for qid, name in [*CATEGORIES.items()][1:]))
    words = ["evaluate", "--qrels", folder / "qrels.txt", f"mine={folder / 'worse in one.run'}", "--fail-if", "lower"]
    words += ["--baseline", folder / "then.json", "--floor", "nDCG@5 >= .9", "--release", "2 <b>"]
    words += ["-m", "unj@5", "--categories", tmp_path / "kinds.csv"]
    code, out, err = command(*words, "--format", form)
    assert (code, bool(re.match(BEGINNINGS[form], out))) == (3, True), (out[:600], err)
    assert (err == "") == (form in ("text", "json"))
    assert command(*words, "--format", form)[1] == out
    if form == "junit":
        cases = ElementTree.fromstring(out).findall(".//testcase")
        assert [len(case) for case in cases] == [1] * 3 + [0] * 4
        assert {(case.get("classname"), case.get("name").rpartition(" by ")[2]) for case in cases} == {
            *product(["all", "easy", "hard"], MEASURES)
        }
    if form == "json":
        content = json.loads(out)
        assert (content["greylag"], content["release"]) == (__version__, "2 <b>")
        assert content["gate"]["topics_without_category"] == 1
        (tmp_path / "now.json").write_text(out)
        assert read_evaluation(tmp_path / "now.json").release == "2 <b>"


@pytest.mark.parametrize(
    ("words", "part"),
    [
        ("--floor nDCG@5", "MEASURE=SCORE"),
        ("--floor nDCG@5=.1 --floor nDCG@5=.2", "given twice"),
        ("--floor low:nDCG@5=.1 --floor nDCG@5=.2", "nDCG@5 is given twice"),
        ("--format junit", "--format junit needs --fail-if or --floor"),
        ("--release a\nb", "one line"),
    ],
)
def test_words_of_a_gate_that_are_refused(words, part, folder, refused):
    assert part in refused("evaluate", "--qrels", folder / "qrels.txt", folder / "worse.run", *words.split(" "))


def test_a_gate_on_topics_without_a_ranking(folder, command, refused, tmp_path):
    """By itself, which needs no baseline, and beside a rule that passes; of one evaluation, several forms."""
    qrels, lacking = folder / "qrels.txt", Run(RUNS["better"].rankings[3:])
    write_run(Run((*lacking.rankings, *RUNS["better"].head(0).rankings[2:3])), tmp_path / "mine.run")
    words = ["evaluate", "--qrels", qrels, "-m", "nDCG@5", "--fail-if", "missing"]
    assert command(*words, folder / "better.run")[0] == 0
    beside = ["--baseline", f"then={folder / 'then.run'}", "--fail-if", "0.1"]
    files = {form: tmp_path / f"gate.{form}" for form in ("junit", "json", "markdown", "text")}
    forms = [word for form, path in files.items() for word in ("--format", f"{form}={path}")]
    for more, number in (([], 1), ([*beside, *forms], 2)):
        code, out, err = command(*words, f"mine={tmp_path / 'mine.run'}", *more)
        assert (code, err) == (3, "")
        means = "a mean is not shown to be at most 0.1 worse .*, or " * (number > 1)
        assert re.match(f"gate failed: 1 of {number} checks fail; a check fails if {means}a topic has no ranking;", out)
        assert re.search(r"mine +all topics +topics ranked +0\.8500 +-0\.1500 .*no ranking for q0, q1, q2$", out, re.M)
    for form, path in files.items():
        assert path.read_text() == command(*words, f"mine={tmp_path / 'mine.run'}", *beside, "--format", form)[1]
    assert command(*words, folder / "none.run", *forms)[0] == 2
    assert not any(path.exists() for path in files.values())  # of the call before
    (tmp_path / "link").symlink_to(tmp_path / "target")
    (tmp_path / "target").write_text("passed")
    with (tmp_path / "printed").open("w") as out:
        files = {tmp_path / "link": "junit", Path(f"/dev/fd/{out.fileno()}"): "text"}
        _prepare("text", files, gated=True)
    assert ((tmp_path / "link").is_symlink(), (tmp_path / "target").exists()) == (True, False)
    assert (tmp_path / "printed").exists()
    found = compare({"mine": lacking, "then": RUNS["then"]}, QRELS, ["nDCG@5"], baseline="then")
    refuses(lambda: found.gated("lower").best_of({}), Exception, "call best_of before gated")
    others = {qid: {docid: 1.0 for docid, grade in grades.items() if grade < 1} for qid, grades in QRELS.items()}
    nothing = compare({"mine": lacking, "then": others}, QRELS, ["AP"], baseline="then")
    refuses(lambda: nothing.gated("lower"), Exception, "no run could fail, as then has the worst AP that there is")
    assert [check.failed for check in found.gated([0.1, "missing"]).gate.checks] == [True, False]
    assert found.gated(0.1).gate.passed
    for rules in (["lower", 0.1], ["missing", "missing"], ["lower", "worse", "missing"]):
        refuses(lambda: found.gated(rules), Exception, f"fail_if is {rules[0]} and {rules[1]}".split(" and lower")[0])  # noqa: B023
    run = folder / "better.run"
    for more, part in (
        (["json", "csv"], "write csv=FILE"),
        (["json="], "names no file"),
        (["json=a", "csv=a"], "names a file twice"),
        ([f"json={qrels}"], "is the input"),
        ([f"text={tmp_path / 'x'}", f"csv={tmp_path / '.' / 'x'}"], "names a file twice"),
    ):
        assert part in refused(*words, run, *(word for form in more for word in ("--format", form)))


ABSENT = {
    "empty": (Run(()), "mine did not run, as it ranks no topic"),
    "empty rankings": (RUNS["better"].head(0), "mine did not run, as it ranks no topic"),
    "other topics": (Run(tuple(RUNS["better"][qid] for qid in QIDS[10:])), "mine and half rank no topic in common"),
}


@pytest.mark.parametrize("kind", ABSENT)
@pytest.mark.parametrize("measures", [("nDCG@5",), ("unj@5",), ("utility",)])
@pytest.mark.parametrize("rule", RULES)
@pytest.mark.parametrize("turned", [False, True])
def test_a_run_that_did_not_run_fails_every_gate(kind, measures, rule, turned):
    """Though its scores may be better: no document is unjudged, and none lowers utility. So does any against it."""
    run, reason = ABSENT[kind]
    half = Run(tuple(RUNS["worse"][qid] for qid in QIDS[:10]))
    runs = {"half": run, "mine": half} if turned else {"half": half, "mine": run}
    if turned and kind != "other topics":
        reason = reason.replace("mine", "half")
    found = compare(runs, QRELS, measures, baseline="half").by_category(CATEGORIES).gated(rule)
    assert not found.gate.passed
    assert {(check.failed, check.note, check.p) for check in found.gate.checks} == {(True, reason, None)}
    assert reason in str(found.gate)
    assert {check["note"] for check in found.to_dict()["gate"]["checks"]} == {reason}
    assert found.verdict.startswith("mine is not compared with half")
    assert f"not compared: {reason}" in found.warnings


@pytest.mark.parametrize("rule", RULES)
def test_a_category_that_a_run_lacks_fails(rule):
    """Also where it has the baseline's score, 0. A category that no run finds anything for does not."""
    then, easy = RUNS["then"], [qid for qid in QIDS if CATEGORIES[qid] == "easy"]
    useless = Run(tuple(then[qid] if qid in easy else Ranking(qid, "", ("x",), [1.0]) for qid in QIDS))
    some = Run(tuple(then[qid] for qid in easy))
    for runs, passed in (((useless, some), False), ((some, some), True), ((some, useless), True)):
        named = dict(zip(("then", "mine"), runs, strict=True))
        found = compare(named, QRELS, ["nDCG@5"], baseline="then").by_category(CATEGORIES).gated(rule).gate
        assert [check.topics for check in found.checks if check.failed] == ([] if passed else ["hard"])
        if not passed:
            assert found.checks[0].note == "mine did not run, as it ranks no topic"


def few(n, worse=0.1, baseline=0.9):
    """Scores on n topics, all lower, with some variance."""
    measure, values = parse_measure("AP"), np.full((n, 1), baseline) + np.linspace(0, 0.05, n)[:, None]
    lower = values - worse - np.linspace(0, 0.01, n)[:, None]
    return {name: Scores((measure,), (*QIDS[:n],), one, (), ()) for name, one in (("then", values), ("mine", lower))}


@pytest.mark.parametrize("n", range(2, 8))
@pytest.mark.parametrize("fail_if", [0.05, 0.5])
def test_a_margin_needs_five_topics(n, fail_if):
    """Of fewer, t would show one that holds; a run with the baseline's scores passes, whatever their number."""
    found = few(n)
    same = {"then": found["then"], "mine": found["then"]}
    assert check({"all": same}, compare_scores(same, "then"), fail_if).passed
    tests = compare_scores(found, "then")
    if n < 5:
        parts = f"fail_if {fail_if}|at least 5 topics, not {n}|no exact test"
        refuses(lambda: check({"all": found}, tests, fail_if), Exception, f"{parts}|give more", "|")
        whole = few(20)
        tests, both = compare_scores(whole, "then"), {"all": whole, "new": found}
        refuses(lambda: check(both, tests, fail_if), Exception, f"category new: {parts}|another category", "|")
    else:
        assert check({"all": found}, tests, fail_if).passed == (fail_if == 0.5)


@pytest.mark.parametrize("test", ["wilcoxon", "randomization"])
@pytest.mark.parametrize(("n", "copies", "needed"), [(4, 1, 5), (5, 2, 6), (6, 4, 7), (5, 1, None), (7, 4, None)])
def test_an_exact_test_that_could_find_nothing_worse_is_refused(test, n, copies, needed):
    """By Holm's correction over as many checks, all topics worse have p = copies / 2^n."""
    found = few(n)
    found |= {f"mine{copy}": found["mine"] for copy in range(1, copies)}
    tests = compare_scores(found, "then", test=test)
    call = lambda: check({"all": found}, tests, "worse")  # noqa: E731
    if needed:
        refuses(call, Exception, f"on {n} topics|{copies} checks|at least {needed}|give more topics", "|")
    else:
        assert {(check.p, check.failed) for check in call().checks} == {(copies / 2**n, True)}
    assert not check({"all": found}, tests, "lower").passed


@pytest.mark.parametrize("sign", [1, -1])
def test_a_margin_as_wide_as_the_baseline_is_good_is_refused(sign):
    """No run is worse by it, not even one that finds nothing."""
    measure = parse_measure("AP" if sign == 1 else "subtopic-loss@5")
    poor = np.linspace(0.01, 0.03, 20)[:, None]
    values = {"then": poor, "mine": np.zeros((20, 1))}
    found = {
        name: Scores((measure,), (*QIDS[:20],), one if sign == 1 else 1 - one, (), ()) for name, one in values.items()
    }
    tests = compare_scores(found, "then")
    refuses(lambda: check({"all": found}, tests, 0.02), Exception, f"0.02 is not below 0.02|{measure}|then", "|")
    assert not check({"all": found}, tests, 0.015).passed


@pytest.mark.parametrize("fail_if", ["lower", "worse", 0.05])
@pytest.mark.parametrize("correction", CORRECTIONS)
@pytest.mark.parametrize("test", TESTS)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, -1e308])
def test_a_p_that_is_no_number_never_passes(fail_if, correction, test, value):
    """Scores that are none are refused before; here they are put where the tests' are."""
    found = few(20, worse=-0.05)
    tests = compare_scores(found, "then", test=test, correction=correction)
    assert check({"all": found}, tests, fail_if).passed
    found["mine"].values[3] = value
    found["then"].values[3] = 1e308 if value == -1e308 else 0.9  # the difference is infinite
    gate = check({"all": found}, tests, fail_if)
    assert not gate.passed
    assert not gate.to_dict()["passed"]
    if value != np.inf:  # which is above any floor
        floors = Floors.parse({"AP": 1e-9}), Floors.parse({"low:AP": 1e-9})
        assert not any(check_gate({"all": found}, tests, (), floor).passed for floor in floors)
