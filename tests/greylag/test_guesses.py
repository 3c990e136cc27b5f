"""First guesses of users of other packages: what can mean one thing only works, and else the error names the call.

Tests `greylag.base.pipeline`, `greylag.base.ranking` and `greylag.base.core.hints`.
"""

from types import SimpleNamespace

import numpy as np
import pytest
import pytrec_eval

import greylag
from greylag import MMR, GeneralRanker, ModelRanker, PositionalIndex, Query, Ranking, Run
from greylag.base import ParameterError
from greylag.base.core.hints import remedy, shown
from greylag.base.pipeline import Source
from greylag.evaluation.fusion import GivenRun
from greylag.features import FeatureExtractor, PythonFeature, parse_features
from greylag.index.bm25 import PositionalBM25
from greylag.learning import training_data
from greylag.rankers import RankingModel
from tests.refusals import refuses

TEXTS = {"d1": "a cat sat", "d2": "a cat sat down", "d3": "a dog ran"}
INDEX = PositionalIndex.from_texts(TEXTS)
HITS = [SimpleNamespace(docid=docid, score=score) for docid, score in (("d1", 3.0), ("d2", 2.0))]
SCORED = SimpleNamespace(query_id="1", doc_id="d1", score=1.0)  # as those of ir_measures
SCORES = {"1": {"d2": 1.0, "d1": 2.0}, "2": {"d3": 1.0}}
QRELS = {"1": {"d1": 1}, "2": {"d3": 1}}
MODEL = RankingModel(parse_features("FI/term/BM25"), weights=(1.0,))
RUN = Run((Ranking("1", "cat", ("d1", "d2"), np.array([2.0, 1.0])), Ranking("2", "dog", ("d3",), np.array([1.0]))))


def test_runs_of_pytrec_eval():
    run = Run.from_dict(SCORES, {"1": "cat", "2": "dog"})
    assert run == RUN
    assert Run.from_dict({"1": {"b": 1.0, "a": 1.0}})["1"].docids == ("b", "a")
    assert run.to_dict() == SCORES
    evaluator = pytrec_eval.RelevanceEvaluator(QRELS, {"map"})
    assert evaluator.evaluate(RUN.to_dict())["1"]["map"] == 1.0
    assert greylag.evaluate(SCORES, QRELS, ["AP"]).means.tolist() == [1.0]
    fused, expected = greylag.fuse_runs([SCORES, RUN]), greylag.fuse_runs([RUN, RUN])
    assert fused.to_dict() == expected.to_dict()


def test_scored_lists(tmp_path):
    lists = {qid: [(hit.docid, hit.score) for hit in ranking] for qid, ranking in RUN.items()}
    assert Run.from_dict(lists, {"1": "cat", "2": "dog"}) == RUN
    assert greylag.evaluate(lists, QRELS, "AP").means.tolist() == [1.0]
    greylag.write_run(lists, tmp_path / "lists.run")
    assert greylag.read_run(tmp_path / "lists.run").to_dict() == SCORES
    ranking = Ranking("query", "", ("d1", "d2"), [2.0, 1.0])
    assert MMR(INDEX)(lists["1"]) == MMR(INDEX)(ranking)
    assert Ranking.from_hits("1", "cat", lists["1"]) == RUN["1"]
    assert GivenRun(lists)(Query("1", "cat")) == GivenRun(SCORES)(Query("1", "cat")) == RUN["1"]


def test_hits_of_a_ranking():
    assert [(hit.docid, hit.score) for hit in RUN["1"]] == [("d1", 2.0), ("d2", 1.0)] == [*RUN["1"]]
    assert (RUN["1"][0].docid, RUN["1"][-1].score) == ("d1", 1.0)
    with pytest.raises(IndexError):
        RUN["1"][2]


def test_a_text_for_a_query_and_a_path_for_a_model(tmp_path):
    found = PositionalBM25(INDEX)("cat")
    assert (found.query, found) == ("cat", PositionalBM25(INDEX)(Query("query", "cat")))
    assert (PositionalBM25(INDEX) >> MMR(INDEX))("cat") == MMR(INDEX)(found)
    model = RankingModel(parse_features("FI/term/BM25"), weights=(1.0,))
    model.save(tmp_path / "model.json")
    for path in (tmp_path / "model.json", str(tmp_path / "model.json")):
        assert ModelRanker(path, INDEX)(RUN["1"]) == ModelRanker(model, INDEX)(RUN["1"])


def test_identifiers_that_are_integers_and_generators():
    numbered = PositionalIndex.from_texts({7: "a cat", np.int64(8): "a dog"})
    assert numbered.knows(["7", "8", "9"]).tolist() == [True, True, False]
    assert PositionalIndex.from_texts((docid, text) for docid, text in TEXTS.items()).n_documents == 3
    ranked = greylag.rerank("cat", (text for text in TEXTS.values()), (score for score in (1, 2, 3)))
    assert ranked == greylag.rerank("cat", [*TEXTS.values()], [1, 2, 3])


class Own(greylag.Stage):
    def __call__(self, ranking, /):
        return ranking.head(1)


class First(Source):
    def __call__(self, query, /):
        return Ranking(query.qid, query.text, ("a",), np.ones(1))


def test_a_stage_of_another_package_is_called_with_rankings():
    assert Own()(RUN["1"]).docids == ("d1",)


BATCH = {"1": HITS}
NAMED = {301: {"title": "cat", "description": "cats"}}
IR_QUERY = SimpleNamespace(query_id="1", text="cat")
EMPTY = Ranking("1", "", (), [])
FRAME = SimpleNamespace(columns=("text",))
ANY = greylag
BM25 = PositionalBM25(INDEX)
GENERAL = GeneralRanker(INDEX)
EXTRACTOR = FeatureExtractor(INDEX, MODEL.features)


@pytest.mark.parametrize(
    ("guess", "parts"),
    [
        (lambda: ANY.MMR(INDEX)(7), "MMR reranks|int 7"),
        (lambda: Own()(7), "Own reranks|int 7"),
        (lambda: ANY.MMR(INDEX)(RUN), "MMR|Run|.run"),
        (lambda: ANY.MMR(INDEX)("cat"), "lucene.bm25() >> MMR"),
        (lambda: ANY.MMR(INDEX).run({"1": "cat"}), "lucene.bm25() >> MMR"),
        (lambda: (ANY.MMR(INDEX) >> Own()).run({"1": "cat"}), "lucene.bm25() >> MMR"),
        (lambda: ANY.MMR(0.5), "PositionalIndex|float 0.5"),
        (lambda: ANY.GeneralRanker("texts"), "PositionalIndex|str 'texts'"),
        (lambda: ANY.ModelRanker(MODEL, TEXTS), "PositionalIndex|dict"),
        (lambda: GENERAL(HITS), "no text|Ranking.from_hits"),
        (lambda: GENERAL([("d1", 1.0)]), "no text|Ranking.from_hits(qid, query, hits)"),
        (lambda: GENERAL.run(SCORES), "query 1|no text|read_run(path, topics)"),
        (lambda: GENERAL.run({"1": [("d1", 1.0)]}), "query 1|no text"),
        (lambda: GENERAL.run(BATCH), "query 1|no text|run_from_pyserini"),
        (lambda: GENERAL.run(HITS), "list|docid='d1'|Ranking.from_hits("),
        (lambda: BM25(RUN), "PositionalBM25 searches|Run"),
        (lambda: BM25({"1": "cat"}), "PositionalBM25 searches|dict|.run"),
        (lambda: BM25.run("topics.tsv"), "str|read_topics"),
        (lambda: BM25.run(["cat"]), "list with str 'cat'"),
        (lambda: BM25.run([("1", "cat")]), "list with tuple"),
        (lambda: BM25.run(7), "int"),
        (lambda: BM25.run(Run((EMPTY,))), "PositionalBM25 searches|topics"),
        (lambda: BM25.run(NAMED), "'301'|dict|topics_from_pyserini"),
        (lambda: BM25.run([IR_QUERY]), "topics_from_ir_datasets"),
        (lambda: BM25.run(FRAME), "no column qid or query_id|text"),
        (lambda: BM25.run({"1": None}), "'1'|NoneType"),
        (lambda: BM25.run({"1": EMPTY}), "'1'|Ranking"),
        (lambda: BM25.run({1.5: "a"}), "float 1.5"),
        (lambda: BM25.run({True: "a"}), "bool True"),
        (lambda: First().run({"1": "a"}, n_jobs=0), "n_jobs is 0"),
        (lambda: ANY.evaluate([RUN], QRELS, ["AP"]), "list|{qid: {docid: score}}"),
        (lambda: ANY.evaluate([("d1", 1.0)], QRELS, ["AP"]), "a list is no run"),
        *[
            (lambda score=score: ANY.fuse_runs([SCORES, {"1": {"d": score}}]), f"run 2: query 1|'d'|{part}")
            for score, part in (
                ("0.5", "str '0.5'"),
                (True, "bool True"),
                (np.bool_(1), "bool"),
                (None, "None"),
                (1j, "complex"),
                (10**400, "range of floats"),
            )
        ],
        (lambda: ANY.fuse_runs({"x": [("a", 1.0), ("b", None)], "y": [("a", 1.0)]}), "run x|tuple ('b', None)"),
        (lambda: ANY.fuse_runs([SCORES, None]), "run 2|None"),
        *[
            (lambda text=text: parse_features(text), f"{text!r} is not of the form {form}")
            for text, form in (
                ("written", "written:UNIT"),
                ("prior", "prior:FILE"),
                ("run", "run:FILE"),
                ("score:2", "score"),
                ("latent:3", "latent"),
                ("stage", "stage:NAME"),
                ("column", "column:NAME"),
                ("python", "python:NAME"),
            )
        ],
        (lambda: ANY.evaluate("a.run", QRELS, ["AP"]), "a str is no run|read_run"),
        (lambda: ANY.evaluate({"1": [("d1", 1.0), ("d2", 3.0)]}, QRELS, ["AP"]), "query 1|rank 2"),
        (lambda: ANY.evaluate(RUN, [SCORED], ["AP"]), "list|qrels_from_ir_datasets"),
        (lambda: ANY.evaluate(RUN, [("1", "a", 1)], ["AP"]), "list|mapping"),
        (lambda: ANY.evaluate(QRELS, RUN, ["AP"]), "judgements are a Run|the run comes before"),
        (lambda: ANY.evaluate(RUN, {"1": {"a": "1"}}, ["AP"]), "query 1|'a'|str '1'|whole number"),
        (lambda: ANY.evaluate(RUN, {1.0: {"a": 1}}, ["AP"]), "query's identifier|float 1.0"),
        (lambda: ANY.evaluate(RUN, {"1": {None: 1}}, ["AP"]), "document's identifier|None"),
        (lambda: ANY.evaluate(RUN, {"1": ["a"]}, ["AP"]), "query 1|list ['a']"),
        (lambda: ANY.evaluate(RUN, QRELS, ["nDCG@10 AP"]), "each measure by itself"),
        (lambda: training_data([HITS], {}, EXTRACTOR), "a list is no run"),
        (lambda: training_data({"1": "cat"}, {}, EXTRACTOR), "a dict is no run"),
        (lambda: training_data(FRAME, {}, EXTRACTOR), "read frames with"),
        (lambda: training_data(RUN, FRAME, EXTRACTOR), "no column qid|text"),
        (lambda: ANY.learn_fusion({"a": SCORES, "b": HITS}, QRELS), "a list is no run"),
        (lambda: ANY.write_run("x.run", RUN), "a str is no run"),
        (lambda: Run(SCORES), "str '1'|Run.from_dict"),
        (lambda: Run((EMPTY, EMPTY)), "'1'|two rankings"),
        (lambda: RUN["1"]["d1"], "str 'd1'|head"),
        (lambda: RUN["1"][:1], "slice|head(k)"),
        (lambda: ANY.train(RUN, QRELS, INDEX, "LambdaMART"), "write lambdamart"),
        (lambda: ANY.train(SCORES, QRELS, INDEX), "query 1|no text"),
        (lambda: ANY.train(RUN, QRELS, "index"), "index is str 'index'|PositionalIndex"),
        (lambda: PythonFeature(len), "name a feature|PythonFeature('bert', score)"),
        (lambda: ANY.rerank("cat", [("a cat", 0.5)]), "passage 0|tuple|string"),
        (lambda: PositionalIndex.from_texts("a cat"), "passages: str 'a cat'|list"),
        (lambda: PositionalIndex.from_texts({1.5: "a cat"}), "float 1.5"),
        (lambda: PositionalIndex.from_texts({"a": None}), "text of passage a|NoneType"),
    ],
)
def test_what_is_wrong_is_shown_with_what_to_do(guess, parts):
    refuses(guess, ParameterError, parts, "|")


def test_nothing_is_said_of_other_values():
    assert [remedy(value) for value in (3, {}, None, [1])] == [""] * 4
    assert shown([1, 2]) == "list [1, 2]"
    assert len(shown("a" * 999)) < 80


def test_a_searcher_of_pyserini_is_no_step_by_itself():
    searcher = SimpleNamespace(index_dir="index", object=None)
    with pytest.raises(TypeError, match=r"use greylag.passages.PyseriniSource\(searcher\)"):
        searcher >> GeneralRanker(INDEX)
