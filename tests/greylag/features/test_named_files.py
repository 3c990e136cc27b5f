"""The files that settings name."""

from __future__ import annotations

import json
import os
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from greylag.features.named_files import followed, named_files
from greylag.features.spelling import parse_feature
from greylag.ltr.linear import LinearModel

NAMES = st.text("abc.:/*", max_size=8)
VALUES = st.recursive(
    st.none() | st.integers() | NAMES, lambda parts: st.lists(parts) | st.dictionaries(NAMES, parts), max_leaves=9
)


def test_files_of_features_are_named() -> None:
    settings = {
        "index": "folder",
        "features": ["run:a.run@z", "prior:b.tsv:log@z", "FI/term/BM25"],
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


def test_models_are_followed_and_circles_end(tmp_path: Path) -> None:
    one, two, prior = tmp_path / "one.json", tmp_path / "two.json", tmp_path / "prior.tsv"
    prior.write_text("a 1\n")
    LinearModel((parse_feature(f"stage:mrf(model={two})"),), (1.0,)).save(one)
    LinearModel(tuple(map(parse_feature, (f"stage:mrf(model={one})", f"prior:{prior}"))), (1.0, 1.0)).save(two)
    (tmp_path / "damaged.json").write_text('{"kind": ')
    os.mkfifo(tmp_path / "pipe")
    given = [one, tmp_path / "absent", tmp_path / "damaged.json", tmp_path / "pipe", tmp_path, Path("x" * 5000)]
    assert list(followed(given)) == [one, tmp_path / "damaged.json", tmp_path / "pipe", tmp_path, two, prior]
