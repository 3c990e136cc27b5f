"""A study's report: one self-contained HTML file with tables, figures, queries and provenance.

The page is in ``templates``. It loads nothing from elsewhere. The same sections give the same bytes.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from typing import Any

from greylag.base import Table, as_html, cell_text, check_sequences, visible
from greylag.evaluation.reports.figures import Figure
from greylag.evaluation.reports.queries import QueryChanges
from greylag.evaluation.scoring.significance import Comparison

Part = Table | Figure | QueryChanges | Comparison | str


@dataclass(frozen=True, slots=True)
class Section:
    """A section of a report. The report leaves out a section, table or list of queries that has no content.

    Parameters
    ----------
    title : str
    text : str, default ""
        Paragraphs, separated by blank lines.
    parts : sequence of Table, Figure, QueryChanges, Comparison or str, default ()
        Shown after the text; a str is a paragraph, a Comparison its verdict.
    """

    title: str
    text: str = ""
    parts: Sequence[Part] = ()

    def __post_init__(self) -> None:
        check_sequences(parts=self.parts)


def report_page(
    title: str, sections: Sequence[Section], provenance: Mapping[str, Any], pages: Mapping[str, str] | None = None
) -> str:
    """Write the page of a report. The provenance, mapping names to values that JSON knows, is folded at the end.

    `pages` are other pages that it links, a name and an address of each.
    """
    from jinja2 import Environment, PackageLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=PackageLoader("greylag.evaluation.reports"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "cell": cell_text,
        "value": lambda value: value if isinstance(value, str) else json.dumps(value, indent=1),
        # With its caption as the text alternative
        "drawing": lambda figure: Markup(
            figure.svg.replace("<svg", f'<svg role="img" aria-label="{escape(figure.caption)}"', 1)
        ),
        "html": lambda table, label, links: Markup(as_html(table, label, links)),  # which escapes
        "charts": _charts,
        "signed": "{:+.4f}".format,
    }
    # A table without rows, and a list without queries, have nothing to show.
    contents = {Table: lambda part: part.rows, QueryChanges: lambda part: part.queries}
    shown = [
        replace(section, parts=[part for part in section.parts if contents.get(type(part), bool)(part)])
        for section in sections
    ]
    shown = [section for section in shown if section.text.strip() or section.parts]
    template = environment.get_template("report.html")
    # Characters that turn or hide others are spelt out at the end, wherever they come from.
    page = template.render(title=title, sections=shown, provenance=provenance, pages=pages or {})
    return visible(page.lstrip())


def _charts(section: Section, number: int) -> dict[str, str]:
    """Return the anchors of runs that have a chart in the section of this number, each of its first one."""
    charts = [(place, part.run) for place, part in enumerate(section.parts, 1) if isinstance(part, Figure) and part.run]
    return {run: f"part-{number}-{place}-figure" for place, run in reversed(charts)}
