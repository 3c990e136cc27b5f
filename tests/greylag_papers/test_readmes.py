"""The tables of the READMEs are what the experiment files expect; GREYLAG_GOLDEN=write writes them anew.

A README has `<!-- claims -->` or `<!-- scores FILE: MEASURE; FILE: MEASURE -->` before a table. `claims.yaml` beside it
has the claims: where the paper makes them, and which rows of which files judge them, as `verdicts` says.

Tests `contrasts` and `texts`.
"""

import os
import re
from pathlib import Path

import numpy as np
import pytest
import yaml

import greylag_papers
from greylag.evaluation import detectable_difference
from greylag.evaluation.scoring.significance import equivalence_test
from greylag_papers.contrasts import contrasts
from tests.greylag_papers import verdicts as judge

READMES = sorted(Path(greylag_papers.__path__[0]).rglob("README.md"))
TABLE = re.compile(r"(<!-- (claims|scores .+?) -->\n\n)(?:(?:\|.*\n)+\n)?")
HEADER = ("claim", "place", "file", "n", "figures", "test", "p", "could show", "borne out", "the paper's own test")


def claims_table(readme):
    """A row for each comparison; the column of the papers' own tests only where a claim has one."""
    claims = yaml.safe_load(readme.with_name("claims.yaml").read_text())
    rows = [HEADER]
    for claim in claims:
        for i, row in enumerate(judge.claim_rows(claim)):
            rows.append((claim["claim"] if i == 0 else "", claim["place"] if i == 0 else "", *row))
    width = len(HEADER) - (not any("own_test" in claim for claim in claims))
    rows.insert(1, ("---",) * width)
    return (
        "".join("| " + " | ".join(row[:width]) + " |\n" for row in rows)
        .replace("| --- ", "|---")
        .replace("--- |", "---|")
    )


def scores_table(text):
    """Systems by file and measure."""
    columns = [part.strip().split(": ", 1) for part in text.split(";")]
    judged = [name for name, row in judge.expected(columns[0][0]).items() if "p" not in row]
    files = {file for file, _ in columns}
    header = [measure if len(files) == 1 else f"{file}: {measure}" for file, measure in columns]
    lines = ["| | " + " | ".join(header) + " |\n", "|---" * (len(columns) + 1) + "|\n"]
    for name in judged:
        values = [judge.expected(file).get(name, {}).get(measure) for file, measure in columns]
        cells = ["" if value is None else judge.number(value) for value in values]
        lines += [f"| {name} | {' | '.join(cells)} |\n"] if any(cells) else []
    return "".join(lines)


def rendered(readme):
    def table(match):
        what = match[2]
        made = claims_table(readme) if what == "claims" else scores_table(what.removeprefix("scores "))
        return f"{match[1]}{made}\n"

    return TABLE.sub(table, readme.read_text())


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_tables_are_made_from_what_the_experiment_files_expect(readme):
    text = rendered(readme)
    if os.environ.get("GREYLAG_GOLDEN") == "write":
        readme.write_text(text)
    assert readme.read_text() == text


def test_equivalence_from_a_row_is_that_from_its_queries():
    """Rounding makes p higher, not lower, and by little."""
    rng = np.random.default_rng(3)
    for shift, n in ((0.0, 30), (0.01, 100), (-0.02, 250)):
        against = rng.uniform(0.2, 0.6, n)
        values = {"a": against + shift + 0.05 * rng.standard_normal(n), "b": against}
        exact = contrasts(values, [("a", "b")])["a / b"]
        row = {name: round(figure, 4) for name, figure in exact.items()}
        gains, margin = values["a"] - values["b"], judge.MARGIN * exact["against"]
        for kind, true in (
            ("same", equivalence_test(gains, margin)),
            ("not_lower", equivalence_test(gains, margin, "greater")),
            ("not_higher", equivalence_test(-gains, margin, "greater")),
        ):
            within, _ = judge.equivalence(kind, row)
            assert true <= within <= true + 0.02


def test_verdicts():
    better = {"mean": 0.4, "against": 0.3, "p": 0.01, "detectable": 0.05, "n": 50}
    assert [judge.difference_verdict(kind, better) for kind in ("higher", "lower", "best")] == ["yes", "no", "no"]
    for categories, answer in ((0, "yes"), (1, "cannot tell"), (6, "cannot tell")):  # p = 2 / 64, 14 / 64
        assert judge.verdicts("higher", [{**better, "categories": categories, "of": 6}])[0][1] == answer
    unsure = {**better, "p": 0.2}
    assert {judge.difference_verdict(kind, unsure) for kind in ("higher", "lower", "best")} == {"cannot tell"}
    assert judge.difference_verdict("best", {**unsure, "mean": 0.3}) == "yes"
    # a gain of a half would be .15, two standard errors (.0175) and more above .1; one of .4 is .12
    assert [judge.difference_verdict("higher", unsure, gain) for gain in (0.4, 0.5)] == ["cannot tell", "no"]
    missed = judge.p_value(judge.missed_gain("higher", unsure, 0.5))
    assert judge.verdicts("higher", [unsure], 0.5) == [(f"{judge.p_value(0.2)}; gain {missed}", "no")]
    assert judge.missed_gain("higher", unsure, 0.5) == pytest.approx(
        0.0032, abs=5e-4
    )  # t = 2.85 with 49 degrees of freedom
    spread = {**better, "least difference": 0.05, "most difference": 0.2, "least p": 0.001, "most p": 0.04}
    for row, answer in (
        (spread, "yes"),
        ({**spread, "most p": 0.06}, "cannot tell"),
        ({**spread, "least difference": -0.05}, "cannot tell"),
    ):
        assert judge.verdicts("higher", [row])[0][1] == answer
    near, far = {**better, "mean": 0.301, "detectable": 0.01}, {**better, "detectable": 0.02}
    assert [judge.verdicts(kind, [near])[0][1] for kind in judge.EQUIVALENCES] == ["yes"] * 3
    assert [judge.verdicts(kind, [far])[0][1] for kind in judge.EQUIVALENCES] == ["no", "yes", "no"]
    blurred = {**near, "detectable": 0.05}
    assert [judge.verdicts(kind, [blurred])[0][1] for kind in judge.EQUIVALENCES] == ["cannot tell"] * 3
    alone, together = judge.verdicts("same", [near]), judge.verdicts("same", [near, blurred])
    assert float(alone[0][0].replace("<", "")) <= float(together[0][0].replace("<", ""))


def test_the_papers_own_test_is_not_corrected():
    error = 0.01
    row = {"mean": 0.3 + 2 * error, "against": 0.3, "p": 0.5, "detectable": detectable_difference(error, 41), "n": 41}
    # of t = 2 with 40 degrees of freedom
    assert judge.papers_own("one-tailed", "higher", row) == "yes, .026"
    assert judge.papers_own("two-tailed", "higher", row) == "not significant, .052"
    assert judge.papers_own("one-tailed", "lower", row) == "not significant, .974"


def test_figures_without_a_test(monkeypatch):
    rows = {
        "documents": {"mean": 46.2941},
        "subtopics": {"mean": 20.8235},
        "random": {"loss": 0.4695},
        "share": {"all": 0.8},
        "below": {"k": 5, "most": 6, "contrary": 0, "of": 6},
        "above": {"k": 5, "contrary": 1, "of": 6},
    }
    monkeypatch.setattr(judge, "expected", lambda file: rows)
    for kind, claim, name, answer in (
        ("printed", {"paper_has": 45}, "documents: mean", "no"),
        ("printed", {"paper_has": 46}, "documents: mean", "yes"),
        ("printed", {"paper_has": 20}, "subtopics: mean", "yes"),  # cut off
        ("printed", {"paper_has": 22}, "subtopics: mean", "no"),
        ("printed", {"paper_has": 0.47}, "random: loss", "yes"),
        ("always", {"at_least": 1}, "share: all", "no"),
        ("always", {"at_least": 0.8}, "share: all", "not refuted"),
        ("always", {"at_most": 0.5}, "share: all", "no"),
        ("always", {"equal_to": 0.8}, "share: all", "not refuted"),
        ("always", {"equal_to": "random: loss"}, "share: all", "no"),
        ("significant", {}, "below: k", "cannot tell"),
        ("significant", {}, "below: most", "yes"),
        ("significant", {}, "above: k", "no"),
        ("sign", {}, "below: k", "cannot tell"),  # p = 14 / 64
        ("sign", {}, "below: most", "yes"),  # p = 2 / 64
        ("measured", {"at_most": "random: loss"}, "share: all", "cannot tell"),
        ("measured", {}, "share: all", "cannot tell"),
    ):
        assert judge.counted(kind, claim, "file", 0, name)[3] == answer


def test_few_units_cannot_tell(monkeypatch):
    row = {"mean": 0.4, "against": 0.3, "p": 0.01, "detectable": 0.05}
    rows = {"a / b": {**row, "n": judge.MIN_UNITS - 1}, "a / c": {**row, "n": judge.MIN_UNITS}}
    monkeypatch.setattr(judge, "expected", lambda file: rows)
    claim = {"files": ["file"], "higher": [*rows], "but": {"file": "c is odd"}}
    assert [found[-2] for found in judge.claim_rows(claim)] == [
        f"cannot tell: fewer than {judge.MIN_UNITS} units, but c is odd",
        "yes, but c is odd",
    ]


def test_what_is_said_of_the_baselines_of_figure_4():
    """Beside the "yes" of `synthetic.svmdiv` stands how good the baseline is."""
    losses = judge.expected("synthetic.svmdiv")
    ks = [str(k) for k in range(1, 16)]
    assert [k for k in ks if losses["essential-pages"][k] <= losses["random"][k]] == ["15"]
    assert [k for k in ks if losses["svmdiv"][k] < losses["coverage"][k]] == ["1", "2", "3"]
