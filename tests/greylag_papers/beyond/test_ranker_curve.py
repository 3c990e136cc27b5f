"""The learning curves of rankers."""

import numpy as np
import pytest

from greylag import LuceneIndex, ModelRanker, PositionalIndex, read_qrels, read_topics
from greylag.base import ParameterError
from greylag.evaluation import PooledSources, evaluate
from greylag.index import RM3Search
from greylag.learning import CoordinateAscent, GreedySelection, ListwiseRegression, Objective, read_letor
from greylag.recipes import BaselineRecipe, baselines
from greylag.studies.study import Context
from greylag_papers.beyond.learning_curve import splits
from greylag_papers.beyond.ranker_curve import (
    AUTOMATIC,
    BEST,
    BM25,
    FEATURES,
    SELECTED,
    FeatureSettings,
    Settings,
    open_curve,
    open_features,
    run,
)
from tests.greylag.studies.samples import DEMO
from tests.refusals import refuses

NDCG = Objective.parse("nDCG@10")


def letor(path, first, topics):
    """Topics of ten documents with four features; one topic in five has no relevant document."""
    rng, lines = np.random.default_rng(first), []
    for topic in range(first, first + topics):
        features = rng.standard_normal((10, 4))
        noisy = features @ [1.0, 0.5, 0.0, 0.0] + rng.standard_normal(10)
        grades = (noisy > np.sort(noisy)[-3]) * (topic % 5 > 0)
        for grade, row in zip(grades, features, strict=True):
            cells = " ".join(f"{number}:{value:.4f}" for number, value in enumerate(row, 1))
            lines.append(f"{int(grade)} qid:{topic} {cells}\n")
    path.write_text("".join(lines))


def parts(settings, opened):
    return splits(opened.training, opened.test, settings.folds, settings.seed)


@pytest.fixture
def files(tmp_path):
    letor(tmp_path / "train.txt", 1, 20)
    letor(tmp_path / "test.txt", 101, 10)
    letor_files = FeatureSettings(
        name="small", train="train.txt", test="test.txt", sizes=(8, 100), folds=2, lightgbm=False
    )
    return letor_files.model_copy(update={"data_folder": tmp_path})


def test_points_are_what_each_learner_learns_from_the_first_topics(files):
    """A size above the number of topics is all of them; the results do not depend on the number of workers."""
    one, two = (
        run(files, FEATURES.open(files, Context(files.path(""), n_jobs=n_jobs)), Context(files.path(""), n_jobs=n_jobs))
        for n_jobs in (1, 2)
    )
    assert one.scores == two.scores
    assert one.results == two.results
    assert [name for name in one.scores if name.endswith("topics")] == ["8 topics", "16 topics"]
    train, test = (read_letor(files.path(name)) for name in ("train.txt", "test.txt"))
    test = test.select_queries([qid for qid in test.qids if int(qid) % 5])
    ((_, order),) = parts(files, open_features(files, Context(files.path(""))))
    assert set(order) == {qid for qid in train.qids if int(qid) % 5}
    for size in (8, 16):
        rows = train.select_queries(order[:size])
        for name, learner in (
            ("greedy", GreedySelection(NDCG)),
            ("listwise", ListwiseRegression(NDCG)),
            ("listwise of 10", ListwiseRegression(NDCG, max_features=10)),
            ("coordinate ascent", CoordinateAscent(NDCG)),
        ):
            found = learner.fit(rows)
            scores = test.features[:, list(found.columns)] @ np.array(found.weights)
            assert one.scores[f"{size} topics"][name] == pytest.approx(NDCG.evaluate(test, scores).mean())
    means = one.scores["8 topics"]
    best = max(value for name, value in means.items() if name != AUTOMATIC)
    for name, other in ((BEST, best), ("greedy", means["greedy"])):
        row = one.scores[f"8 topics, {AUTOMATIC} less {name}"]
        assert row["difference"] == pytest.approx(means[AUTOMATIC] - other)
        assert row["low"] <= row["difference"] <= row["high"]


def test_without_a_test_part_each_topic_is_held_out_once(files):
    alone = files.model_copy(update={"test": None})
    opened = open_features(alone, Context(files.path("")))
    for part, order in parts(alone, opened):
        assert sorted([*part, *order]) == sorted(opened.training)
    qids = [qid for part, _ in parts(alone, opened) for qid in part]
    assert sorted(qids) == sorted(opened.training)
    outcome = run(alone.model_copy(update={"sizes": (5,)}), opened, Context(files.path("")))
    assert len(outcome.results["chosen"]) == 2
    assert len(outcome.results["points"]["5"]["runs"][AUTOMATIC]["per_query"]) == len(opened.training)


@pytest.mark.slow
def test_baselines_are_tuned_on_the_same_topics_and_rank_the_test_part(tmp_path, monkeypatch):
    lines = (DEMO / "topics.tsv").read_text().splitlines(keepends=True)
    (tmp_path / "train.tsv").write_text("".join(lines[:12]))
    (tmp_path / "test.tsv").write_text("".join(lines[12:]))
    fields = {
        "name": "demo", "collection": {"docs": "docs.jsonl", "type": "JsonCollection"}, "lightgbm": False,
        "topics": "./train.tsv", "qrels": "qrels.txt", "test": {"topics": "./test.tsv", "qrels": "qrels.txt"},
        "sizes": [6], "first_stage": {"hits": 20},
    }  # fmt: skip
    settings = Settings.model_validate(fields).model_copy(update={"data_folder": DEMO, "file_folder": tmp_path})
    context = Context(tmp_path / "out")
    searched, search = list[str](), PooledSources.run
    monkeypatch.setattr(
        PooledSources, "run", lambda self, topics, **options: searched.extend(topics) or search(self, topics, **options)
    )
    opened = open_curve(settings, context)
    outcome = run(settings, opened, context)
    assert set(searched) == {*parts(settings, opened)[0][1][:6], *opened.test}, "six of twelve for training"
    assert opened.test == [line.split("\t")[0] for line in lines[12:]]
    assert set(outcome.scores["6 topics"]) == {AUTOMATIC, "general", BM25, "RM3", SELECTED}
    lucene = LuceneIndex(tmp_path / "out" / "index")
    index, first, topics = PositionalIndex.from_lucene(lucene), lucene.bm25(20), read_topics(DEMO / "topics.tsv")
    candidates = PooledSources((first, RM3Search(first)), k=20).run(topics)
    ((_, order),) = parts(settings, opened)
    qrels = read_qrels(DEMO / "qrels.txt")
    recipe = BaselineRecipe(baselines.BM25, objective="nDCG@10")
    model = recipe.fit([candidates[qid] for qid in order[:6]], qrels, index).model
    ranked = ModelRanker(model, index).run([candidates[qid] for qid in opened.test])
    expected = evaluate(ranked, {qid: qrels[qid] for qid in opened.test}, ["nDCG@10"]).means[0]
    assert outcome.scores["6 topics"][BM25] == pytest.approx(expected)

    clashing = settings.model_copy(update={"test": settings.test.model_copy(update={"topics": "topics.tsv"})})  # type: ignore[union-attr]
    refuses(lambda: open_curve(clashing, context), ParameterError, "training test topic")
