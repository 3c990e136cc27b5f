"""Tables, and their only renderer: as text, TSV, Markdown, LaTeX, and HTML for notebooks and reports."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from html import escape
from importlib import import_module
from typing import Any, ClassVar, Literal

from greylag.base.errors import DependencyError, ParameterError


@dataclass(frozen=True, slots=True)
class Marked:
    """A number in its own format, with a mark such as the asterisk or the letters of significance.

    In LaTeX, what follows a minus in the mark is lowered, and the `best` number of a column bold.
    """

    value: float
    form: str = ".4f"
    mark: str = ""
    best: bool = False


Cell = str | float | Marked | None
Row = Sequence[Cell]
Library = Literal["pandas", "polars"]

# Control characters but tabs and line breaks, marks and overrides of the writing direction, and what neither XML nor
# UTF-8 can have, such as the bytes of a file's name that are no text.
_HIDDEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]"
)

_FORMULA = "=", "+", "-", "@", "\t", "\r"  # what a cell begins with that spreadsheets compute
_MARKDOWN = re.compile(r"[\\|*_`<>\[\]]")
_LATEX = str.maketrans(
    {
        "\\": r"\textbackslash{}",
        "~": r"\textasciitilde{}",
        "^": r"\textasciicircum{}",
        "<": r"\textless{}",
        ">": r"\textgreater{}",
        **{character: rf"\{character}" for character in "&%$#_{}"},
    }
)
_NARROW = frozenset("fijlrst.,:;-()[]/ I")
COLUMN, PAGE = 229, 345  # points of article's text in two columns and in one
_NUMBER = re.compile(r"[<+-]?\d+(\.\d+)?( %)?\*?")  # such as 3, <0.001, +2.5 % and -0.0123*


@dataclass(frozen=True, slots=True)
class Table:
    """A table, whose columns have the names of the header; None leaves a cell empty."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Row]
    decimals: int = 4  # of floats; integers have none


def visible(text: str) -> str:
    r"""Escape characters that change the terminal or the order of its letters, as in ``\x1b``."""
    return _HIDDEN.sub(lambda match: match[0].encode("unicode_escape").decode(), text)


def as_text(table: Table | str) -> str:
    """Format a table for the terminal, below its caption; text is returned unchanged."""
    if isinstance(table, str):
        return table
    rows = [table.header, *([cell_text(value, table.decimals) for value in row] for row in table.rows)]
    return "\n".join([*filter(None, [table.caption]), *aligned(rows)]) + "\n"


def as_tsv(table: Table, dialect: Literal["excel-tab", "excel"] = "excel-tab") -> str:
    """Format a table as TSV, or CSV, below its header; numbers are unrounded and unmarked.

    A text that a spreadsheet would compute, such as a run's name ``=1+1``, has ``'`` before it.
    """
    text, rows = io.StringIO(), [table.header, *unmarked(table)]
    csv.writer(text, dialect, lineterminator="\n").writerows([map(_inert, row) for row in rows])
    return text.getvalue()


def _inert(cell: str | float | None) -> str | float | None:
    """Put an apostrophe before a text that spreadsheets take for a formula, which a number is not."""
    computed = isinstance(cell, str) and cell.startswith(_FORMULA) and not _NUMBER.fullmatch(cell)
    return f"'{cell}" if computed else cell


def unmarked(table: Table) -> list[list[str | float | None]]:
    """Return the rows of a table with its numbers unrounded and unmarked."""
    return [[cell.value if isinstance(cell, Marked) else cell for cell in row] for row in table.rows]


def escape_markdown(text: str) -> str:
    """Escape what Markdown would take for its own signs."""
    return _MARKDOWN.sub(r"\\\g<0>", text)


def as_markdown(table: Table) -> str:
    """Format a table as GitHub's Markdown, with its caption as a paragraph below."""

    def cell(value: Cell) -> str:
        mark = value.mark.strip() if isinstance(value, Marked) else ""
        plain = replace(value, mark="") if isinstance(value, Marked) else value
        shown = escape_markdown(cell_text(plain, table.decimals))
        return shown + (f"<sup>{escape_markdown(mark)}</sup>" if mark else "")

    # Aligned to the right by what the cells have, as no column is declared to be numeric.
    sides = ["---:" if _is_numeric(table, column) else "---" for column in range(len(table.header))]
    rows = [[*map(cell, table.header)], sides, *([*map(cell, row)] for row in table.rows)]
    note = f"\n{escape_markdown(table.caption)}\n" if table.caption else ""
    return "".join(f"| {' | '.join(row)} |\n" for row in rows) + note


def as_latex(table: Table, label: str = "", note: str = "") -> str:
    """Format a table as LaTeX with the rules of the package booktabs, above a note; a `label` needs a caption.

    A wide one is of both columns of a style that has two, or smaller. A row of one cell is a heading.
    """

    def cell(value: Cell) -> str:
        if isinstance(value, Marked):
            number, (raised, _, lowered) = cell_text(replace(value, mark=""), 0), value.mark.strip().partition("-")
            signs = f"^{{{raised}}}" * bool(raised) + f"_{{{lowered}}}" * bool(lowered)
            return f"$\\mathbf{{{number}}}{signs}$" if value.best else f"${number}{signs}$"
        return cell_text(value, table.decimals).translate(_LATEX)

    columns, rows = len(table.header), list[str]()
    cells = [row for row in table.rows if len(row) == columns]
    for row in table.rows:
        if len(row) < columns:
            rows += ["\\midrule"] * bool(rows)
            rows.append(f"\\multicolumn{{{columns}}}{{@{{}}l}}{{\\emph{{{cell(row[0])}}}}} \\\\")
        else:  # what follows the end of a row would be its argument
            rows.append(re.sub(r"^(?=[*\[])", "{}", f"{' & '.join(map(cell, row))} \\\\"))

    signed = [any(isinstance(value, Marked) and value.mark for value in column) for column in zip(*cells, strict=True)]

    def side(column: int) -> str:
        # Numbers stand below each other at the left of their marks, and so do those beside them that are as long.
        values = [row[column] for row in cells]
        printed = {len(cell_text(replace(v, mark=""), 0)) if isinstance(v, Marked) else -1 for v in values}
        beside = any(signed) and -1 not in printed and len(printed) == 1
        numeric = _is_numeric(replace(table, rows=cells), column)
        return "r" if numeric and not (signed[column] or beside) else "l"

    caption = [f"\\caption{{{' '.join(table.caption.split()).translate(_LATEX)}}}"] if table.caption else []
    caption += [f"\\label{{{label}}}"] if label and caption else []
    width, gaps = _points([table.header, *cells], table.decimals), 12 * (columns - 1)
    full, reduced = width + gaps, 0.85 * width + 0.5 * gaps
    small = full > PAGE or reduced <= COLUMN < full
    caption += ["\\footnotesize\\setlength{\\tabcolsep}{3pt}"] if small else []
    head = " & ".join(map(cell, table.header))
    body = "\n".join(["\\toprule", f"{head} \\\\", "\\midrule", *rows, "\\bottomrule"])
    tabular = f"\\begin{{tabular}}{{@{{}}{''.join(map(side, range(columns)))}@{{}}}}\n{body}\n\\end{{tabular}}"
    below = [f"\\par\\smallskip\\footnotesize\\raggedright {note.translate(_LATEX)}"] if note else []
    kind = "table*" if (reduced if small else full) > COLUMN else "table"
    return "\n".join([f"\\begin{{{kind}}}", "\\centering", *caption, tabular, *below, f"\\end{{{kind}}}"]) + "\n"


def _points(rows: Sequence[Row], decimals: int) -> float:
    """Return about how wide columns are together in LaTeX, without gaps, in points of a font of 10 points."""

    def width(cell: Cell) -> float:
        marks = 4.5 * len(cell.mark.strip()) if isinstance(cell, Marked) else 0
        letters = cell_text(replace(cell, mark="") if isinstance(cell, Marked) else cell, decimals)
        wide = (3.9 if c in _NARROW else 7.8 if c.isupper() or c in "@%+mw" else 5.2 for c in letters)
        return marks + sum(wide)

    return sum(max(map(width, column)) for column in zip(*rows, strict=True))


def as_html(table: Table, label: str = "", links: Mapping[str, str] | None = None) -> str:
    """Format a table as HTML, its caption as a note below with the id `label`; `links` are anchors of names."""
    columns = range(len(table.header))
    sides = [' class="number"' if _is_numeric(table, column) else "" for column in columns]
    # Marks have cells of their own, so that digits stand below digits.
    marks = [[cell.mark if isinstance(cell, Marked) else "" for cell in row] for row in table.rows]
    marked = [any(row[column] for row in marks) for column in columns]
    head = "".join(
        (f'<th scope="col"{side}>{escape(name)}</th>' if name else "<td></td>") + "<td></td>" * both
        for name, side, both in zip(table.header, sides, marked, strict=True)
    )
    body = ""
    for number, row in enumerate(table.rows):
        body += "<tr>"
        for column, value in enumerate(row):
            mark = marks[number][column]
            text = escape(cell_text(value, table.decimals).removesuffix(mark))
            if links and isinstance(value, str) and value in links:
                text = f'<a href="#{escape(links[value])}">{text}</a>'
            tag, scope = ("th", ' scope="row"') if column == 0 and isinstance(value, str) else ("td", "")
            body += f"<{tag}{scope}{sides[column]}>{text}</{tag}>"
            body += f'<td class="mark">{escape(mark.strip())}</td>' * marked[column]
        body += "</tr>"
    name = f' id="{escape(label)}"' if label else ""
    note = f'<p class="note"{name}>{escape(table.caption)}</p>' if table.caption else ""
    return visible(f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{note}")


class Printed:
    """A value with a table: printed and in a notebook, its head; its repr is the caption, on a line."""

    __slots__ = ()
    most: ClassVar[int] = 10  # rows that are shown

    def _table(self) -> Table:
        """Return the table; rows after the first `most` may be left empty."""
        raise NotImplementedError

    def _head(self) -> Table:
        whole = self._table()
        more = f"; the first {self.most} of {len(whole.rows)}" if len(whole.rows) > self.most else ""
        return replace(whole, caption=whole.caption + more, rows=whole.rows[: self.most])

    def to_latex(self) -> str:
        """Format the table as LaTeX, with the rules of the package booktabs."""
        return as_latex(self._table())

    def __repr__(self) -> str:
        return visible(f"<{type(self).__name__}: {self._table().caption.splitlines()[0]}>")

    def __str__(self) -> str:
        return visible(as_text(self._head()).rstrip())

    def _repr_html_(self) -> str:
        return as_html(self._head())


def imported(module: str, package: str) -> Any:
    """Import a module of an optional package, or raise `DependencyError` with the line that installs it."""
    try:
        return import_module(module)
    except ImportError as error:
        raise DependencyError(f"{package} is not usable here ({error}): pip install {package}") from error


def as_frame(columns: Mapping[str, type], rows: Iterable[Sequence[Any]], library: Library = "pandas") -> Any:
    """Make a data frame of rows, whose columns have names and types: str, int or float."""
    values = [list(column) for column in zip(*rows, strict=True)] or [[] for _ in columns]
    if library == "polars":
        polars = imported("polars", "polars")
        kinds = {str: polars.String, float: polars.Float64, int: polars.Int64}
        return polars.DataFrame(
            dict(zip(columns, values, strict=True)), {name: kinds[kind] for name, kind in columns.items()}
        )
    if library != "pandas":
        raise ParameterError(f"library is {library!r}: use 'pandas' or 'polars'")
    pandas = imported("pandas", "pandas")
    kinds = {str: "object", float: "float64", int: "int64"}
    named = zip(columns.items(), values, strict=True)
    return pandas.DataFrame({name: pandas.Series(column, dtype=kinds[kind]) for (name, kind), column in named})


def table_frame(table: Table, library: Library = "pandas") -> Any:
    """Make a data frame of a table, with its numbers unrounded and unmarked."""
    rows = unmarked(table)

    # A column with empty cells is one of floats, which have NaN for them.
    def kind(column: Sequence[Any]) -> type:
        return next((type_ for type_ in (str, int) if all(isinstance(cell, type_) for cell in column)), float)

    kinds = map(kind, zip(*rows, strict=True))
    return as_frame(dict(zip(table.header, kinds, strict=True)), rows, library)


def html_text(text: str) -> str:
    """Format a text of several lines as HTML."""
    return visible(f"<pre>{escape(text)}</pre>")


def aligned(rows: Sequence[Sequence[str]]) -> list[str]:
    """Format rows as lines in columns: the first column aligned to the left, the others to the right."""
    # Names at the left, numbers at the right, so that digits stand below digits.
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return ["  ".join([row[0].ljust(widths[0]), *map(str.rjust, row[1:], widths[1:])]).rstrip() for row in rows]


def cell_text(value: Cell, decimals: int) -> str:
    """Format a cell; a positive number that rounds to 0 is shown as a bound, such as <0.0001."""
    if value is None:
        return ""
    if isinstance(value, Marked):
        # A format without a sign, as of p, is rounded as other cells are.
        unsigned = re.fullmatch(r"\.(\d+)f", value.form)
        number = cell_text(float(value.value), int(unsigned[1])) if unsigned else f"{value.value:{value.form}}"
        return number + value.mark
    if not isinstance(value, float):
        return str(value)
    # A p of 0.0000 would be read as certain.
    return f"<{10**-decimals:.{decimals}f}" if 0 < value < 0.5 * 10**-decimals else f"{value + 0.0:.{decimals}f}"


def _is_numeric(table: Table, column: int) -> bool:
    """Return whether all cells of a column but empty ones have numbers, or texts such as +0.0123* and 0.012."""
    cells = [row[column] for row in table.rows if row[column] not in (None, "")]
    return bool(cells) and all(not isinstance(cell, str) or _NUMBER.fullmatch(cell) for cell in cells)
