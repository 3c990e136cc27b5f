"""Hints in errors: values of other packages are recognised, and their converter is named."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from types import FunctionType
from typing import Any

LONGEST = 60  # characters of a value in a message


def shown(value: Any) -> str:
    """Return the type and the beginning of a value, on one line; the name of a function."""
    if isinstance(value, FunctionType):
        return f"function {value.__name__}"
    kind = type(value).__name__
    try:
        text = f"{value!r}".replace("\n", " ")
    except (ValueError, RecursionError):  # of numbers with many digits, and of deep lists
        return f"a {kind} that is too large to show"
    if len(text) > LONGEST:
        text = f"{text[:LONGEST].rpartition(' ')[0] or text[:LONGEST]}..."
    return text if text.startswith(f"{kind}(") else f"{kind} {text}"


def remedy(value: Any) -> str:
    """Return the function of greylag that reads a value of another package, or "" if there is none."""
    item = next(iter(value.values()), None) if isinstance(value, Mapping) else value
    first = value[0] if isinstance(value, list | tuple) and value else value
    hits = isinstance(item, list | tuple) and item and hasattr(item[0], "docid")
    fields = isinstance(item, Mapping) and {"title", "description"} & item.keys()
    irds = any(hasattr(item, name) for item in (value, first) for name in ("queries_iter", "query_id"))
    kinds = {
        "files with greylag.read_run, read_qrels or read_topics": isinstance(value, str | Path),
        "frames with greylag.read_run, read_topics or read_qrels": hasattr(value, "columns"),
        "hits with greylag.passages.run_from_pyserini": hits,
        "the hits of a query with Ranking.from_hits(qid, query, hits)": hasattr(value, "docid"),
        "topics with greylag.passages.topics_from_pyserini(topics, field='title')": fields,
        "them with greylag.passages.topics_from_ir_datasets, qrels_from_ir_datasets or run_from_ir_datasets": irds,
    }
    return next((f"read {how}" for how, is_one in kinds.items() if is_one), "")
