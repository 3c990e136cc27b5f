"""Wrong arguments and attributes are answered with the call that works; other errors pass as they are."""

from __future__ import annotations

import inspect
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import greylag
from greylag import MMR, PositionalIndex, Query, Ranking, Reranker, Run, rerank
from greylag.core.guidance import Guided, guided
from greylag.errors import ParameterError
from greylag.index.bm25 import PositionalBM25
from greylag.passages import langchain_compressor

INDEX: Any = PositionalIndex.from_texts({"d1": "a cat sat", "d2": "a dog ran"})
RUN: Any = Run((Ranking("1", "cat", ("d1",), np.ones(1)),))
ANY: Any = greylag
SOURCE: Any = PositionalBM25(INDEX)


@pytest.mark.parametrize(
    ("guess", "answer"),
    [
        (lambda: ANY.evaluate(RUN), r"missing 1 .*'qrels': the call is evaluate\(run, qrels, measures="),
        (lambda: ANY.evaluate(RUN, {}, metrics=["map"]), "write measures for metrics; the call is evaluate"),
        (lambda: ANY.MMR(INDEX, lambda_mult=0.5), r"write relevance_weight for lambda_mult; the call is MMR\(index"),
        (lambda: ANY.MMR(INDEX, 0.5), r"the call is MMR\(index=None, \*, "),
        (lambda: ANY.train(RUN, {}, INDEX, cv=5), r"write folds for cv; the call is train\("),
        (lambda: ANY.Query("cat"), r"the call is Query\(qid, text\)"),
        (lambda: ANY.Ranking("1", []), r"the call is Ranking\(qid, query, docids, scores\) or Ranking.from_hits\("),
        (lambda: ANY.Run({}, name="a"), "write tag for name"),
        (
            lambda: ANY.PositionalIndex("index"),
            r"the call is PositionalIndex.from_lucene\(lucene\) or P.*from_texts\(",
        ),
        (lambda: ANY.PositionalIndex.from_texts({}, lang="de"), "write language for lang"),
        (lambda: ANY.Reranker("mmr").rank("cat", docs=[]), "write passages for docs"),
        (lambda: SOURCE.run({}, threads=2), "write n_jobs for threads"),
        (lambda: SOURCE("cat", k=2), "unexpected keyword argument 'k': the call is "),
        (lambda: SOURCE % 10, "steps are joined by >>"),
        (lambda: 0.5 * SOURCE, "steps are joined by >>"),
    ],
)
def test_arguments(guess: Callable[[], Any], answer: str) -> None:
    with pytest.raises(TypeError, match=answer):
        guess()


@pytest.mark.parametrize(
    ("guess", "answer"),
    [
        (lambda: RUN.save("a.run"), r"Run has no attribute 'save': use greylag.write_run\(run, path\)"),
        (lambda: ANY.Run.from_file("a.run"), r"Run has no attribute 'from_file': use greylag.read_run\(path\)"),
        (lambda: ANY.ModelRanker.load("m.json"), r"use ModelRanker\(path, index\)"),
        (lambda: ANY.LuceneIndex.from_prebuilt_index("cacm"), r"use LuceneIndex\(name\)"),
        (lambda: SOURCE.transform(RUN), r"use .run\(run\)"),
        (lambda: SOURCE.cutoff, "PositionalBM25 has no attribute 'cutoff': it has .*run"),
        (lambda: SOURCE._cutoff, "PositionalBM25 has no attribute '_cutoff'$"),
    ],
)
def test_attributes(guess: Callable[[], Any], answer: str) -> None:
    with pytest.raises(AttributeError, match=answer):
        guess()


@pytest.mark.parametrize(
    ("guess", "answer"),
    [
        (lambda: rerank("cat", ["a cat"], top_n=1), "no option 'top_n': did you mean top_k"),
        (
            lambda: rerank("cat", ["a cat"], [1], lambda_mult=0.5),
            "'lambda_mult': did you mean relevance_weight",
        ),
        (lambda: Reranker("mmr", lang="de"), "no option 'lang': did you mean language"),
        (lambda: langchain_compressor(top_n=1), "no option 'top_n': did you mean top_k"),
        (lambda: ANY.evaluate(RUN, {"1": {"d1": 1}})["AP"], "by_measure has the means"),
        (lambda: rerank("cat", [type("Document", (), {"page_content": "a"})()]), "take its .page_content"),
    ],
)
def test_options(guess: Callable[[], Any], answer: str) -> None:
    with pytest.raises(ParameterError, match=answer):
        guess()


def test_errors_within_a_call_pass_as_they_are() -> None:
    @guided
    def fails(value: Any) -> Any:
        return value + 1

    with pytest.raises(TypeError) as caught:
        fails("a")
    assert "the call is" not in str(caught.value)
    assert fails(1) == 2


def test_what_python_sees_is_as_before() -> None:
    assert list(inspect.signature(greylag.evaluate).parameters) == ["run", "qrels", "measures"]
    assert list(inspect.signature(Query).parameters) == ["qid", "text"]
    assert "relevance_weight" in inspect.signature(MMR).parameters
    assert pickle.loads(pickle.dumps((RUN, SOURCE, greylag.evaluate)))[0] == RUN
    assert not hasattr(RUN, "columns")
    assert isinstance(type(MMR(INDEX)), Guided)
