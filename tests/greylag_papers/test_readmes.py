"""The tables of the READMEs are what the experiment files expect; GREYLAG_GOLDEN=write writes them anew.

A README has `<!-- claims -->` or `<!-- scores FILE: MEASURE; FILE: MEASURE -->` before a table. `claims.yaml` beside it
has the claims: where the paper makes them, and which rows of which files judge them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml

import greylag_papers
from greylag.evaluation import SIGNIFICANCE_LEVEL
from greylag.experiments.config import shipped_file

READMES = sorted(Path(greylag_papers.__path__[0]).rglob("README.md"))
TABLE = re.compile(r"(<!-- (claims|scores .+?) -->\n\n)(?:(?:\|.*\n)+\n)?")
SAME = 0.05  # of the mean: a smaller difference is none, if the study could have shown one of this size
ENDS = ("least", "most")
HEADER = "| claim | place | file | n | figures | p | could show | borne out |\n|---|---|---|---|---|---|---|---|\n"
Row = Mapping[str, float]


@cache
def expected(file: str) -> Mapping[str, Row]:
    found: Mapping[str, Row] = yaml.safe_load(shipped_file(file).read_text())["expected"]
    return found


def number(value: float, decimals: int = 3) -> str:
    text = f"{value:.{decimals}f}"
    return (
        f"{value:g}" if value == int(value) and value != 0 else text.replace("0.", ".", 1) if abs(value) < 1 else text
    )


def p_value(p: float) -> str:
    return "<.0001" if p < 5e-5 else number(p, 3 if p >= 5e-4 else 4)


def verdict(kind: str, row: Row, reduced: bool, gain: float = float("nan")) -> str:
    """Of a comparison: whether it is significant and as claimed, the contrary, or neither.

    If the paper's least gain, a share of the baseline's mean, would have been shown and was not, the answer is no.
    """
    if reduced:
        return "cannot tell: reduced"
    difference = row["mean"] - row["against"]
    if kind == "same":
        margin = SAME * abs(row["against"])
        if abs(difference) > margin:
            return "no" if row["p"] < SIGNIFICANCE_LEVEL else "cannot tell"
        return "yes" if row["detectable"] <= margin else "cannot tell"
    if row["p"] >= SIGNIFICANCE_LEVEL or difference == 0:
        return "no" if row["detectable"] <= gain * abs(row["against"]) else "cannot tell"
    if kind == "not_lower":
        return "yes" if difference > 0 else "no"
    return "yes" if (difference > 0) == (kind == "higher") else "no"


def steady_verdict(kind: str, row: Row, reduced: bool, gain: float = float("nan")) -> str:
    """The verdict of all orders of the queries, if there are several; "cannot tell" if it depends on them."""
    if "least p" not in row:
        return verdict(kind, row, reduced, gain)
    orders = [
        {**row, "mean": row["against"] + row[f"{end} difference"], "p": row[f"{at} p"]} for end in ENDS for at in ENDS
    ]
    answers = {verdict(kind, order, reduced, gain) for order in orders}
    return answers.pop() if len(answers) == 1 else "cannot tell"


def claim_rows(claim: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    """A row for each file and comparison of a claim; a claim that no file judges says where it is judged."""
    (kind,) = claim.keys() & {"higher", "lower", "not_lower", "same", "at_least", "at_most", "stated"}
    if kind == "stated":
        yield "", "", claim["by"], "", "", claim["stated"]
        return
    for file in claim["files"]:
        for name in [claim[kind]] if isinstance(claim[kind], str) else claim[kind]:
            reduced = file in claim.get("reduced", ())
            if kind in ("at_least", "at_most"):
                system, measure = name.rsplit(": ", 1)
                bound = claim["bound"]
                if isinstance(bound, str):
                    bound = expected(file)[bound.rsplit(": ", 1)[0]][bound.rsplit(": ", 1)[1]]
                value = expected(file)[system][measure]
                good = value >= bound if kind == "at_least" else value <= bound
                units = expected(file)[system].get("n", expected(file)[system].get("of"))
                n = "" if units is None else f"{units:g}"
                answer = "cannot tell: reduced" if reduced else "yes" if good else "no"
                yield (
                    file,
                    n,
                    f"{system} {measure} {number(value)}; {kind.replace('_', ' ')} {number(bound)}",
                    "",
                    "",
                    answer,
                )
                continue
            row = expected(file)[name]
            run, _, others = name.partition(" / ")
            other, _, where = others.rpartition(", ") if ", " in others else (others, "", "")
            figures = f"{where}{': ' * bool(where)}{run} {number(row['mean'])}, {other} {number(row['against'])}"
            answer = steady_verdict(kind, row, reduced, claim.get("gain", float("nan")))
            between = f" ({' to '.join(p_value(row[f'{end} p']) for end in ENDS)})" if "least p" in row else ""
            yield file, f"{row['n']:g}", figures, p_value(row["p"]) + between, number(row["detectable"]), answer


def claims_table(readme: Path) -> str:
    claims = yaml.safe_load(readme.with_name("claims.yaml").read_text())
    lines = []
    for claim in claims:
        for i, row in enumerate(claim_rows(claim)):
            lines.append(
                "| " + " | ".join([*((claim["claim"], claim["place"]) if i == 0 else ("", "")), *row]) + " |\n"
            )
    return HEADER + "".join(lines)


def scores_table(text: str) -> str:
    """Systems by file and measure."""
    columns = [part.strip().split(": ", 1) for part in text.split(";")]
    judged = [name for name, row in expected(columns[0][0]).items() if "p" not in row]
    systems = [name for name in judged if any(measure in expected(file).get(name, {}) for file, measure in columns)]
    files = {file for file, _ in columns}
    header = [measure if len(files) == 1 else f"{file}: {measure}" for file, measure in columns]
    lines = ["| | " + " | ".join(header) + " |\n", "|---" * (len(columns) + 1) + "|\n"]
    for name in systems:
        values = [expected(file).get(name, {}).get(measure) for file, measure in columns]
        lines.append(f"| {name} | " + " | ".join("" if value is None else number(value) for value in values) + " |\n")
    return "".join(lines)


def rendered(readme: Path) -> str:
    def table(match: re.Match[str]) -> str:
        what = match[2]
        made = claims_table(readme) if what == "claims" else scores_table(what.removeprefix("scores "))
        return f"{match[1]}{made}\n"

    return TABLE.sub(table, readme.read_text())


@pytest.mark.parametrize("readme", READMES, ids=lambda path: path.parent.name)
def test_tables_are_made_from_what_the_experiment_files_expect(readme: Path) -> None:
    text = rendered(readme)
    if os.environ.get("GREYLAG_GOLDEN") == "write":
        readme.write_text(text)
    assert readme.read_text() == text


def test_verdicts() -> None:
    better = {"mean": 0.4, "against": 0.3, "p": 0.01, "detectable": 0.05}
    assert [verdict(kind, better, False) for kind in ("higher", "lower", "same")] == ["yes", "no", "no"]
    unsure = {**better, "p": 0.2}
    assert {verdict(kind, unsure, False) for kind in ("higher", "lower", "same")} == {"cannot tell"}
    close = {"mean": 0.301, "against": 0.3, "p": 0.001, "detectable": 0.01}
    assert [verdict("same", {**close, "detectable": least}, False) for least in (0.01, 0.02)] == ["yes", "cannot tell"]
    assert [verdict("higher", unsure, False, gain) for gain in (0.1, 0.2)] == ["cannot tell", "no"]
    assert verdict("not_lower", better, False) == "yes"
    assert verdict("higher", better, True) == "cannot tell: reduced"
    spread = {**better, "least difference": 0.05, "most difference": 0.2, "least p": 0.001, "most p": 0.04}
    assert steady_verdict("higher", spread, False) == "yes"
    assert steady_verdict("higher", {**spread, "most p": 0.06}, False) == "cannot tell"
    assert steady_verdict("higher", {**spread, "least difference": -0.05}, False) == "cannot tell"
