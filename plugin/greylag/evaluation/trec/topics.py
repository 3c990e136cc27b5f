"""Topics, in the formats of TREC and similar collections.

The format is detected from the content. A file that starts with ``{`` has JSON lines with an identifier and a text, as
BEIR's ``queries.jsonl``. Another that does not start with ``<`` is a table, ``qid TAB text``; otherwise the first of
these tags decides:

    <top>                 TREC: <num> Number: 301 <title> ... <desc> Description: ... (closing tags or not)
    <DOC>                 CACM: <DOC> <DOCNO> 1 </DOCNO> text </DOC>
    <topic number="1">    XML, as in the Web tracks: <query>, <description>, ...
"""

from __future__ import annotations

import logging
import re
from collections.abc import Iterator
from itertools import product
from pathlib import Path
from xml.etree import ElementTree

from greylag.base import (
    Faults,
    FormatError,
    ParameterError,
    TopicsLike,
    as_topics,
    guided,
    is_file,
    read_text,
    split_json_lines,
)

TOPIC_FIELDS = {"title": ("title", "query"), "description": ("desc", "description"), "narrative": ("narr", "narrative")}
"""The tags of a field in the TREC and XML formats."""

_FORM = re.compile(r"<(top|DOC|topic)\b", re.IGNORECASE)
_TOP = re.compile(r"<top\b[^<>]*>", re.IGNORECASE)
_DOC = re.compile(r"<DOC\b[^<>]*>", re.IGNORECASE)
# *+ gives nothing back: of a text full of <, backtracking would take quadratic time.
_TAG = re.compile(r"<(/?[a-z]\w*+)[^<>]*+>", re.IGNORECASE)
_LABEL = re.compile(r"\A\s*(?:Number|Topic|Description|Narrative)\s*:", re.IGNORECASE)
_CACM = re.compile(r"\s*<DOCNO>([^<>]*)</DOCNO>(.*)", re.IGNORECASE | re.DOTALL)
_MORE = re.compile(r"</?DOC", re.IGNORECASE)
_ENCODING = re.compile(r"""\s*<\?xml\b[^>]*\bencoding\s*=\s*["']([^"']*)""")

_QID_KEYS = "_id", "id", "qid", "query_id", "topic_id"
_TEXT_KEYS = "text", "query", "title", "topic_title"
_HEADERS = {*product((*_QID_KEYS, "query-id", "topic"), (*_TEXT_KEYS, "topic", "question"))}  # of a table's columns
_log = logging.getLogger("greylag")

Topic = tuple[int | None, str, str]  # line, qid, text


@guided
def read_topics(path: str | Path | TopicsLike, *, field: str = "title", lenient: bool = False) -> dict[str, str]:
    """Read topics in a format of the module's docstring; `FormatError` if a topic lacks the field or is malformed.

    Parameters
    ----------
    path : str, Path or TopicsLike
        The file, plain or gzipped, or a folder in BEIR's form. Other forms are converted.
    field : str, default "title"
        "title", "description", "narrative" or the name of another tag or key. Tables and the CACM format have only a
        title. That of JSON lines is "text", "query" or "title".
    lenient : bool, default False
        Repair faults and log them: the first of duplicates is kept, empty topics are skipped, a line without a tab is
        split at the first white space, and further tabs are spaces.

    Returns
    -------
    dict of str to str
        Texts by qid, in the file's order, with white space normalised. In the TREC format, labels ("Number:", "Topic:",
        "Description:", "Narrative:") and leading zeros of numbers are removed, as relevance judgements have none.
    """
    if not isinstance(path, str | Path):
        return dict(as_topics(path))
    topics: dict[str, str] = {}
    path = beir if is_file(beir := Path(path) / "queries.jsonl") else path
    with Faults(path, lenient) as faults:
        text = read_text(path, faults).decode()
        start = text.lstrip()[:1]
        tag = _FORM.search(text) if start == "<" else None
        form = tag[1].lower() if tag else start
        if start == "[" and "\t" not in text.partition("\n")[0]:
            raise FormatError(path, 1, "begins a JSON array: write one object per line, as jq -c '.[]' does")
        read = TOPIC_FORMATS.get(form, _table)
        for line, qid, words in read(path, text, field, faults):
            query = " ".join(words.split())
            if qid.split() != [qid]:
                raise FormatError(path, line, f"topic identifier {qid!r:.60} is empty or has white space; rename it")
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
    for line, row in enumerate(text.split("\n"), 1):
        columns = row.split("\t")
        if not row.strip():
            continue
        if line == 1 and tuple(map(str.lower, row.split())) in _HEADERS:
            _log.info("%s:1: %r is read as a header, not as a topic", path, row)
            continue
        if len(columns) < 2:
            faults.repair(line, "no tab; a line is qid, tab, text", "splits at the first white space")
            columns = row.split(maxsplit=1)
        elif len(columns) > 2:
            faults.repair(line, f"{len(columns) - 1} tabs; a line is qid, tab, text", "joins the rest")
        qid, *words = columns
        yield line, qid.strip(), " ".join(words)


def _json(path: str | Path, text: str, field: str, _: Faults) -> Iterator[Topic]:
    for line, record in split_json_lines(text.encode(), path):
        texts = {key: value for key, value in record.items() if isinstance(value, str)}
        if isinstance(record.get("topics"), list):  # NeuCLIR's
            reason = "nests the topic's texts of several languages under 'topics'"
            jq = "jq -c '{topic_id} + (.topics[] | select(.lang == \"eng\"))'"
            raise FormatError(path, line, f"{reason}: choose one, as {jq} does, and see --field for its parts")
        qid = next((record[key] for key in _QID_KEYS if key in record), None)
        if isinstance(qid, bool) or not isinstance(qid, str | int):
            keys = " or ".join(_QID_KEYS)
            raise FormatError(path, line, f"a topic needs an identifier, {keys}, which is a string or an integer")
        yield line, str(qid), _pick(texts, _TEXT_KEYS if field == "title" else (field,), path, line)


def _trec(path: str | Path, text: str, field: str, faults: Faults) -> Iterator[Topic]:
    for line, top in _elements(text, _TOP, "</top>"):
        _, *parts = _TAG.split(top)
        # Tags and the texts after them, in turn. Of a tag that is there twice, the first counts.
        fields: dict[str, str] = {}
        for tag, words in zip(parts[::2], parts[1::2], strict=True):
            fields.setdefault(tag.lower(), _LABEL.sub("", words))
        number = _pick(fields, ("num",), path, line).strip()
        # Judgements of TREC have 1 where topics have 001.
        qid = number.lstrip("0") or "0" if number.isdigit() else number
        yield line, qid, _pick(fields, TOPIC_FIELDS.get(field, (field,)), path, line)


def _cacm(path: str | Path, text: str, field: str, faults: Faults) -> Iterator[Topic]:
    _only_title(path, field, "in the CACM format")
    for line, element in _elements(text, _DOC, "</DOC>"):
        # Text may have tags of HTML, but no second <DOCNO>: it would be two topics in one.
        match = _CACM.fullmatch(element)
        if match is None or _MORE.search(match[2]):
            raise FormatError(path, line, "not of the form <DOC> <DOCNO> qid </DOCNO> text </DOC>")
        yield line, match[1].strip(), match[2]


def _xml(path: str | Path, text: str, field: str, faults: Faults) -> Iterator[Topic]:
    # The text is decoded already, and ElementTree ignores the encoding that it declares.
    declared = _ENCODING.match(text)
    if declared and declared[1].lower() not in ("utf-8", "us-ascii") and not text.isascii():
        faults.repair(1, f"the file declares the encoding {declared[1]!r}, but is read as UTF-8", "ignores that")
    try:
        root = ElementTree.fromstring(text)
    except ElementTree.ParseError as error:
        raise FormatError(path, error.position[0], f"the XML is not well-formed: {error}") from None
    for topic in root.iter("topic"):
        number, fields = topic.get("number", "").strip(), {child.tag: "".join(child.itertext()) for child in topic}
        tags = TOPIC_FIELDS.get(field, (field,))
        chosen = _pick(fields, tags, path, None)
        tag = next(tag for tag in tags if tag in fields)
        if len([*topic.iter(tag)]) > 1:
            raise FormatError(path, None, f"topic {number!r} has several <{tag}>, also within another: keep one")
        yield None, number, chosen


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
    """Yield the line and content of each element; it ends at its closing tag, at the next element, or with the text."""
    end = re.compile(closing, re.IGNORECASE)
    line, counted, content = 1, 0, -1  # lines are counted up to `counted`; `content` is where the element's text begins
    for match in (*opening.finditer(text), None):
        if content >= 0:
            closed = end.search(text, content, match.start() if match else len(text))
            yield line, text[content : closed.start() if closed else match.start() if match else len(text)]
        if match:
            line += text.count("\n", counted, match.start())
            counted, content = match.start(), match.end()


TOPIC_FORMATS = {"top": _trec, "doc": _cacm, "topic": _xml, "{": _json}
"""The readers of formats, by the first tag of a file or by how it begins; others are tables."""
