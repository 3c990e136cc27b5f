"""What was given where something else was wanted, and the call that makes the one from the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def shown(value: Any) -> str:
    """The type and the beginning of a value, on one line."""
    return f"{type(value).__name__} {value!r:.60}".replace("\n", " ")


def remedy(value: Any) -> str:
    """The function of greylag that reads a value of another package, or "" if there is none."""
    item = next(iter(value.values()), None) if isinstance(value, Mapping) else value
    kinds = (
        (
            hasattr(value, "columns"),
            "frames with greylag.interop.run_from_frame, topics_from_frame or qrels_from_frame",
        ),
        (
            isinstance(item, list | tuple) and item and hasattr(item[0], "docid"),
            "hits with greylag.interop.run_from_pyserini",
        ),
        (hasattr(value, "docid"), "the hits of a query with Ranking.from_hits(qid, query, hits)"),
        (
            isinstance(item, Mapping) and {"title", "description"} & item.keys(),
            "topics with greylag.interop.topics_from_pyserini(topics, field='title')",
        ),
        (
            hasattr(value, "queries_iter") or hasattr(value, "query_id"),
            "them with greylag.interop.topics_from_ir_datasets, qrels_from_ir_datasets or run_from_ir_datasets",
        ),
        (
            type(value).__module__.startswith("ranx."),
            "them with greylag.interop.run_from_ranx or qrels_from_ranx",
        ),
    )
    return next((f"read {how}" for is_one, how in kinds if is_one), "")
