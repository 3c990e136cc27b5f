"""Texts found in tables, compared with lists."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.index.tables import find, join


@settings(deadline=None)
@given(st.sets(st.binary(max_size=5)), st.lists(st.binary(max_size=5)), st.randoms(use_true_random=False))
def test_texts_are_found(texts: set[bytes], more: list[bytes], rng: Any) -> None:
    table, wanted = list(texts), [*texts, *more]
    rng.shuffle(table)
    order = np.array(sorted(range(len(table)), key=table.__getitem__), dtype=np.int32)
    numbers = [table.index(text) if text in texts else -1 for text in wanted]
    assert find(*join(table), order, *join(wanted)).tolist() == numbers
    ascending = sorted(table)
    numbers = [ascending.index(text) if text in texts else -1 for text in wanted]
    assert find(*join(ascending), order[:0], *join(wanted)).tolist() == numbers
