"""An index in arrays is the same index; what is no index is refused."""

import numpy as np

from greylag.base import ParameterError, Query
from greylag.index import PositionalIndex, opened_index, packed_index
from greylag.recipes import GeneralRanker
from tests.refusals import refuses

TEXTS = {f"d{n}": f"The geese {'fly ' * (n % 3)}over w{n % 7} and nest on the moor of w{n % 5}" for n in range(40)}


def test_ranks_as_the_index_of_the_texts_and_is_no_other():
    made = PositionalIndex.from_texts(TEXTS)
    arrays = packed_index(made)
    opened = opened_index(arrays, "en")
    assert opened.fingerprint == made.fingerprint
    first, again = (index.bm25(20)(Query("q", "goose nesting w3")) for index in (made, opened))
    assert again == first
    assert GeneralRanker(opened)(first) == GeneralRanker(made)(first)
    for changed in ({"words.terms": arrays["words.terms"].astype(np.int64)}, {"fingerprint": None}):
        wrong = {name: array for name, array in {**arrays, **changed}.items() if array is not None}
        refuses(lambda wrong=wrong: opened_index(wrong, "en"), ParameterError, f"no index|{next(iter(changed))}", "|")
