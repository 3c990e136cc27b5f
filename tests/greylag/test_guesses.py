"""First guesses of users of other packages: what can mean one thing only works, and else the error names the call.

Tests `greylag.pipeline` and `greylag.ranking`.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import pytrec_eval

import greylag
from greylag import MMR, GeneralRanker, ModelRanker, PositionalIndex, Query, Ranking, Run
from greylag.errors import ParameterError
from greylag.features import parse_features
from greylag.fusion import GivenRun
from greylag.index.bm25 import PositionalBM25
from greylag.rankers import RankingModel

TEXTS = {"d1": "a cat sat", "d2": "a cat sat down", "d3": "a dog ran"}
INDEX = PositionalIndex.from_texts(TEXTS)
HITS = [SimpleNamespace(docid=docid, score=score) for docid, score in (("d1", 3.0), ("d2", 2.0))]
SCORED = SimpleNamespace(query_id="1", doc_id="d1", score=1.0)  # as those of ir_measures
SCORES = {"1": {"d2": 1.0, "d1": 2.0}, "2": {"d3": 1.0}}
QRELS = {"1": {"d1": 1}, "2": {"d3": 1}}
MODEL = RankingModel(parse_features("FI/term/BM25"), weights=(1.0,))
RUN = Run((Ranking("1", "cat", ("d1", "d2"), np.array([2.0, 1.0])), Ranking("2", "dog", ("d3",), np.array([1.0]))))


def test_runs_of_pytrec_eval() -> None:
    run = Run.from_dict(SCORES, {"1": "cat", "2": "dog"})
    assert run == RUN
    assert Run.from_dict({"1": {"b": 1.0, "a": 1.0}})["1"].docids == ("b", "a")
    assert run.to_dict() == SCORES
    evaluator = pytrec_eval.RelevanceEvaluator(QRELS, {"map"})
    assert evaluator.evaluate(RUN.to_dict())["1"]["map"] == 1.0
    assert greylag.evaluate(SCORES, QRELS, ["AP"]).means.tolist() == [1.0]
    fused, expected = greylag.fuse_runs([SCORES, RUN]), greylag.fuse_runs([RUN, RUN])
    assert fused.to_dict() == expected.to_dict()


def test_scored_lists(tmp_path: Path) -> None:
    lists = {qid: [(hit.docid, hit.score) for hit in ranking] for qid, ranking in RUN.items()}
    assert Run.from_dict(lists, {"1": "cat", "2": "dog"}) == RUN
    assert greylag.evaluate(lists, QRELS, "AP").means.tolist() == [1.0]
    greylag.write_run(lists, tmp_path / "lists.run")
    assert greylag.read_run(tmp_path / "lists.run").to_dict() == SCORES
    ranking = Ranking("query", "", ("d1", "d2"), [2.0, 1.0])
    assert MMR(INDEX)(lists["1"]) == MMR(INDEX)(ranking)
    assert Ranking.from_hits("1", "cat", lists["1"]) == RUN["1"]
    assert GivenRun(lists)(Query("1", "cat")) == GivenRun(SCORES)(Query("1", "cat")) == RUN["1"]  # type: ignore[arg-type]


def test_hits_of_a_ranking_and_one_measure(tmp_path: Path) -> None:
    assert [(hit.docid, hit.score) for hit in RUN["1"]] == [("d1", 2.0), ("d2", 1.0)] == [*RUN["1"]]
    assert (RUN["1"][0].docid, RUN["1"][-1].score) == ("d1", 1.0)
    with pytest.raises(IndexError):
        RUN["1"][2]
    assert greylag.evaluate(RUN, QRELS, "AP").means.tolist() == [1.0]
    greylag.write_run(SCORES, tmp_path / "scores.run")
    assert greylag.read_run(tmp_path / "scores.run").to_dict() == SCORES


def test_a_text_for_a_query_and_a_path_for_a_model(tmp_path: Path) -> None:
    found = PositionalBM25(INDEX)("cat")
    assert (found.query, found) == ("cat", PositionalBM25(INDEX)(Query("query", "cat")))
    assert (PositionalBM25(INDEX) >> MMR(INDEX))("cat") == MMR(INDEX)(found)
    model = RankingModel(parse_features("FI/term/BM25"), weights=(1.0,))
    model.save(tmp_path / "model.json")
    for path in (tmp_path / "model.json", str(tmp_path / "model.json")):
        assert ModelRanker(path, INDEX)(RUN["1"]) == ModelRanker(model, INDEX)(RUN["1"])


def test_identifiers_that_are_integers_and_generators() -> None:
    numbered = PositionalIndex.from_texts({7: "a cat", np.int64(8): "a dog"})
    assert numbered.knows(["7", "8", "9"]).tolist() == [True, True, False]
    assert PositionalIndex.from_texts((docid, text) for docid, text in TEXTS.items()).n_documents == 3
    ranked = greylag.rerank("cat", (text for text in TEXTS.values()), (score for score in (1, 2, 3)))
    assert ranked == greylag.rerank("cat", [*TEXTS.values()], [1, 2, 3])


def test_a_stage_of_another_package_is_called_with_rankings() -> None:
    class Own(greylag.Stage):
        def __call__(self, ranking: Ranking, /) -> Ranking:
            return ranking.head(1)

    assert Own()(RUN["1"]).docids == ("d1",)
    with pytest.raises(ParameterError, match="Own reranks a Ranking, not int 7"):
        Own()(7)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("guess", "reason"),
    [
        (lambda: GeneralRanker(INDEX)(HITS), r"has no text, which .* reads: .* Ranking.from_hits"),
        (lambda: GeneralRanker(INDEX)([("d1", 1.0)]), r"has no text, .* Ranking.from_hits\(qid, query, hits\)"),  # type: ignore[arg-type]
        (
            lambda: greylag.evaluate({"1": [("d1", 1.0), ("d2", 3.0)]}, QRELS, ["AP"]),
            "query 1: scores increase at rank 2",
        ),
        (lambda: greylag.evaluate([("d1", 1.0)], QRELS, ["AP"]), "a list is no run"),  # type: ignore[arg-type]
        (lambda: MMR(INDEX)(RUN), r"MMR reranks a Ranking, not Run .*: give a Ranking, or all rankings to \.run"),
        (lambda: MMR(INDEX)("cat"), r"MMR reranks: it needs a source before it, e.g. lucene.bm25\(\) >> MMR"),
        (lambda: PositionalBM25(INDEX)(RUN), "PositionalBM25 searches for a Query or a text, not Run"),
        (
            lambda: PositionalBM25(INDEX)({"1": "cat"}),
            "PositionalBM25 searches for a Query or a text, not dict .*: use .run",
        ),
        (lambda: greylag.compare(["a", "b"], QRELS), r"runs are by name: compare\({'bm25': run"),
        (lambda: greylag.compare({"a": greylag.evaluate(RUN, QRELS)}, QRELS), "see compare_scores"),
        (lambda: greylag.evaluate([RUN], QRELS, ["AP"]), r"a list is no run: pass a Run.*{qid: {docid: score}}"),
        (lambda: greylag.evaluate(RUN, [SCORED], ["AP"]), "judgements are a list: read them .*qrels_from_ir_datasets"),  # type: ignore[arg-type]
        (lambda: GeneralRanker(INDEX).run(SCORES), r"make scores a run by Run.from_dict\(scores, topics\)"),  # type: ignore[arg-type]
        (lambda: greylag.learn_fusion({"a": SCORES, "b": HITS}, QRELS), "a list is no run"),  # type: ignore[dict-item]
        (
            lambda: GeneralRanker(INDEX).run({"1": [("d1", 1.0)]}),
            r"make scores a run by Run.from_dict\(scores, topics\)",
        ),  # type: ignore[arg-type]
        (lambda: Run.from_dict({1: {"d": 1.0}}), "query int 1 has dict .*: pass scores by qid and docid, both str"),
        (lambda: Run.from_dict({"1": {"d": 1.0, "e": float("nan")}}), "query 1: score nan is not finite"),
        (lambda: Run(SCORES), "a run consists of rankings, not str '1': Run.from_dict reads scores by docid"),  # type: ignore[arg-type]
        (lambda: RUN["1"]["d1"], "a ranking has documents by place, not str 'd1': use head"),  # type: ignore[index]
        (lambda: RUN["1"][:1], r"a ranking has documents by place, not slice.*: use head\(k\)"),  # type: ignore[index]
        (lambda: greylag.evaluate(RUN, QRELS, ["nDCG@10 AP"]), "unknown measure .*; give each measure by itself"),
        (lambda: greylag.train(RUN, QRELS, INDEX, "LambdaMART"), r"not of the form NAME\(.*\): write lambdamart"),
        (lambda: greylag.write_run("x.run", RUN), "a str is no run: pass a Run"),  # type: ignore[arg-type]
        (lambda: GeneralRanker("texts"), "GeneralRanker needs a PositionalIndex, not str 'texts': make one with"),  # type: ignore[arg-type]
        (lambda: ModelRanker(MODEL, TEXTS), "ModelRanker needs a PositionalIndex, not dict"),  # type: ignore[arg-type]
        (lambda: MMR(0.5), "MMR needs a PositionalIndex, not float 0.5"),  # type: ignore[arg-type]
        (
            lambda: PositionalBM25(INDEX).run("topics.tsv"),
            "cannot run on a str: pass topics, such as read_topics returns",
        ),
        (lambda: PositionalBM25(INDEX).run(["cat"]), "cannot run on a list with str 'cat'"),
        (lambda: greylag.evaluate("a.run", QRELS, ["AP"]), "a str is no run: pass a Run, such as read_run returns"),  # type: ignore[arg-type]
        (lambda: greylag.evaluate(QRELS, RUN, ["AP"]), "what is judged for query 1 is Ranking .*, not a mapping"),  # type: ignore[arg-type]
        (lambda: greylag.rerank("cat", "a cat"), "takes one query, a sequence of passages"),
        (lambda: greylag.rerank("cat", [("a cat", 0.5)]), "the text of passage 0 is tuple .*: it must be a string"),  # type: ignore[list-item]
        (
            lambda: greylag.train(SCORES, QRELS, INDEX),
            r"query 1 has no text, which .* reads",
        ),  # type: ignore[arg-type]
        (lambda: PositionalIndex.from_texts(["a cat"]), "str 'a cat' is no docid with its text: give a mapping"),
        (lambda: PositionalIndex.from_texts({1.5: "a cat"}), "docid float 1.5 is neither a string nor an integer"),
        (lambda: PositionalIndex.from_texts({"a": None}), "is no docid with its text"),
    ],
)
def test_a_guess_that_may_mean_several_things_names_the_call(guess: Callable[[], Any], reason: str) -> None:
    with pytest.raises(ParameterError, match=reason):
        guess()


def test_a_searcher_of_pyserini_is_no_step_by_itself() -> None:
    searcher = SimpleNamespace(index_dir="index", object=None)
    with pytest.raises(TypeError, match=r"use greylag.adapters.PyseriniSource\(searcher\)"):
        searcher >> GeneralRanker(INDEX)
