"""How values are shown in a notebook: short tables, in which every text is escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from itertools import islice

SHOWN = 10
"""The largest number of rows shown."""


def html_table(caption: str, header: Sequence[str], rows: Iterable[Sequence[object]], total: int) -> str:
    """An HTML table of the first `SHOWN` rows; its caption tells how many there are if more."""
    more = f"; the first {SHOWN} of {total}" if total > SHOWN else ""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in header)
    body = "".join(
        "<tr>" + "".join(f"<td>{escape(_text(value))}</td>" for value in row) + "</tr>" for row in islice(rows, SHOWN)
    )
    title = escape(caption + more)
    return f"<table><caption>{title}</caption><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def html_text(text: str) -> str:
    """A text of several lines as HTML."""
    return f"<pre>{escape(text)}</pre>"


def _text(value: object) -> str:
    return f"{value:.4f}" if isinstance(value, float) else str(value)
