"""Topics, in the formats of TREC and similar collections.

The format is detected from the content. A file that does not start with ``<`` is a table, ``qid TAB text``; otherwise
the first of these tags decides:

    <top>                 TREC: <num> Number: 301 <title> ... <desc> Description: ... (closing tags or not)
    <DOC>                 CACM: <DOC> <DOCNO> 1 </DOCNO> text </DOC>
    <topic number="1">    XML, as in the Web tracks: <query>, <description>, ...
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

from greylag.errors import FormatError, ParameterError
from greylag.runtime.files import Faults, read_text

FIELDS = {"title": ("title", "query"), "description": ("desc", "description"), "narrative": ("narr", "narrative")}
"""The tags of a field in the TREC and XML formats."""

_FORM = re.compile(r"<(top|DOC|topic)\b", re.IGNORECASE)
_TOP = re.compile(r"<top\b[^>]*>", re.IGNORECASE)
_DOC = re.compile(r"<DOC\b[^>]*>", re.IGNORECASE)
_TAG = re.compile(r"<(/?[a-z]\w*)[^<>]*>", re.IGNORECASE)
_LABEL = re.compile(r"\A\s*(?:Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_CACM = re.compile(r"\s*<DOCNO>([^<>]*)</DOCNO>(.*)", re.IGNORECASE | re.DOTALL)
_MORE = re.compile(r"</?DOC", re.IGNORECASE)

Topic = tuple[int | None, str, str]  # line, qid, text


def read_topics(path: str | Path, *, field: str = "title", lenient: bool = False) -> dict[str, str]:
    """Read topics in any of the formats listed in the module's docstring.

    Parameters
    ----------
    path : str or Path
        The file, plain or gzipped.
    field : str, default "title"
        "title", "description", "narrative" or the name of another tag. Tables and the CACM format have only a title.
    lenient : bool, default False
        Repair faults and log them: the first of duplicates is kept, empty topics and lines are skipped, a line without
        a tab is split at the first white space, and further tabs are spaces.

    Returns
    -------
    dict of str to str
        Texts by qid, in the file's order, with white space normalised. In the TREC format, labels ("Number:", "Topic:",
        "Description:", "Narrative:") and leading zeros of numbers are removed, as relevance judgements have none.

    Raises
    ------
    FormatError
        If the file is malformed, or a topic lacks the field.
    """
    topics: dict[str, str] = {}
    with Faults(path, lenient) as faults:
        text = read_text(path, faults).decode()
        tag = _FORM.search(text) if text.lstrip().startswith("<") else None
        read = {"top": _trec, "doc": _cacm, "topic": _xml}[tag[1].lower()] if tag else _table
        for line, qid, words in read(path, text, field, faults):
            query = " ".join(words.split())
            if qid.split() != [qid]:
                raise FormatError(path, line, f"topic identifier {qid!r} is empty or has white space; rename it")
            if qid in topics:
                faults.repair(line, f"duplicate topic {qid!r}", "keeps the first")
            elif not query:
                faults.repair(line, f"topic {qid!r} has no text", "skips the topic")
            else:
                topics[qid] = query
    if not topics:
        raise FormatError(path, None, "has no topics; is this the right file?")
    return topics


def _table(path: str | Path, text: str, field: str, faults: Faults) -> Iterator[Topic]:
    _only_title(path, field, "a table")
    for line, row in enumerate(text.removesuffix("\n").split("\n"), 1):
        columns = row.split("\t")
        if not row.strip():
            faults.repair(line, "the line is empty", "skips the line")
            continue
        if len(columns) < 2:
            faults.repair(line, "no tab; a line is qid, tab, text", "splits at the first white space")
            columns = row.split(maxsplit=1)
        elif len(columns) > 2:
            faults.repair(line, f"{len(columns) - 1} tabs; a line is qid, tab, text", "joins the rest")
        qid, *words = columns
        yield line, qid.strip(), " ".join(words)


def _trec(path: str | Path, text: str, field: str, faults: Faults) -> Iterator[Topic]:
    for line, top in _elements(text, _TOP, "</top>"):
        _, *parts = _TAG.split(top)
        fields: dict[str, str] = {}
        for tag, words in zip(parts[::2], parts[1::2], strict=True):
            fields.setdefault(tag.lower(), _LABEL.sub("", words))
        number = _pick(fields, ("num",), path, line).strip()
        qid = number.lstrip("0") or "0" if number.isdigit() else number
        yield line, qid, _pick(fields, FIELDS.get(field, (field,)), path, line)


def _cacm(path: str | Path, text: str, field: str, faults: Faults) -> Iterator[Topic]:
    _only_title(path, field, "in the CACM format")
    for line, element in _elements(text, _DOC, "</DOC>"):
        match = _CACM.fullmatch(element)
        if match is None or _MORE.search(match[2]):
            raise FormatError(path, line, "not of the form <DOC> <DOCNO> qid </DOCNO> text </DOC>")
        yield line, match[1].strip(), match[2]


def _xml(path: str | Path, text: str, field: str, _: Faults) -> Iterator[Topic]:
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise FormatError(path, error.position[0], f"the XML is not well-formed: {error}") from None
    for topic in root.iter("topic"):
        fields: dict[str, str] = {}
        for child in topic:
            fields.setdefault(child.tag, "".join(child.itertext()))
        yield None, topic.get("number", "").strip(), _pick(fields, FIELDS.get(field, (field,)), path, None)


def _pick(fields: dict[str, str], tags: tuple[str, ...], path: str | Path, line: int | None) -> str:
    tag = next((tag for tag in tags if tag in fields), None)
    if tag is None:
        wanted, there = " or ".join(f"<{tag}>" for tag in tags), ", ".join(t for t in fields if not t.startswith("/"))
        raise FormatError(path, line, f"a topic has no {wanted}; choose one of its fields: {there or 'it has none'}")
    return fields[tag]


def _only_title(path: str | Path, field: str, form: str) -> None:
    if field != "title":
        raise ParameterError(f"field is {field!r}: {path} is {form}, with one text per topic; use 'title'")


def _elements(text: str, opening: re.Pattern[str], closing: str) -> Iterator[tuple[int, str]]:
    """The line and content of each element; it ends at its closing tag, at the next element, or with the text."""
    end = re.compile(closing, re.IGNORECASE)
    line, place, content = 1, 0, -1
    for match in (*opening.finditer(text), None):
        if content >= 0:
            closed = end.search(text, content, match.start() if match else len(text))
            yield line, text[content : closed.start() if closed else match.start() if match else len(text)]
        if match:
            line += text.count("\n", place, match.start())
            place, content = match.start(), match.end()
