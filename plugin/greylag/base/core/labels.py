"""Labels of others' values: identifiers, names, columns of frames, and the order that labels stand for.

One rule each, for every kind of value. An identifier is a string; whole numbers are converted. What has labels, as
mappings have, a Series and a frame of pandas, is taken by them, and never by position; lists, arrays and the frames of
polars have none. No other package is imported.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from numbers import Integral, Real
from typing import Any, Protocol

from greylag.base.core.checks import check_sequences
from greylag.base.core.hints import shown
from greylag.base.errors import ParameterError

COLUMN_NAMES: Mapping[str, tuple[str, ...]] = {
    "qid": ("qid", "query_id", "q_id"),
    "docno": ("docno", "docid", "doc_id"),
    "score": ("score",),
    "query": ("query",),
    "topic": ("query", "text"),  # in topics alone: a hit's text may be the document's
    "label": ("label", "relevance", "rel", "grade"),
    "subtopic": ("subtopic", "subtopic_id", "iteration"),
}
"""The columns of frames, and the names that packages give them. Frames are made with the first, PyTerrier's."""


MAX_GRADE = 2**53
"""The largest magnitude of a grade: beyond it, floats lose digits."""


class Frame(Protocol):
    """A data frame of pandas or polars, with columns of `COLUMN_NAMES`."""

    @property
    def columns(self) -> Any:
        """The names of the columns."""

    def __getitem__(self, name: Any, /) -> Any:
        """Return a column."""


class Series(Protocol):
    """A Series of pandas: values by the labels of its index."""

    @property
    def index(self) -> Any:
        """The labels."""

    def items(self) -> Iterable[tuple[Any, Any]]:
        """Return pairs of label and value."""

    def to_list(self) -> list[Any]:
        """Return the values."""


def as_identifier(value: Any, what: str) -> str:
    """Convert an identifier or a name to a string: whole numbers are converted; floats may lack digits."""
    if isinstance(value, str):
        return value
    if isinstance(value, Integral) and not isinstance(value, bool):
        return str(int(value))
    raise ParameterError(
        f"{what} is {shown(value)}: it must be a string or an integer; convert identifiers with astype(str)"
    )


def is_missing(value: Any) -> bool:
    """Return whether a value is None, or what pandas marks as missing."""
    return value is None or type(value).__name__ == "NAType" or (isinstance(value, float) and math.isnan(value))


def check_grade(value: Any, what: str) -> int:
    """Return a relevance grade, a whole number; truth values and texts are none."""
    grade: Any = value
    if isinstance(value, Real) and _is_number(value) and (isinstance(value, Integral) or float(value).is_integer()):
        if abs(grade) <= MAX_GRADE:
            return int(grade)
        raise ParameterError(f"the grade of {what} is {shown(value)}: it must be from -{MAX_GRADE} to {MAX_GRADE}")
    how = "the run comes before the judgements" if isinstance(value, float) else "convert grades with int()"
    raise ParameterError(f"the grade of {what} is {shown(value)}: it must be a whole number; {how}")


def check_number(value: Any, what: str) -> float:
    """Check that a score or rank is a finite number, and return it."""
    try:
        if _is_number(value):
            if math.isfinite(number := float(value)):
                return number
            raise ParameterError(f"{what} is {number}: it must be finite")
    except TypeError:  # an array of one number
        pass
    except OverflowError:
        raise ParameterError(f"{what} is beyond the range of floats: it must be finite") from None
    raise ParameterError(f"{what} is {shown(value)}: it must be a number; convert it with float()")


def _is_number(value: Any) -> bool:
    # NumPy's truth values, complex numbers, times and texts have the method, too.
    kind = getattr(getattr(value, "dtype", None), "kind", "f")
    return hasattr(value, "__float__") and not isinstance(value, bool) and kind not in "bcmMSU"


def check_text(value: Any, what: str) -> str:
    """Check that a text is a string, and return it."""
    if not isinstance(value, str):
        how = "; take its .page_content" if hasattr(value, "page_content") else ""
        if isinstance(value, tuple) and value and hasattr(value[0], "page_content"):
            how = "; take its [0].page_content, or give documents to greylag.passages.langchain_compressor"
        how = "; take its .text" if isinstance(getattr(value, "text", None), str) else how
        raise ParameterError(f"the text of {what} is {shown(value)}: it must be a string{how}")
    return value


def listed(value: Any) -> Any:
    """Return a list of the items of an iterator, and any other value unchanged."""
    return list(value) if isinstance(value, Iterator) else value


def is_frame(value: Any) -> bool:
    """Return whether a value is a data frame of pandas or polars, by its columns."""
    if hasattr(value, "collect"):  # of polars, Spark
        raise ParameterError(
            f"a {type(value).__name__} has no rows yet: pass its .collect(), or .toPandas() of Spark's"
        )
    return hasattr(value, "columns")


def has_labels(value: Any) -> bool:
    """Return whether a value is a mapping or a Series of pandas."""
    series = hasattr(value, "index") and hasattr(value, "items") and not hasattr(value, "columns")
    return isinstance(value, Mapping) or series


def by_label(values: Any, what: str) -> Mapping[str, Any]:
    """Return a mapping or a Series as a mapping by the identifiers of queries, documents or other things."""
    if isinstance(values, Mapping) and all(isinstance(key, str) for key in values):
        return values
    # The values of a Series are then Python's, as those of a column are.
    pairs = values.items() if isinstance(values, Mapping) else zip(values.index, values.to_list(), strict=True)
    return unique_ids(((as_identifier(key, f"a {what}'s identifier"), value) for key, value in pairs), what)


def unique_ids(pairs: Iterable[tuple[str, Any]], what: str) -> dict[str, Any]:
    """Make a dictionary of pairs with different keys."""
    values: dict[str, Any] = {}
    for key, value in pairs:
        if key in values:
            raise ParameterError(f"{what} {key!r} occurs twice")
        values[key] = value
    return values


def one_each(values: Any, ids: Sequence[Hashable], what: str, of: str = "passage") -> list[Any]:
    """List the value of each of different `ids`, by label, or else by position."""
    if has_labels(values):
        table: Mapping[Any, Any] = values if isinstance(values, Mapping) else by_label(values, of)
        if {*table} != {*ids}:
            table, ids = by_label(table, of), [as_identifier(name, f"a {of}'s identifier") for name in ids]
        if different := table.keys() ^ {*ids}:
            raise ParameterError(f"{of}s and {what} have different identifiers, such as {min(map(str, different))!r}")
        return [table[name] for name in ids]
    check_sequences(**{what: values})
    if len(given := list(values)) != len(ids):
        raise ParameterError(f"{len(ids)} {of}s but {len(given)} {what}: give one for each")
    return given


def column_name(frame: Any, column: str) -> str | None:
    """Return a frame's name for one of `COLUMN_NAMES`; None if it has no such column."""
    return next((name for name in COLUMN_NAMES[column] if name in frame.columns), None)


def column_of(frame: Any, column: str) -> list[Any]:
    """Return the values of one of `COLUMN_NAMES`."""
    name = column_name(frame, column)
    if name is None:
        wanted, there = " or ".join(COLUMN_NAMES[column]), ", ".join(map(str, frame.columns)) or "none"
        raise ParameterError(f"the frame has no column {wanted}; its columns are {there}: rename one")
    return column_values(frame, name)


def column_values(frame: Any, name: str) -> list[Any]:
    """Return the values of a column, which is the only one of its name."""
    values = frame[name]
    if hasattr(values, "columns"):
        raise ParameterError(f"the frame has several columns {name}: drop or rename all but one")
    return values.to_list()  # type: ignore[no-any-return]


def qids_of(frame: Any) -> list[str]:
    """Return the identifier of the query of each row."""
    return [as_identifier(value, "a query's identifier") for value in column_of(frame, "qid")]


def texts_of(qids: Sequence[str], texts: Sequence[Any]) -> dict[str, str]:
    """Return the texts by qid of rows that have both."""
    topics: dict[str, str] = {}
    for qid, query in zip(qids, texts, strict=True):
        if topics.setdefault(qid, check_text(query, f"query {qid}")) != query:
            raise ParameterError(f"query {qid} has two texts, {topics[qid]!r} and {query!r}")
    return topics


def is_of_ranx(value: Any, kind: str) -> bool:
    """Return whether a value is ranx's ``Run`` or ``Qrels``."""
    return type(value).__name__ == kind and type(value).__module__.startswith("ranx.")


def are_items(value: Any, *attributes: str) -> bool:
    """Return whether a value is a list of objects with these attributes, which all or none of them have."""
    items = value if isinstance(value, list | tuple) else ()
    lacking = [place for place, item in enumerate(items) if not all(hasattr(item, name) for name in attributes)]
    if lacking and lacking[0]:
        place, kind, names = lacking[0], type(items[0]).__name__, ", ".join(attributes)
        raise ParameterError(f"[{place}] is {shown(items[place])}: it must have {names}, as the {kind} before it")
    return bool(items) and not lacking


def flat(table: Mapping[Any, Mapping[Any, Any]]) -> Iterator[tuple[Any, Any, Any]]:
    """Yield the rows of a table of tables."""
    return ((qid, docid, value) for qid, by_docid in table.items() for docid, value in by_docid.items())


def identified(rows: Iterable[tuple[Any, Any, Any]]) -> Iterator[tuple[str, str, Any]]:
    """Convert the identifiers of rows of query, document and value."""
    for qid, docid, value in rows:
        yield as_identifier(qid, "a query's identifier"), as_identifier(docid, "a document's identifier"), value
