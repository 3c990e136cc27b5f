"""Topics come in here: texts of queries by their identifiers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, TypeAlias

from greylag.base.core import labels
from greylag.base.core.hints import remedy, shown
from greylag.base.core.labels import Frame, Series, by_label, unique_ids
from greylag.base.errors import ParameterError
from greylag.base.ranking import Query

TopicsLike: TypeAlias = Mapping[Any, str] | Series | Frame | Iterable[Query]
"""Texts by qid, in a mapping or a Series; a frame with the columns qid and query, or text; or queries."""


def as_topics(value: TopicsLike) -> Mapping[str, str]:
    """Return topics as texts by qid, in their order; `ParameterError` for a qid with two texts. There may be none."""
    value = labels.listed(value)
    if labels.is_frame(value):
        return labels.texts_of(labels.qids_of(value), labels.column_of(value, "topic"))
    if isinstance(value, list | tuple) and all(isinstance(query, Query) for query in value):
        return unique_ids(((query.qid, query.text) for query in value), "query")
    if not labels.has_labels(value):
        raise ParameterError(f"topics are {shown(value)}: {remedy(value) or 'pass a path, or texts by qid'}")
    texts = by_label(value, "query")
    if wrong := next((qid for qid, text in texts.items() if not isinstance(text, str)), None):
        how = remedy(value) or "texts are strings"
        raise ParameterError(f"topic {wrong!r} is {shown(texts[wrong])}, and no text: {how}")
    return texts
