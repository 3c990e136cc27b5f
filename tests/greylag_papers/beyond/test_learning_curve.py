"""The picture and the table of the learning curves are what the experiment files expect; GREYLAG_GOLDEN=write writes
them anew."""

from __future__ import annotations

import os
import re

import yaml

from greylag.studies.config import shipped_file
from greylag_papers.beyond.ranker_curve import AUTOMATIC, BEST, curve_figure, points
from tests.docs import DOCS

COLLECTIONS = {
    "CACM": "cacm",
    "Vaswani": "vaswani",
    "Cranfield": "cranfield",
    "WikiQA": "wikiqa",
    "NFCorpus": "nfcorpus",
    "MQ2008": "mq2008",
}
PICTURE, PAGE = DOCS / "ranker-curve.svg", DOCS / "how-to" / "which-ranker.md"
TABLES = re.compile(r"(<!-- (curves|sources) -->\n\n)(?:(?:\|.*\n)+\n)?")
EXPECTED = {
    title: expected
    for title, name in COLLECTIONS.items()
    if (expected := yaml.safe_load(shipped_file(f"{name}.ranker_curve").read_text()).get("expected"))
}


def number(value: float, form: str = ".3f") -> str:
    return re.sub(r"\b0\.", ".", f"{value:{form}}")


def difference(row: dict[str, float]) -> str:
    star = "*" if row["p"] < 0.05 else ""
    return f"{number(row['difference'], '+.3f')}{star} [{number(row['low'], '+.3f')}, {number(row['high'], '+.3f')}]"


def curves() -> str:
    """The table of all sizes."""
    lines = [f"| | topics | {AUTOMATIC} | BM25 | RM3 | LightGBM | less BM25 (MQ2008: LightGBM) | less {BEST} |\n"]
    lines.append("|---" * 8 + "|\n")
    for title, expected in EXPECTED.items():
        for size, means in points(expected).items():
            first, other = (row for name, row in expected.items() if name.startswith(f"{size} topics, {AUTOMATIC}"))
            best = max((name for name in means if name != AUTOMATIC), key=means.__getitem__)
            cells = [number(means[name]) if name in means else "" for name in (AUTOMATIC, "BM25", "RM3", "LightGBM")]
            lines.append(
                f"| {title} | {size} | " + " | ".join([*cells, difference(first), f"{difference(other)} {best}"])
            )
            lines[-1] += " |\n"
    return "".join(lines)


def sources() -> str:
    """The table of what is lost without a source of features, with the fewest and the most topics."""
    lines = []
    for title, expected in EXPECTED.items():
        losses = {name: row for name, row in expected.items() if name.endswith("loss without")}
        for name in [*losses][:1] + [*losses][-1:]:
            if not lines:
                lines += [f"| | topics | {' | '.join(losses[name])} |\n", "|---" * (2 + len(losses[name])) + "|\n"]
            cells = [number(value, "+.3f") for value in losses[name].values()]
            lines.append(f"| {title} | {name.split()[0]} | {' | '.join(cells)} |\n")
    return "".join(lines)


def test_picture_and_table_are_those_of_the_expected_scores() -> None:
    panels = {f"{title}, nDCG@10": points(expected) for title, expected in EXPECTED.items()}
    svg = curve_figure("", panels).svg + "\n"
    made = {"curves": curves(), "sources": sources()}
    text = TABLES.sub(lambda match: f"{match[1]}{made[match[2]]}\n", PAGE.read_text())
    if os.environ.get("GREYLAG_GOLDEN") == "write":
        PICTURE.write_text(svg)
        PAGE.write_text(text)
    assert PICTURE.read_text() == svg
    assert PAGE.read_text() == text
