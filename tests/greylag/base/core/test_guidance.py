"""Wrong guesses are answered with what works, and other errors pass as they are."""

import inspect
import os
import pickle
import re
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.greylag.cli.conftest import Command, Refused, command, refused  # noqa: F401
from tests.refusals import refuses

import greylag
from greylag import MMR, HybridRetriever, PositionalIndex, Query, Ranking, Run, evaluate, rerank
from greylag.base import ParameterError
from greylag.base.core.guidance import guided
from greylag.base.core.spelling import ATTRIBUTES, GUESSES, NAMES
from greylag.evaluation.fusion import parse_fusion
from greylag.evaluation.scoring.measures import INSTEAD
from greylag.features import parse_features
from greylag.index.bm25 import PositionalBM25
from greylag.rankers import RankingModel
from greylag.rankers.export import engine_model
from greylag.recipes import cross_validate, spelt_learner

INDEX = PositionalIndex.from_texts({"d1": "a cat sat", "d2": "a dog ran"})
RUN = Run((Ranking("1", "cat", ("d1",), np.ones(1)), Ranking("2", "dog", ("d2",), np.ones(1))))
QRELS = {"1": {"d1": 1}, "2": {"d2": 1}}
ANY = greylag
LUCENE = object.__new__(greylag.LuceneIndex)
SOURCE = PositionalBM25(INDEX)
MODEL = RankingModel(parse_features("FI/term/BM25"), weights=(1.0,))
RUNS: Any = greylag.compare({"a": RUN, "b": RUN}, QRELS, baseline="a")
TEXTS, ROWS = ["a cat", "a dog"], np.eye(2)
RETRIEVER: Any = HybridRetriever(TEXTS, lambda texts: [[len(text), 1.0] for text in texts])
EXAMPLE = Path(__file__).parents[4] / "runs/example.run"
BY_GROUP = {"method": "group-limit", "groups": ["a", "a"]}


def cited(texts, **options):
    return rerank("cat", texts, [2, 1], **options)


def grown(name, value):
    return spelt_learner("lambdamart", {name: value}, "AP")


PYTHON = [
    ("top_n top_k n num_results num_hits hits limit", "k", lambda name: cited(TEXTS, **{name: 1})),
    ("top_k limit n n_results similarity_top_k", "k", lambda name: RETRIEVER.search("cat", **{name: 1})),
    ("lambda_mult", "mmr", lambda name: RETRIEVER.search("cat", **{name: 1})),
    ("group_by", "group", lambda name: RETRIEVER.search("cat", max_per_group=1, **{name: "text"})),
    ("filter filters", "where", lambda name: RETRIEVER.search("cat", **{name: {"id": "0"}})),
    (
        "score_threshold similarity_cutoff score_cutoff min_score",
        "min_confidence",
        lambda name: RETRIEVER.search("cat", **{name: 0.5}),
    ),
    ("k rrf_k", "rank_constant", lambda name: parse_fusion("rrf", **{name: 1})),
    ("lambda lambda_ lambda_mult lambda_param theta", "relevance_weight", lambda name: ANY.MMR(INDEX, **{name: 1})),
    ("embedding embeddings", "vectors", lambda name: cited(TEXTS, **{name: ROWS})),
    ("weight", "weights", lambda name: parse_fusion("combsum", **{name: [1, 2]})),
    ("fetch_k rerank_depth", "depth", lambda name: ANY.MMR(INDEX, **{name: 5})),
    ("max_per_source", "max_per_group", lambda name: cited(TEXTS, **BY_GROUP, **{name: 1})),
    ("docs documents texts", "passages", lambda name: ANY.Reranker().rank("cat", **{name: TEXTS})),
    ("corpus", "background", lambda name: cited(TEXTS, **{name: INDEX})),
    ("run", "runs", lambda name: ANY.fuse_runs(**{name: [RUN, RUN]})),
    ("query queries", "topics", lambda name: ANY.read_run(EXAMPLE, **{name: {"1": "a"}})),
    ("qrel judgements judgments", "qrels", lambda name: ANY.evaluate(RUN, **{name: QRELS})),
    ("metric metrics scoring", "measures", lambda name: ANY.evaluate(RUN, QRELS, **{name: ["AP"]})),
    ("cv n_splits n_folds kfold", "folds", lambda name: ANY.train(RUN, QRELS, INDEX, "bm25", **{name: 2})),
    ("estimator model learner method", "recipe", lambda name: ANY.train(RUN, QRELS, INDEX, **{name: "bm25"})),
    ("lang", "language", lambda name: ANY.PositionalIndex.from_texts({}, **{name: "de"})),
    ("name run_name", "tag", lambda name: ANY.Run((), **{name: "a"})),
    ("output out_path save", "path", lambda name: ANY.write_run(RUN, **{name: os.devnull})),
    ("threads n_threads workers num_workers", "n_jobs", lambda name: SOURCE.run({}, **{name: 2})),
    ("margin threshold tolerance max_drop max_loss delta rule", "fail_if", lambda name: RUNS.gated(**{name: 0.1})),
    ("floor minimum min at_least", "floors", lambda name: RUNS.gated(**{name: {"AP": 0.1}})),
    ("team", "teams", lambda name: RUNS.of_teams(**{name: "^."})),
    ("groups kinds", "categories", lambda name: RUNS.by_category(**{name: {"1": "a"}})),
    ("version", "release", lambda name: RUNS.released(**{name: "2"})),
    ("effect mde", "loss", lambda name: RUNS.powered(**{name: 0.05})),
    ("es", "elasticsearch", lambda name: engine_model(MODEL, name)),
    ("n_estimators num_iterations num_boost_round n_trees", "trees", lambda name: grown(name, 5)),
    ("num_leaves max_leaves", "leaves", lambda name: grown(name, 5)),
    ("eta lr", "learning_rate", lambda name: grown(name, 0.1)),
    ("min_data_in_leaf min_child_samples", "min_documents", lambda name: grown(name, 5)),
    ("early_stopping early_stopping_round early_stopping_rounds", "validate", lambda name: grown(name, True)),
    ("monotone_constraints", "increasing", lambda name: grown(name, "age")),
]
OPTIONS = [
    ("k top_n top_k n num_results num_hits", "--hits", "search {} 9"),
    ("k rrf_k", '--method "rrf(rank_constant=VALUE)"', "fuse {} 9"),
    ("input", "--run", "rerank {} x"),
    ("corpus", "--index", "rerank {} x"),
    ("query queries", "--topics", "search {} x"),
    ("qrel judgements judgments", "--qrels", "evaluate {} x"),
    ("metric metrics scoring", "--measure", "evaluate {} AP"),
    ("q", "--per-query", "evaluate {}"),
    *((form, f"--format {form}", "evaluate {}") for form in "json tsv csv markdown latex html junit".split()),
    ("cv n_splits n_folds kfold kcv", "--folds", "train {} 5"),
    ("ranker learner method", "--model", "train {} mrf"),
    ("ranker", "--model", "rerank {} mrf.json"),
    ("method stages", "--stage", "rerank {} mmr"),
    ("o output out_path save", "--out", "rerank {} x"),
    ("threads n_threads workers num_workers n_jobs", "--jobs", "rerank {} 2"),
    ("name run_name", "--tag", "rerank {} x"),
    ("input run", "RUN... without an option", "evaluate {} x"),
    ("input documents corpus", "DOCS without an option", "index {} x"),
    ("k1", '--model "bm25(k1=VALUE)"', "search {} 1"),
    ("fb_docs", '--model "bm25+rm3(fb_docs=VALUE)"', "search {} 1"),
    ("bm25", "--model bm25", "search {}"),
    ("mmr", "--stage mmr", "rerank {}"),
]


@pytest.mark.parametrize(("guesses", "ours", "call"), PYTHON)
def test_a_guess_in_python(guesses, ours, call):
    for guess in guesses.split():
        with pytest.raises((TypeError, ParameterError, AttributeError), match=rf"\b{ours}\b"):
            call(guess)
    call(ours)


@pytest.mark.parametrize(("guesses", "ours", "words"), OPTIONS)
def test_a_guess_of_an_option(command, refused, guesses, ours, words):  # noqa: F811
    for guess in guesses.split():
        assert f"No such option: --{guess}; write {ours} (" in refused(words.format(f"--{guess}"))
    option = ours.removesuffix(" without an option").replace("VALUE", "1")
    name, *values = words.format(option).split()
    assert command(name, *shlex.split(option), *values[1:], "--help")[0] == 0


def test_all_guesses_are_tried():
    tried = {guess for guesses, *_ in (*PYTHON, *OPTIONS) for guess in guesses.split()} | {"validate"}
    assert tried >= GUESSES.keys()


@pytest.mark.parametrize("guess", ATTRIBUTES)
def test_a_guess_of_a_method(guess):
    answered = set()
    for value in (LUCENE, SOURCE, RETRIEVER, RUNS, evaluate(RUN, QRELS), RUN):
        ours = next((ours for ours in ATTRIBUTES[guess].split() if hasattr(type(value), ours)), None)
        if ours is not None and not hasattr(type(value), guess):
            with pytest.raises(AttributeError, match=rf"(the call is {type(value).__name__}\.|write ){ours}\b"):
                getattr(value, guess)
            answered.add(ours)
    assert answered


def test_a_word_of_a_name_is_enough_and_what_is_there_is_listed():
    with pytest.raises(ImportError, match=r"; write read_qrels\(path\)"):
        exec("from greylag import TrecQrels")
    with pytest.raises(AttributeError, match=r"no attribute 'nonsense': write .*\bby_category, .*\bgated, "):
        RUNS.nonsense  # noqa: B018
    assert not hasattr(greylag, "nonsense")


@pytest.mark.parametrize("name", NAMES)
def test_a_guess_of_a_name(name, refused):  # noqa: F811
    """What is proposed exists, in the module that is named."""
    calls = re.findall(r"(\w+)\([^()]*\)(?:\.(\w+)\([^()]*\))? of (greylag[.\w]*)", NAMES[name])
    assert calls or "greylag check RUN" in NAMES[name]
    for call, method, module in calls:
        found = getattr(import_module(module), call)
        assert not method or hasattr(type(RUNS), method), found
    with pytest.raises(AttributeError, match=re.escape(f"; write {NAMES[name]}")):
        getattr(greylag, name)
    with pytest.raises(
        ImportError, match=re.escape(f"cannot import name {name!r} from 'greylag'; write {NAMES[name]}")
    ):
        exec(f"from greylag import {name}")


@pytest.mark.parametrize(
    ("words", "ours"),
    [
        *(("validate", "check"), ("evalate", "evaluate"), ("serch", "search"), ("search --topic", "--topics")),
        *((f"{name} --json", "") for name in ("rerank", "search")),
        *((f"explain --{form}", "") for form in ("csv", "tsv", "latex")),
        *(
            ("check --json", "--format json"),
            ("features --letor", ""),
            ("rerank --docs", ""),
            ("features --transform", ""),
        ),
        *((words, "") for words in ("train --load", "train --top_k", "train --k", "search --rrf_k")),
        ("dedup", "use index"),
    ],
)
def test_only_what_is_close_is_proposed(refused, words, ours):  # noqa: F811
    told = refused(words).partition(" (see")[0]
    assert ours in told
    assert ours or told.endswith(words.split()[-1]), told


@pytest.mark.parametrize("measure", ["hits@10", "DCG", "DCG@10", "dcg_burges@10", *INSTEAD])
def test_a_measure_that_is_proposed_is_computed(measure):
    with pytest.raises(ParameterError) as error:
        evaluate(RUN, QRELS, [measure])
    assert evaluate(RUN, QRELS, [re.search(r"write ([^\s,]+)", str(error.value))[1]]).means.tolist()


def test_engines_languages_and_methods_that_are_not_close_are_not_proposed():
    for call, wrong in (
        (lambda: engine_model(MODEL, "es"), "vespa"),
        (lambda: cited(TEXTS, method="dedup"), "did you mean"),
        (lambda: cited(TEXTS, diversity=0.3), "did you mean"),
        (lambda: cited(TEXTS, method="xquad", lambda_=0.3), "did you mean"),
        (lambda: cited(TEXTS, stages=["mmr"]), "did you mean scale"),
    ):
        with pytest.raises(ParameterError) as error:
            call()
        assert wrong not in str(error.value)
    refuses(lambda: cited(TEXTS, max_per_source=1), ParameterError, "it is max_per_group of method 'group-limit'", "|")
    assert cited(TEXTS, method="group-limit", max_per_group=1, groups=["a", "a"])


def test_every_call_of_the_package_names_itself():
    named = [getattr(greylag, name) for name in greylag.__all__]
    calls = [one for one in named if callable(one) and one not in (greylag.Stage, greylag.Reranker)]
    makers = (Ranking.sort, Ranking.from_hits, Run.from_dict, ANY.PositionalIndex.from_texts, cross_validate)
    for call in (*(one for one in calls if not isinstance(one, type) or not issubclass(one, Exception)), *makers):
        with pytest.raises(TypeError, match=rf"the call is {call.__name__ if isinstance(call, type) else ''}"):
            call(nonsense=1)


@pytest.mark.parametrize(
    ("call", "parts"),
    [
        (lambda: ANY.evaluate(RUN), "evaluate(run, qrels, measures="),
        (lambda: ANY.MMR(INDEX, 0.5), "MMR(index=None, *,"),
        (lambda: ANY.Query("cat"), "Query(qid, text)"),
        (lambda: ANY.Ranking("1", []), "Ranking(qid, query, docids, scores) Ranking.from_hits("),
        (lambda: ANY.PositionalIndex("index"), "PositionalIndex.from_lucene(lucene) from_texts("),
        (lambda: LUCENE.set_bm25(0.9), "LuceneIndex.bm25( k1= b="),
        (lambda: SOURCE("cat", k=2), "'k': call"),
        (lambda: SOURCE.cutoff, "'cutoff'"),
        (lambda: SOURCE % 10, "joined >>"),
        (lambda: 0.5 * SOURCE, "joined >>"),
        (lambda: ANY.evaluate(RUN, QRELS)["AP"], "by_measure"),
        (lambda: cited([type("Document", (), {"page_content": "a"})()] * 2), "page_content"),  # type: ignore[list-item]
        (lambda: ANY.MMR(INDEX, diversity=0.3), "'diversity': MMR("),
    ],
)
def test_the_call_is_named(call, parts):
    refuses(call, (TypeError, ParameterError, AttributeError), parts)


def test_errors_within_a_call_pass_as_they_are():
    @guided
    def fails(value):
        return value + 1

    with pytest.raises(TypeError) as caught:
        fails("a")
    assert "the call is" not in str(caught.value)
    assert fails(1) == 2


def test_what_python_sees_is_as_before():
    assert list(inspect.signature(greylag.evaluate).parameters) == ["run", "qrels", "measures"]
    assert list(inspect.signature(Query).parameters) == ["qid", "text"]
    assert "relevance_weight" in inspect.signature(MMR).parameters
    assert pickle.loads(pickle.dumps((RUN, SOURCE, greylag.evaluate)))[0] == RUN
    assert not hasattr(SOURCE, "columns")
