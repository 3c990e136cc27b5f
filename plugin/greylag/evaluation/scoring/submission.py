"""The rules of a submission to TREC, checked in a run's file: nothing is repaired, every rule is looked at.

TREC's tracks check runs by scripts with these rules: six columns, Q0, one tag, topics that exist and are
all there, no document twice, a depth, ranks that count up, scores that do not rise, and documents that exist.
"""

from __future__ import annotations

import hashlib
import io
import math
import re
from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from greylag.base import Faults, FormatError, Ties, check_counts, parse_number, read_rows, read_text_blocks
from greylag.evaluation.trec.qrels import BEIR_COLUMNS

DEPTH = 1000  # documents for a topic, in most tracks
TAG = re.compile(rb"[A-Za-z0-9_.-]{1,20}")
COLUMNS = "qid Q0 docid rank score tag"
RULES = {
    "format": f"six columns: {COLUMNS}",
    "Q0": "the second column is Q0",
    "tag": "one tag, of at most 20 letters, digits, _, . and -",
    "topics": "all are among the topics",
    "missing": "every topic has a document",
    "duplicates": "no topic has a document twice",
    "depth": "no topic has more documents than the depth",
    "ranks": "they count up from 1 or 0",
    "scores": "they are numbers that never rise with the rank",
    "documents": "all exist, as far as is known",
}


class Breach(NamedTuple):
    """What breaks a rule."""

    line: int | None  # None of what no line has, such as a topic that is missing
    reason: str


@dataclass(frozen=True, slots=True)
class Finding:
    """A rule: how often it is broken, where first, and each time."""

    rule: str
    broken: int
    detail: str  # the first line that breaks it, or the rule itself
    checked: bool
    breaches: Sequence[Breach]

    def to_dict(self) -> dict[str, Any]:
        """Return the finding as a dictionary that JSON can represent."""
        own = {"rule": self.rule, "broken": self.broken, "detail": self.detail, "checked": self.checked}
        return {**own, "breaches": [breach._asdict() for breach in self.breaches]}

    def __str__(self) -> str:
        more = f" ({self.broken} in total; --format json has all)" if self.broken > 1 else ""
        verdict = "refused" if self.broken else "ok" if self.checked else "not checked"
        return f"{verdict:7} {self.rule}: {self.detail}{more}"


@dataclass(frozen=True, slots=True)
class Submission:
    """The findings, and a tag and digest that reveal duplicate runs."""

    findings: list[Finding]  # for each rule, in their order
    tag: str  # of the first line; "" if there is none
    rankings: str  # a digest of the documents of all topics in the file's order; "" if there are none
    ties: Ties  # the topics, and those in which trec_eval breaks ties in another order than that of the lines


@dataclass
class _Checks:
    """The state of the check after some lines of a run."""

    path: Path
    topics: Collection[str]
    depth: int
    broken: dict[str, list[Breach]] = field(default_factory=dict)
    tag: bytes = b""
    ranked: dict[bytes, dict[bytes, None]] = field(default_factory=dict)  # docids by qid, in the order of the lines
    last: dict[bytes, tuple[int, float, bytes]] = field(default_factory=dict)  # of a topic's line before
    turned: set[bytes] = field(default_factory=set)  # topics with ties in another order than by docid, descending

    def refuse(self, rule: str, line: int | None, reason: str) -> None:
        """Keep what breaks a rule."""
        self.broken.setdefault(rule, []).append(Breach(line, reason))

    def finding(self, rule: str, *, checked: bool) -> Finding:
        """Return what was found by a rule."""
        breaches = self.broken.get(rule, [])
        detail = str(FormatError(self.path, *breaches[0])) if breaches else RULES[rule]
        return Finding(rule, len(breaches), detail, checked, breaches)

    def read(self, number: int, line: bytes) -> None:
        """Look at a line."""
        row = line.split()
        if b"\r" in line:
            self.refuse("format", number, "has a carriage return; end lines with a line feed")
            return
        if len(row) != 6:
            comment = "; leave comments out: --metadata writes them" if line.startswith(b"#") else ""
            self.refuse("format", number, f"{len(row)} columns instead of 6{comment}")
            return
        qid, second, docid, rank, score, tag = row
        topic, name = qid.decode(), docid.decode()
        self.tag = self.tag or tag
        if second != b"Q0":
            self.refuse("Q0", number, f"the second column is {second.decode()!r}")
        if not TAG.fullmatch(tag):
            self.refuse("tag", number, f"tag {tag.decode()!r}: {RULES['tag']}")
        elif tag != self.tag:
            self.refuse("tag", number, f"tag {tag.decode()!r} after {self.tag.decode()!r}: a run has one")
        documents = self.ranked.setdefault(qid, {})
        # Once per topic, at its first line.
        if not documents and topic not in self.topics:
            self.refuse("topics", number, f"topic {topic!r} is not among the topics")
        if docid in documents:
            self.refuse("duplicates", number, f"document {name!r} is there twice for topic {topic!r}")
        documents[docid] = None
        # Once a topic.
        if len(documents) == self.depth + 1:
            self.refuse("depth", number, f"topic {topic!r} has more than {self.depth} documents")
        self.follow(number, qid, docid, rank, score)

    def follow(self, number: int, qid: bytes, docid: bytes, rank: bytes, score: bytes) -> None:
        """Look at a line beside its topic's line before."""
        value, before = parse_number(score), self.last.get(qid)
        if not rank.isdigit():
            self.refuse("ranks", number, f"rank {rank.decode()!r} is not an integer")
        elif (int(rank) > 1) if before is None else (int(rank) != before[0] + 1):
            after = "at the head of a topic" if before is None else f"after {before[0]}"
            self.refuse("ranks", number, f"rank {int(rank)} {after}")
        if not math.isfinite(value):
            self.refuse("scores", number, f"score {score.decode()!r} is not a number")
        elif before is not None and value > before[1]:
            self.refuse("scores", number, f"score {score.decode()} is higher than the one before it, {before[1]:g}")
        elif before is not None and docid > before[2] and np.float32(value) == np.float32(before[1]):
            # trec_eval compares scores in float32, and docids where these are equal.
            self.turned.add(qid)
        counted = int(rank) if rank.isdigit() else (before[0] + 1 if before else 1)
        # After a fault, count on from what was there, so that one mistake is not reported at every line below.
        self.last[qid] = counted, value if math.isfinite(value) else math.inf, docid


def known_documents(path: Path) -> Callable[[set[bytes]], set[bytes]]:
    """Return which docids are known by a file of them, or by judgements: all, if a run shares one with these."""
    with Faults(path, lenient=None) as faults:
        rows = [row for _, row in read_rows(path, "docid", faults, "qid iteration docid grade", BEIR_COLUMNS)]
    if len(rows[0]) == 1:
        return {row[0] for row in rows}.intersection
    judged = {row[-2] for row in rows}
    return lambda docids: set() if judged.isdisjoint(docids) else docids


def check_submission(
    path: str | Path,
    topics: Collection[str],
    *,
    known: Callable[[set[bytes]], set[bytes]] | None = None,
    depth: int = DEPTH,
) -> Submission:
    """Check a run's file by TREC's rules of submission."""
    check_counts(depth=depth)
    checks, number = _Checks(Path(path), dict.fromkeys(topics), depth), 0
    with np.errstate(over="ignore"):  # scores beyond float32 tie at infinity
        for block in read_text_blocks(path, Faults(path, lenient=None)):
            for line in io.BytesIO(block):
                number += 1
                if line.strip():
                    checks.read(number, line)
    read, digest = bool(checks.ranked), ""
    if read:  # else no line has the columns that the other rules are about
        missing = [topic for topic in checks.topics if topic.encode() not in checks.ranked]
        for topic in missing:
            reason = f"topic {topic!r} has no document"
            if len(missing) == len(checks.topics):
                reason = "no topic is among the topics: are both for the same task?"
            checks.refuse("missing", None, reason)
        every = set().union(*checks.ranked.values())
        for docid in sorted(every - known(every)) if known is not None else ():
            checks.refuse("documents", None, f"document {docid.decode()!r} is not known")
        lines = (b" ".join([qid, *docids]) for qid, docids in sorted(checks.ranked.items()))
        digest = hashlib.sha256(b"\n".join(lines)).hexdigest()  # bytes of docids have no white space
    rules = [rule for rule in RULES if rule != "documents" or known is not None]
    findings = [checks.finding(rule, checked=read) for rule in rules]
    ties = Ties(queries=len(checks.ranked), turned=len(checks.turned))
    return Submission(findings, checks.tag.decode(), digest, ties)
