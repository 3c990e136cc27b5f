"""The JSON of an evaluation stands for the run that it scored."""

import json
import re
from functools import reduce
from operator import getitem

import numpy as np
import pytest

from greylag.base import GreylagError
from greylag.evaluation import compare, read_evaluation
from greylag.evaluation.reports.earlier import digests
from tests.greylag.evaluation.scoring import samples
from tests.refusals import refuses

NAMES = ["AP", "P@5"]
RUNS = {name: samples.random_case(np.random.default_rng(seed))[0] for seed, name in enumerate(("one", "two", "three"))}
QRELS = samples.random_case(np.random.default_rng(0))[1]


@pytest.mark.parametrize("before", [["one"], ["two", "one"]])
def test_scores_are_those_of_the_run(tmp_path, before):
    """Of the run that was not the baseline, or that has the name; in any order of judgements and measures."""
    path, baseline = tmp_path / "last.json", before[0] if before[1:] else None
    path.write_text(compare({name: RUNS[name] for name in before}, QRELS, NAMES, baseline=baseline).format("json"))
    back = {qid: dict(reversed(grades.items())) for qid, grades in reversed(QRELS.items())}
    found, expected = (
        compare({"then": then, "three": RUNS["three"]}, back, NAMES[::-1], baseline="then")
        for then in (path, RUNS["one"])
    )
    assert found.significance.comparisons == expected.significance.comparisons
    assert found.scores["then"].qids == tuple(back)
    assert {*found.scores["then"].missing} == {*expected.scores["then"].missing}
    for name in before:
        named = compare({name: path}, QRELS, NAMES).scores[name]
        assert named.values.tolist() == compare(RUNS, QRELS, NAMES).scores[name].values.tolist()


def test_a_baseline_of_another_version_is_told(tmp_path, caplog):
    """Of another minor version, whose measures may have changed; figures are as they were."""
    path, content = tmp_path / "last.json", json.loads(compare({"one": RUNS["one"]}, QRELS, NAMES).format("json"))
    for of, told in (({}, []), ({"greylag": "0.1.9"}, []), ({"greylag": "0.0.9"}, ["greylag 0.0.9"]),
                     ({"greylag": "0.2.0", "trec_eval": "9.0.8"}, ["greylag 0.2.0", "trec_eval 9.0.8"])):  # fmt: skip
        caplog.clear()
        path.write_text(json.dumps(content | of))
        found = compare({"one": path, "two": RUNS["two"]}, QRELS, NAMES, baseline="one")
        assert found.scores["one"].means.tolist() == compare(RUNS, QRELS, NAMES).scores["one"].means.tolist()
        assert re.findall(r" is by ([^,]*),", " ".join(caplog.messages)) == told


@pytest.mark.parametrize("options", [{}, {"baseline": "one"}, {"baseline": ["one", "two"]}, {"all_pairs": True}])
@pytest.mark.parametrize("test", ["t", "randomization"])
def test_a_saved_evaluation_has_the_same_methods(tmp_path, options, test):
    """All of them give the same bytes as those of the one that was saved."""
    margin = 0.1 if options else None
    saved, path = compare(RUNS, QRELS, NAMES, test=test, margin=margin, correction="bh", **options), tmp_path / "a.json"
    path.write_text(saved.format("json"))
    found = read_evaluation(path)
    kinds, teams = {qid: f"kind {n % 2}" for n, qid in enumerate(QRELS)}, {"one": "x", "two": "x", "three": "y"}
    views = [
        lambda value: value,
        lambda value: value.by_category(kinds),
        lambda value: value.correlated(),
        lambda value: value.ordered(RUNS).correlated(),
        lambda value: value.by_category(kinds).best_of(teams),
    ]
    if "baseline" in options:
        views += [lambda value, rule=rule: value.by_category(kinds).gated(rule) for rule in ("lower", "worse", 0.05)]
    for view in views:
        for form in ("text", "json", "latex", "tsv"):
            assert view(found).format(form) == view(saved).format(form)
    found.best_of(teams).to_frame()
    (tmp_path / "b.json").write_text(found.best_of(teams).format("json"))
    assert read_evaluation(tmp_path / "b.json").format("json") == found.best_of(teams).format("json")


@pytest.mark.parametrize("gate", [{"fail_if": 0.05}, {"floors": {"P@5": 0.99}}, {"floors": {"P@5": 0.0001}}])
def test_a_gates_own_json_is_the_next_baseline(tmp_path, gate):
    path = tmp_path / "last.json"
    path.write_text(
        compare({"one": RUNS["one"], "two": RUNS["two"]}, QRELS, NAMES, baseline="one").gated(**gate).format("json")
    )
    found = compare({"then": path, "three": RUNS["three"]}, QRELS, NAMES, baseline="then")
    expected = compare({"then": RUNS["two"], "three": RUNS["three"]}, QRELS, NAMES, baseline="then")
    assert found.significance.comparisons == expected.significance.comparisons


def test_what_cannot_be_read_as_an_evaluation_is_refused(tmp_path):
    path, found = tmp_path / "a.json", compare(RUNS, QRELS, NAMES, baseline="one")
    write = lambda change: path.write_text(json.dumps(change(json.loads(found.format("json")))))  # noqa: E731
    for change, part in (
        (lambda content: {"parts": {"x": content}}, "several collections"),
        (lambda content: content | {"runs": content["runs"] | {"one": {"means": {}, "per_query": {}}}}, "one"),
        (lambda content: content | {"significance": content["significance"] | {"test": "sign"}}, "significance.test"),
    ):
        write(change)
        refuses(lambda: read_evaluation(path), GreylagError, f"a.json {part}")
    write(lambda content: content | {"significance": content["significance"] | {"comparisons": []}})
    assert read_evaluation(path).significance.all_pairs
    refuses(lambda: read_evaluation(tmp_path / "none.json"), GreylagError, "none.json")


def test_digests_are_of_contents():
    whole = digests(QRELS)
    qid, docid = next((qid, docid) for qid, grades in QRELS.items() for docid in grades)
    changed = {**QRELS, qid: {**QRELS[qid], docid: QRELS[qid][docid] + 1}}
    assert digests({qid: QRELS[qid] for qid in reversed(QRELS)}) == whole
    assert [digests(changed)[name] == whole[name] for name in ("topics", "judgements")] == [True, False]
    assert digests({**QRELS, "new": {}})["topics"] != whole["topics"]


@pytest.mark.parametrize(
    ("change", "parts"),
    [
        (lambda of: of["digests"].update(judgements="0"), "judgements"),
        (lambda of: of["digests"].update(topics="0"), "topics"),
        (lambda of: of["runs"].update(more=of["runs"]["one"]), "one=/"),
        (lambda of: of["runs"]["one"]["means"].pop("AP"), "one has means or scores by other measures"),
        (lambda of: of["runs"]["one"]["means"].update(AP=0.123), "one has AP 0.123, but its scores"),
        (lambda of: of["runs"]["one"]["per_query"].popitem(), "one"),
        (lambda of: of["runs"]["one"].update(per_query=3), "json runs.one.per_query"),
        (lambda of: of.pop("digests"), "json digests"),
        (lambda of: of.update(runs={}), "no runs"),
        (lambda of: of.update(parts=dict(of)), "several collections"),
        (lambda of: of.update(significance=None), "json significance"),
        *(
            (lambda of, bad=bad: of["runs"]["one"]["per_query"]["q3"].update(AP=bad), f"AP of q3 in one is {bad:g}")
            for bad in (float("nan"), float("inf"), float("-inf"), -5, 1.001, 10**300)
        ),
    ],
)
def test_refused(tmp_path, change, parts):
    content = compare({"one": RUNS["one"]}, QRELS, NAMES).to_dict()
    change(content)
    (tmp_path / "last.json").write_text(json.dumps(content))
    refuses(lambda: compare({"last": tmp_path / "last.json"}, QRELS, NAMES), GreylagError, f"last.json {parts}")


def test_measures_are_some_of_those_that_it_has(tmp_path):
    """Without any, all of them; in another order, or one alone, of a baseline, too."""
    path, names = tmp_path / "last.json", ["nDCG@10", "P@5", "utility"]
    path.write_text(compare({"one": RUNS["one"]}, QRELS, names).format("json"))
    for measures in (None, ["P@5"], ["utility", "nDCG@10"]):
        found = compare({"then": path, "two": RUNS["two"]}, QRELS, measures, baseline="then")
        expected = compare({"then": RUNS["one"], "two": RUNS["two"]}, QRELS, measures or names, baseline="then")
        assert [str(m) for m in found.scores["then"].measures] == (measures or names)
        assert found.significance.comparisons == expected.significance.comparisons
    refuses(lambda: compare({"then": path}, QRELS, ["AP", "P@5"]), GreylagError, "last.json nDCG@10 not AP")
    path.write_text(path.read_text().replace('"utility"', '"mine"'))
    refuses(lambda: compare({"then": path}, QRELS), GreylagError, "last.json 'mine'")


def test_scores_above_a_greedy_ranking_are_read_back(tmp_path):
    """In the range of the measure, though above 1."""
    covers = {"1": "b", "2": "cb", "3": "a", "4": "ca"}  # greedily c comes first, the last of three that are alike
    qrels = {"q": {subtopic: dict.fromkeys(docids, 1) for subtopic, docids in covers.items()}}
    run, path = {"q": {"b": 3.0, "a": 2.0, "c": 1.0}}, tmp_path / "last.json"
    found = compare({"one": run}, qrels, ["alpha-nDCG@3"])
    path.write_text(found.format("json"))
    assert found.scores["one"].values[0, 0] > 1
    assert compare({"one": path}, qrels).scores["one"].values.tolist() == found.scores["one"].values.tolist()


def places(value, path=()):
    """The places of a JSON value, outermost first."""
    yield path
    for key, below in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from places(below, (*path, key))


OTHERS = [
    *(None, True, False, 0, -5, 10**400, 0.5, float("nan"), float("inf"), -0.0, "", "x", "0.5", "q1"),
    *([], [[]], [1], ["q1"], [[1]], [None], {}, {"AP": 0.5}, {"": {}}, {"a": {"AP": None}}),
]
EARLIER = compare({"one": RUNS["one"].head(3), "two": RUNS["two"].head(0)}, QRELS, NAMES, baseline="two").to_dict()


@pytest.mark.parametrize("part", ["runs", "digests", "significance", "unjudged_at_10", "trec_eval", ""])
def test_any_value_at_any_place_is_read_or_refused_in_a_line(tmp_path, part):
    """Read scores are in their measure's range; what a place has is taken away, and its key is another's, too."""
    path, content = tmp_path / "last.json", json.loads(json.dumps(EARLIER))
    every = [place for place in places(content) if place[:1] == ((part,) if part else ())]
    every = every if part != "significance" else [place for place in every if len(place) < 3]
    kinds, read, refused = {}, 0, []
    for place in every:  # of places that are alike, such as the scores of topics, the first
        kinds.setdefault(tuple("q" if re.fullmatch("q[0-9]+", str(key)) else key for key in place), place)
    for place in kinds.values():
        for other in [*OTHERS, "taken away", "renamed"]:
            changed = json.loads(json.dumps(content))
            *before, last = place or ("",)
            below = reduce(getitem, before, changed)
            if other == "taken away" and place:
                del below[last]
            elif other == "renamed" and isinstance(below, dict):
                below["x"] = below.pop(last, None)
            elif place:
                below[last] = other
            else:
                changed = {"": other}
            path.write_text(json.dumps(changed))
            try:
                found = compare({"one": path}, QRELS, NAMES).scores["one"]
            except GreylagError as error:
                refused.append(str(error))
                continue
            read += 1
            assert ((found.values >= 0) & (found.values <= 1)).all()
            assert all(isinstance(qid, str) for qid in (*found.missing, *found.empty, *found.unjudged))
    # A table of numbers is a run, of other topics.
    assert all(
        "\n" not in line and (str(path) in line or line.startswith("one: run 'last' and the judgements"))
        for line in refused
    )
    assert refused or part in ("unjudged_at_10", "trec_eval")
    assert read or part in ("digests", "")


@pytest.mark.parametrize("text", ["{", "{}", '{"runs": 1', '{"runs": 1, "runs": {}}', "{" + '"a":{' * 10**5])
def test_what_is_no_json_of_an_evaluation_is_refused(tmp_path, text):
    (tmp_path / "last.json").write_text(text, encoding="latin-1")
    refuses(lambda: compare({"one": tmp_path / "last.json"}, QRELS, NAMES), GreylagError, "last.json neither")


@pytest.mark.parametrize("bad", [float("nan"), float("inf"), -5, 1e308, True, "0.5", None])
@pytest.mark.parametrize("rule", ["lower", "worse", 0.05])
@pytest.mark.parametrize("turned", [False, True])
def test_no_gate_passes_by_a_crafted_score(tmp_path, bad, rule, turned):
    path = tmp_path / "last.json"
    content = compare({"one": RUNS["one"]}, QRELS, NAMES).to_dict()
    next(iter(content["runs"]["one"]["per_query"].values()))["AP"] = bad
    path.write_text(json.dumps(content))
    runs = {"mine": path, "then": RUNS["one"]} if turned else {"then": path, "mine": RUNS["one"]}
    refuses(lambda: compare(runs, QRELS, NAMES, baseline="then").gated(rule), GreylagError, "last.json")
