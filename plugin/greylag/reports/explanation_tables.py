"""Explanations of scores as tables, for the terminal and for pages."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from greylag.core.tables import Row, Table
from greylag.rankers.explanation import CliqueShare, Explanation, FeatureShare, largest

if TYPE_CHECKING:
    from greylag.reports.report import Section

SCORE_DECIMALS = 6
MAX_SENTENCE_FEATURES = 3  # features in a sentence


def explanation_table(explanation: Explanation, top: int | None = None) -> Table:
    """Tabulate the score of a document: a row for each feature and, below it, for each of its cliques."""
    shares = largest(explanation.features)
    shown = shares if top is None else shares[:top]
    rows: list[Row] = []
    for share in shown:
        rows.append((str(share.feature), share.contribution, share.weight, share.value, None, None, None))
        rows += _clique_rows(share, fold=top is not None)
    if rest := shares[len(shown) :]:
        rows.append((_count(len(rest), "more feature"), sum(share.contribution for share in rest), *[None] * 5))
    rows.append(("score", explanation.score, *[None] * 5))
    header = ("feature, its cliques", "contribution", "weight", "value", "tf", "cf", "df")
    return Table(f"Query {explanation.qid}, document {explanation.docid}", header, rows, SCORE_DECIMALS)


def _clique_rows(share: FeatureShare, *, fold: bool) -> Iterator[Row]:
    cliques = largest(share.cliques)
    for clique in cliques:
        if clique.tf or not fold:
            weight, counts = (share.weight or 0.0) * clique.multiplicity, (clique.tf, clique.cf, clique.df)
            yield (f"  {_name(clique)}", clique.contribution, weight, clique.value, *counts)
    absent = [clique.contribution for clique in cliques if not clique.tf]
    if fold and absent:
        yield (f"  {_count(len(absent), 'clique')} without occurrences", sum(absent), *[None] * 5)


def comparison_of_documents(above: Explanation, below: Explanation, top: int | None = None) -> Table:
    """Explain why one document is above another: the differences of their contributions, the largest first."""
    pairs = sorted(
        zip(above.features, below.features, strict=True),
        key=lambda pair: -abs(pair[0].contribution - pair[1].contribution),
    )
    shown = pairs if top is None else pairs[:top]
    rows: list[Row] = []
    for share, share_below in shown:
        contributions = (share.contribution - share_below.contribution, share.contribution, share_below.contribution)
        rows.append((str(share.feature), *contributions, None, None))
        rows += _clique_differences(share, share_below, fold=top is not None)
    if rest := pairs[len(shown) :]:
        sums = [sum(share.contribution for share in shares) for shares in zip(*rest, strict=True)]
        rows.append((_count(len(rest), "more feature"), sums[0] - sums[1], *sums, None, None))
    rows.append(("score", above.score - below.score, above.score, below.score, None, None))
    header = ("feature, its cliques", "difference", above.docid, below.docid, "tf", "tf of the other")
    return Table(f"Query {above.qid}, document {above.docid} against {below.docid}", header, rows, SCORE_DECIMALS)


def _clique_differences(share: FeatureShare, share_below: FeatureShare, *, fold: bool) -> Iterator[Row]:
    pairs = zip(share.cliques, share_below.cliques, strict=True)
    absent = []
    for a, b in sorted(pairs, key=lambda pair: -abs(pair[0].contribution - pair[1].contribution)):
        if fold and not a.tf and not b.tf:
            absent.append((a.contribution, b.contribution))
        elif a.contribution != b.contribution:
            contributions = (a.contribution - b.contribution, a.contribution, b.contribution)
            yield (f"  {_name(a)}", *contributions, a.tf, b.tf)
    if absent:
        above, below = map(sum, zip(*absent, strict=True))
        yield (f"  {_count(len(absent), 'clique')} without occurrences", above - below, above, below, None, None)


def explanation_result(explanation: Explanation, against: Explanation | None = None, top: int | None = None) -> Section:
    """Explain a score, or why one document is above another, by a sentence and a chart of features."""
    from greylag.reports.charts import contributions_chart  # with all charts, which tables do without
    from greylag.reports.report import Section

    parts = [(str(share.feature), share.contribution) for share in explanation.features]
    sentence, unit = f"{explanation.docid} has a score of {explanation.score:.4f}", "contribution"
    caption = "Contributions of features to the score"
    if against is not None:
        pairs = zip(explanation.features, against.features, strict=True)
        parts = [(str(one.feature), one.contribution - other.contribution) for one, other in pairs]
        difference, unit = explanation.score - against.score, "difference"
        caption = "Differences of the features' contributions"
        relation = "above" if difference > 0 else "below" if difference < 0 else "beside"
        sentence = f"{explanation.docid} is {abs(difference):.4f} {relation} {against.docid}"
    parts.sort(key=lambda part: -abs(part[1]))
    most = ", ".join(f"{name} {value:+.4f}" for name, value in parts[:MAX_SENTENCE_FEATURES])
    figure = contributions_chart(caption, parts[:top], unit)
    return Section("Result", f"{sentence}. The largest {unit}s are {most}.", [figure])


def explanation_dict(explanation: Explanation) -> dict[str, Any]:
    """Return all figures, unrounded, as a dictionary that JSON can represent."""
    content = asdict(explanation)
    for share, feature in zip(content["features"], explanation.features, strict=True):
        share["feature"] = str(feature.feature)
    return content


def _name(clique: CliqueShare) -> str:
    """Name the clique's terms, and how often the query has it if that is not once."""
    times = clique.multiplicity
    if times == 1:
        return clique.name
    return f"{clique.name} ({times:.0f} times)" if times == int(times) else f"{clique.name} (probability {times:.4g})"


def _count(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
