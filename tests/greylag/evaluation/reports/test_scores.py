"""Reports of scores and comparisons."""

import csv
import json
import math
from dataclasses import replace

import numpy as np
import pytest

from greylag import __version__
from greylag.base.core.tables import Marked, Table, as_latex, as_markdown, as_text
from greylag.evaluation import Comparison, Evaluation, Scores, Significance, compare_scores, parse_measure, to_dict
from greylag.evaluation.reports.scores import group_letters

AP, P5, LOSS = map(parse_measure, ("AP", "P@5", "subtopic-loss@5"))


def scores(values, missing=(), unjudged=(), measures=(AP, P5)):
    values = np.reshape(values, (-1, len(measures)))
    return Scores(measures, tuple(map(str, range(1, len(values) + 1))), values, missing, unjudged)


RUNS = {
    "bm25.run": scores([[0.25, 0.4], [0.5, 0.6]]),
    "mrf": scores([[0.123456, 1.0], [0.0, 0.0]], ("2",), tuple(f"x{i}" for i in range(12))),
}
MRF = Comparison("mrf", "bm25.run", AP, 0.06, -0.3133, (-0.5, -0.1), -0.8, 0.2, 0.1, -4, 0.0002, 0.00004, -1, 0, 0, 2)
SAME = Comparison("mrf", "bm25.run", P5, 0.5, 0.0, (0, 0), None, None, None, math.inf, 0.0305, 0.0491, 0, 1, 0, 1)
FOUND = Significance("bm25.run", "randomization", "two-sided", (MRF, SAME))


def table(scores, significance=None, form="text", per_query=False, **others):
    return Evaluation(scores, significance, **others).format(form, per_query=per_query)


def test_table():
    assert table(RUNS).splitlines() == [
        "run           AP     P@5",
        "bm25.run  0.3750  0.5000",
        "mrf       0.0617  0.5000",
        "",
        "Means over 2 judged queries.",
        "mrf: 1 missing, scored as empty rankings (2).",
        "mrf: 12 without judgements, ignored (x0, x1, x2, x3 and 8 more).",
    ]


def test_what_is_said_of_several_runs_is_said_once():
    runs = {name: scores([[0.5, 0.5], [0.1, 0.2]], unjudged=("9",)) for name in ("a", "b")}
    assert table(runs).splitlines()[-1] == "a, b: 1 without judgements, ignored (9)."
    empty = {"a": replace(runs["a"], empty=("2",))}
    assert table(empty).splitlines()[-2] == "a: 1 with empty rankings (2)."
    assert to_dict(empty)["runs"]["a"]["empty"] == ["2"]
    many = {f"r{n}": runs["a"] for n in range(29)}
    assert table(many).splitlines()[-1] == "r0, r1, r2, r3 and 25 more: 1 without judgements, ignored (9)."


def test_table_with_a_baseline():
    lines = table(RUNS, FOUND).splitlines()
    assert lines[:7] == [
        "run            AP     P@5",
        "bm25.run  0.3750   0.5000",
        "mrf       0.0617*  0.5000",
        "",
        "run   against  measure      diff      low     high      d  detectable  corrected p",
        "mrf  bm25.run       AP  -0.3133*  -0.5000  -0.1000  -0.80      0.2000      <0.0001",
        "mrf  bm25.run      P@5  +0.0000*  +0.0000  +0.0000                          0.0491",
    ]
    assert "randomisation test, two-sided, Holm's correction over 2 comparisons; * below 0.05." in lines[-2]


def test_the_footer_says_what_was_corrected():
    runs = {"a": RUNS["bm25.run"], "b": RUNS["bm25.run"], "c": RUNS["mrf"]}
    note = table(runs, compare_scores(runs, correction="bh")).splitlines()[-2]
    assert "two-sided, Benjamini & Hochberg's correction over 6 comparisons" in note
    note = table(runs, compare_scores(runs, "a", alternative="greater")).splitlines()[-2]
    assert "paired t-test, one-sided, better than the baseline, Holm's correction over 4 comparisons" in note


def test_all_pairs_are_ranked_and_grouped():
    """The order is c > b > a by AP, and a < b < c by a loss, of which less is better; c and b do not differ."""
    base, noise = np.array([0.2, 0.4, 0.5, 0.7]), np.array([0.001, 0.0, 0.002, 0.0])
    values = {"a": base, "b": base + 0.1 + noise, "c": base + 0.1 + noise[::-1] + [0.001, 0, 0, 0]}
    runs = {name: scores(np.column_stack([v, v]), measures=(AP, LOSS)) for name, v in values.items()}
    shown = table(runs, compare_scores(runs)).splitlines()
    assert [line.split() for line in shown[:4]] == [
        ["rank", "run", "AP", str(LOSS)],
        ["1", "c", "0.5510", "a", "0.5510", "a"],
        ["2", "b", "0.5507", "a", "0.5507", "a"],
        ["3", "a", "0.4500", "b", "0.4500", "b"],
    ]
    assert "Runs without a common letter differ significantly, corrected p below 0.05." in shown
    same = dict.fromkeys("xyz", runs["a"])
    assert [line.split()[:2] for line in table(same, compare_scores(same)).splitlines()[1:4]] == [
        ["1", n] for n in "xyz"
    ]


def test_pairs_that_were_not_compared_are_not_grouped():
    """Of some pairs, as `fuse` compares, letters would say of the others that they do not differ."""
    base, noise = np.array([0.2, 0.4, 0.5, 0.7]), np.array([0.01, 0, 0.01, 0])
    runs = {
        name: scores(base + gain, measures=(AP,)) for name, gain in (("a", 0), ("b", 0.1 + noise), ("c", 0.2 - noise))
    }
    shown = table(runs, compare_scores(runs, pairs=[("a", "b"), ("a", "c")]))
    assert [line.split() for line in shown.splitlines()[:4]] == [
        ["run", "AP"], ["a", "0.4500"], ["b", "0.5550*"], ["c", "0.6450*"],
    ]  # fmt: skip
    assert "* significantly different from a, " in shown


@pytest.mark.parametrize("seed", range(20))
def test_runs_share_a_letter_exactly_if_they_do_not_differ(seed):
    rng = np.random.default_rng(seed)
    names = [f"run {n}" for n in range(rng.integers(2, 31))]
    level = rng.random(len(names)) * rng.choice([0.2, 1.0, 5.0])
    values = rng.random((len(names), 12)) + level[:, None]
    runs = {name: scores(row, measures=(AP,)) for name, row in zip(names, values, strict=True)}
    tested = compare_scores(runs)
    found = group_letters(runs, tested).items()
    letters = {name: set(text.split(",") if "," in text else text) for (name, _), text in found}
    assert all(letters.values())
    for c in tested.comparisons:
        assert bool(letters[c.run] & letters[c.baseline]) != c.significant
    best = max(names, key=lambda name: runs[name].means[0])
    assert "a" in letters[best]


def test_sixty_runs_fit_a_page():
    rng = np.random.default_rng(0)
    names = [f"runs/system-{n:02}.run" for n in range(60)]
    runs = {name: scores(rng.random((50, 2)) + n / 30) for n, name in enumerate(names)}
    tested = compare_scores(runs)
    shown = table(runs, tested, unjudged=dict.fromkeys(names, 0.5)).splitlines()
    assert len(shown) < 70
    assert max(map(len, shown[:61])) <= 100
    assert any("TSV and JSON list all comparisons." in line for line in shown)
    assert len(table(runs, tested, form="tsv").splitlines()) == 61 + 1 + 1 + 2 * 1770
    few = {name: runs[name] for name in names[:3]}
    latex, short = table(runs, tested, form="latex"), table(few, compare_scores(few, names[0]), form="latex")
    assert len(latex.splitlines()) < 90
    cited = [["piepho2004" in text, "sakai2018" in text] for text in (latex, short)]
    assert cited == [[True, False], [False, True]]  # letters, or an effect size


def test_many_pairs_have_their_letters_and_ranks_in_every_form():
    """In TSV and JSON two runs share a letter exactly if their comparison is not significant, as the text shows."""
    rng = np.random.default_rng(1)
    runs = {f"r{n}": scores(rng.random((30, 2)) / 2 + n / 30) for n in range(12)}
    tested = compare_scores(runs, margin=0.3)
    means = list(csv.DictReader(table(runs, tested, form="tsv").split("\n\n")[0].splitlines(), delimiter="\t"))
    found = json.loads(table(runs, tested, form="json"))["runs"]
    shown = [line.split() for line in table(runs, tested).splitlines()[1:13]]
    for row, line in zip(means, shown, strict=True):
        of_run = found[row["run"]]
        assert [row["rank"], row["run"], row["letters of AP"], row["letters of P@5"]] == [line[n] for n in (0, 1, 3, 5)]
        assert [str(of_run["rank"]), *of_run["letters"].values()] == [line[n] for n in (0, 3, 5)]
    for c in tested.comparisons:
        first, second = (set(found[name]["letters"][str(c.measure)]) for name in (c.run, c.baseline))
        assert bool(first & second) != c.significant
    same = sum((c.equivalence_p or 0) < 0.05 for c in tested.comparisons if c.measure == AP)
    assert 0 < same < 66
    assert f"By AP, {same} of 66 pairs are the same within 0.3: two one-sided t-tests" in table(runs, tested)
    assert "letters" not in to_dict(runs, compare_scores(runs, "r0"))["runs"]["r1"]


def test_a_marked_p_of_nearly_0_is_a_bound():
    """0.0000 would be read as certain; a signed difference has no bound."""
    rows = [("a", Marked(0.00001, mark="*"), Marked(0.00001, "+.4f"), Marked(0.0, mark="*"))]
    shown = Table("", ("run", "p", "diff", "0"), rows)
    assert as_text(shown).splitlines()[1].split() == ["a", "<0.0001*", "+0.0000", "0.0000*"]
    assert r"a & $<0.0001^{*}$ & $+0.0000$ & $0.0000^{*}$ \\" in as_latex(shown)
    assert r"| a | \<0.0001<sup>\*</sup> |" in as_markdown(shown)


def test_lower_is_better_is_noted_and_many_groups_have_numbers():
    """Of 55 runs that differ from all but their neighbours, letters do not suffice."""
    values = np.repeat(np.arange(55.0), 2).reshape(55, 2) / 60 + [0, 0.001]
    runs = {f"r{n:02}": scores(row, measures=(LOSS,)) for n, row in enumerate(values)}
    tested = compare_scores(runs)
    apart = [replace(c, corrected_p=float(abs(int(c.run[1:]) - int(c.baseline[1:])) < 2)) for c in tested.comparisons]
    letters = group_letters(runs, replace(tested, comparisons=tuple(apart)))
    assert [letters[f"r{n:02}", LOSS] for n in (0, 1, 54)] == ["1", "1,2", "54"]
    assert f"Lower is better: {LOSS}." in table(runs).splitlines()


def test_per_query():
    assert table(RUNS, per_query=True).splitlines() == [
        "run       qid      AP     P@5",
        "bm25.run    1  0.2500  0.4000",
        "bm25.run    2  0.5000  0.6000",
        "mrf         1  0.1235  1.0000",
        "mrf         2  0.0000  0.0000",
    ]
    assert table(RUNS, FOUND, per_query=True, form="tsv").splitlines()[3] == "mrf\t1\t0.123456\t1.0"


def test_forms():
    runs = {"bm25_k.run": RUNS["bm25.run"], "mrf": RUNS["mrf"]}
    comparisons = tuple(replace(c, baseline="bm25_k.run") for c in FOUND.comparisons)
    found = replace(FOUND, baseline="bm25_k.run", comparisons=comparisons)
    assert table(runs, found, form="markdown").splitlines()[:4] == [
        "| run | AP | P@5 |",
        "| --- | ---: | ---: |",
        r"| bm25\_k.run | 0.3750 | 0.5000 |",
        r"| mrf | 0.0617<sup>\*</sup> | 0.5000 |",
    ]
    latex = table(runs, found, form="latex").splitlines()
    assert latex[:12] == [
        r"\begin{table}",
        r"\centering",
        r"\caption{Means over 2 judged queries.}",
        r"\label{tab:greylag}",
        r"\begin{tabular}{@{}lll@{}}",
        r"\toprule",
        r"run & AP & P@5 \\",
        r"\midrule",
        r"bm25\_k & $\mathbf{0.3750}$ & $\mathbf{0.5000}$ \\",
        r"mrf & $0.0617_{*}$ & $\mathbf{0.5000}$ \\",
        r"\bottomrule",
        r"\end{tabular}",
    ]
    assert "Raised *: significantly better than bm25\\_k; lowered: worse." in latex[12]
    assert "% mrf: 1 missing, scored as empty rankings (2)." in latex
    assert any(line.startswith("% mrf  bm25_k.run       AP  -0.3133*") for line in latex)
    tables = table(runs, found, form="tsv").split("\n\n")
    means, comparisons = (list(csv.DictReader(part.splitlines(), delimiter="\t")) for part in tables)
    assert means[1] == {"run": "mrf", "AP": "0.061728", "P@5": "0.5"}
    assert [comparisons[n][key] for n, key in ((0, "corrected p"), (1, "detectable"))] == ["4e-05", ""]
    content = {"greylag": __version__, **json.loads(json.dumps(to_dict(runs, found)))}
    assert json.loads(table(runs, found, form="json")) == content


def test_to_dict_survives_json():
    found = json.loads(json.dumps(to_dict(RUNS, FOUND), allow_nan=False))
    assert found["runs"]["mrf"] == {
        "means": {"AP": 0.061728, "P@5": 0.5},
        "per_query": {"1": {"AP": 0.123456, "P@5": 1.0}, "2": {"AP": 0.0, "P@5": 0.0}},
        "missing": ["2"],
        "unjudged": [f"x{i}" for i in range(12)],
    }
    assert found["significance"]["baseline"] == "bm25.run"
    figures = found["significance"]["comparisons"][1]
    assert [figures[key] for key in ("run", "measure", "interval", "corrected_p")] == ["mrf", "P@5", [0, 0], 0.0491]
    assert figures["statistic"] is None  # which was infinite
    assert set(to_dict(RUNS)) == {"trec_eval", "runs"}
    assert to_dict(RUNS)["trec_eval"] == "10.0"
