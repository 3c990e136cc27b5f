"""Explanations of scores as tables, for the terminal and for pages."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from greylag.base import Cell, Row, Table
from greylag.rankers.explanation import MEAN, CliqueShare, Explanation, Share, largest

if TYPE_CHECKING:
    from greylag.evaluation import Section

_Clique = tuple[str, tuple[float, ...], tuple[Cell, ...], bool]  # name, contributions, counts, whether it occurs
_Part = tuple[str, tuple[float, ...], tuple[Cell, ...], list[_Clique]]  # a feature, likewise
SCORE_DECIMALS = 6
MAX_SENTENCE_FEATURES = 3  # features in a sentence


def explanation_table(explanation: Explanation, top: int | None = None) -> Table:
    """Tabulate the score of a document: a row for each feature and, below it, for each of its cliques."""
    parts: list[_Part] = []
    for share in largest(explanation.features):
        weight = share.weight or 0.0
        cliques: list[_Clique] = [
            (_clique_name(c), (c.contribution,), (weight * c.multiplicity, c.value, c.tf, c.cf, c.df), c.tf > 0)
            for c in largest(share.cliques)
        ]
        parts.append((share.name, (share.contribution,), (share.weight, share.value), cliques))
    counts = ("tf", "cf", "df") if any(share.cliques for share in explanation.features) else ()
    header = ("feature, its cliques", "contribution", "weight", "value", *counts)
    caption = f"Query {explanation.qid}, document {explanation.docid}"
    return Table(caption, header, _table_rows(parts, (explanation.score,), len(header), top), SCORE_DECIMALS)


def comparison_of_documents(above: Explanation, below: Explanation, top: int | None = None) -> Table:
    """Explain why one document is above another: the differences of their contributions, the largest first."""

    def paired(ours: Sequence[Share], theirs: Sequence[Share]) -> list[tuple[Share, Share]]:
        pairs = zip(ours, theirs, strict=True)
        return sorted(pairs, key=lambda pair: -abs(pair[0].contribution - pair[1].contribution))

    parts: list[_Part] = []
    for share, other in paired(above.features, below.features):
        cliques: list[_Clique] = [
            (_clique_name(a), (a.contribution, b.contribution), (a.tf, b.tf), a.tf > 0 or b.tf > 0)
            for a, b in paired(share.cliques, other.cliques)
        ]
        parts.append((share.name, (share.contribution, other.contribution), (), cliques))
    counts = ("tf", "tf of the other") if any(share.cliques for share in above.features) else ()
    header = ("feature, its cliques", "difference", above.docid, below.docid, *counts)
    caption = f"Query {above.qid}, document {above.docid} against {below.docid}"
    return Table(caption, header, _table_rows(parts, (above.score, below.score), len(header), top), SCORE_DECIMALS)


def _table_rows(parts: Sequence[_Part], score: tuple[float, ...], width: int, top: int | None) -> list[Row]:
    """List features with their cliques; with `top`, sum up other features, and cliques without occurrences."""
    rows: list[Row] = []

    def add(name: str, terms: Sequence[float], others: Sequence[Cell] = ()) -> None:
        cells = (name, *([terms[0] - terms[1]] if len(terms) == 2 else []), *terms, *others)
        rows.append((*cells, *[None] * (width - len(cells))))

    for name, terms, others, cliques in parts[:top]:
        add(name, terms, others)
        absent = [clique_terms for _, clique_terms, _, occurs in cliques if top is not None and not occurs]
        for clique, clique_terms, counts, occurs in cliques:
            # Of two documents, cliques that contribute the same to both say nothing.
            if (occurs or top is None) and len({*clique_terms}) == len(clique_terms):
                add(f"  {clique}", clique_terms, counts)
        if absent:
            add(f"  {_counted(len(absent), 'clique')} without occurrences", [*map(sum, zip(*absent, strict=True))])
    rest = [] if top is None else parts[top:]
    if more := [terms for name, terms, *_ in rest if name != MEAN]:
        add(_counted(len(more), "more feature"), [*map(sum, zip(*more, strict=True))])
    for name, terms, others, _ in rest:
        if name == MEAN:
            add(name, terms, others)
    add("score", score)
    return rows


def explanation_result(explanation: Explanation, against: Explanation | None = None, top: int | None = None) -> Section:
    """Explain a score, or why one document is above another, by a sentence and a chart of features."""
    from greylag.evaluation import (
        Section,
        contributions_chart,  # with all charts, which tables do without
    )

    parts = [(share.name, share.contribution) for share in explanation.features]
    sentence, unit = f"{explanation.docid} has a score of {explanation.score:.4f}", "contribution"
    caption = "Contributions of features to the score"
    if against is not None:
        pairs = zip(explanation.features, against.features, strict=True)
        parts = [(share.name, share.contribution - other.contribution) for share, other in pairs]
        difference, unit = explanation.score - against.score, "difference"
        caption = "Differences of the features' contributions"
        relation = "above" if difference > 0 else "below" if difference < 0 else "beside"
        sentence = f"{explanation.docid} is {abs(difference):.4f} {relation} {against.docid}"
    parts.sort(key=lambda part: -abs(part[1]))
    most = ", ".join(f"{name} {value:+.4f}" for name, value in parts[:MAX_SENTENCE_FEATURES])
    figure = contributions_chart(caption, parts[:top], unit)
    return Section("Result", f"{sentence}. The largest {unit}s are {most}.", [figure])


def explanation_dict(explanation: Explanation) -> dict[str, Any]:
    """Return all figures, unrounded, as a dictionary that JSON can represent: a missing value is None."""
    content = asdict(explanation)
    for share, feature in zip(content["features"], explanation.features, strict=True):
        share |= {"feature": feature.name, "value": None if math.isnan(feature.value) else feature.value}
    return content


def _clique_name(clique: CliqueShare) -> str:
    """Name the clique's terms, and how often the query has it if that is not once."""
    times = clique.multiplicity
    if times == 1:
        return clique.name
    return f"{clique.name} ({times:.0f} times)" if times == int(times) else f"{clique.name} (probability {times:.4g})"


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
