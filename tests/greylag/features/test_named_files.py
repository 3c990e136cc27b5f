"""The files that settings name."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from greylag.features.named_files import named_files

NAMES = st.text("abc.:/*", max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | NAMES, lambda parts: st.lists(parts) | st.dictionaries(NAMES, parts), max_leaves=9
)


def test_files_of_features_are_named() -> None:
    settings = {
        "index": "folder",
        "features": ["run:a.run@z", "product:(prior:b.tsv:log*score)", "FI/term/BM25"],
        "k": 3,
    }
    assert {"folder", "a.run", "b.tsv"} <= set(named_files(settings))
    assert "k" not in named_files(settings)


@given(VALUES)
def test_every_text_is_named(value: object) -> None:
    """A text that is no feature is named itself, wherever it is; keys are not."""

    def texts(part: object) -> list[str]:
        if isinstance(part, dict | list):
            return [text for inner in (part.values() if isinstance(part, dict) else part) for text in texts(inner)]
        return [part] if isinstance(part, str) else []

    value = json.loads(json.dumps(value))
    found = list(named_files(value))
    assert set(texts(value)) <= set(found)
