"""One clear line for data of another package: what was given, and the call that reads it."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np
import pytest

from greylag import MMR, ModelRanker, PositionalIndex, evaluate
from greylag.core.hints import remedy, shown
from greylag.errors import ParameterError
from greylag.features import FeatureExtractor, parse_features
from greylag.learning import training_data
from greylag.pipeline import Source
from greylag.rankers import RankingModel
from greylag.ranking import Query, Ranking, Run

INDEX = PositionalIndex.from_texts({"a": "cat", "b": "dog"})
STAGE = ModelRanker(RankingModel(parse_features("FI/term/BM25"), weights=(1.0,)), INDEX, transfer=True)
RUN = Run((Ranking("1", "cat", ("a",), np.ones(1)),))
BATCH = {"1": [SimpleNamespace(docid="a", score=1.0)]}
TOPICS = {301: {"title": "cat", "description": "cats"}}


EXTRACTOR = FeatureExtractor(INDEX, parse_features("FI/term/BM25"))


class Frame:
    columns = ("qid", "text")


class First(Source):
    def __call__(self, query: Query, /) -> Ranking:
        return Ranking(query.qid, query.text, ("a",), np.ones(1))


class IrQuery(NamedTuple):
    query_id: str
    text: str


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: STAGE.run(BATCH),
            "topic '1' is list .*: read hits with greylag.adapters.run_from_pyserini",
        ),
        (lambda: STAGE.run(BATCH["1"]), r"list with .*docid='a'.*: read the hits of a query with Ranking.from_hits\("),
        (lambda: MMR(INDEX).run({"1": "cat"}), "MMR reranks: it needs a source before it"),
        (lambda: First().run(RUN), "First searches: pass topics"),
        (lambda: First().run(TOPICS), "topic '301' is dict .*greylag.adapters.topics_from_pyserini"),
        (lambda: First().run([IrQuery("1", "cat")]), "IrQuery.*greylag.adapters.topics_from_ir_datasets"),
        (lambda: First().run("cat"), "cannot run on a str: pass topics"),
        (lambda: First().run(3), "cannot run on a int: pass topics"),
        (lambda: evaluate([RUN], {}, ["AP"]), "a list is no run: pass a Run, such as read_run returns"),
        (lambda: evaluate(RUN, [("1", "a", 1)], ["AP"]), "judgements are a list: pass a mapping"),
        (
            lambda: evaluate(RUN, {"1": {"a": "1"}}, ["AP"]),
            "query 1 judges document str 'a' as str '1'",
        ),
        (lambda: evaluate(RUN, {1: {"a": 1}}, ["AP"]), "have the query int 1: .*qrels_from_pyserini"),
        (lambda: evaluate(RUN, {"1": {7: 1}}, ["AP"]), "query 1 judges document int 7 as int 1: docids are"),
        (lambda: training_data([BATCH["1"]], {}, EXTRACTOR), "a list is no run: pass a Run"),
        (lambda: training_data({"1": "cat"}, {}, EXTRACTOR), "a dict is no run: pass a Run"),
        (lambda: training_data(Frame(), {}, EXTRACTOR), "a Frame is no run: read frames with"),
        (lambda: training_data(RUN, {"1": {"a": "1"}}, EXTRACTOR), "query 1 judges document str 'a' as str '1'"),
        (lambda: training_data(RUN, Frame(), EXTRACTOR), "judgements are a Frame: read frames with"),
        (lambda: training_data(RUN, {1: {}}, EXTRACTOR), "have the query int 1: .*qrels_from_pyserini"),
        (lambda: evaluate(RUN, {"1": ["a"]}, ["AP"]), r"what is judged for query 1 is list \['a'\]"),
    ],
)
def test_one_line_says_what_to_do(call: Callable[[], Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message) as caught:
        call()
    assert "\n" not in str(caught.value)


def test_nothing_is_said_of_other_values() -> None:
    assert [remedy(value) for value in (3, {}, "cat", None, [1])] == [""] * 5
    assert shown([1, 2]) == "list [1, 2]"
    assert len(shown("a" * 999)) < 80
