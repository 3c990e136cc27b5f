"""The study of few topics, on systems whose scores are made up and on the demonstration's topics."""

import numpy as np
import pytest
import scipy.stats

from greylag import read_topics
from greylag.studies.study import Context
from greylag_papers.beyond import few_topics
from greylag_papers.beyond.few_topics import AUTOMATIC, GENERAL, SYSTEMS, Settings, open_all, run
from greylag_papers.beyond.learning_curve import Learned
from greylag_papers.beyond.ranker_curve import Opened
from greylag_papers.beyond.ranker_curve import Settings as CurveSettings
from tests.greylag.studies.samples import DEMO
from tests.greylag_papers.beyond.samples import COLLECTION

PART = {"collection": COLLECTION, "topics": str(DEMO / "topics.tsv"), "qrels": str(DEMO / "qrels.txt")}
RELATED = {"cacm": "", "xquad_en": "xquad", "xquad_de": "xquad"}


def settings(**fields):
    parts = {name: {**PART, "related": related} for name, related in RELATED.items()}
    return Settings.model_validate({"name": "few", "study": "few_topics", "collections": parts, **fields})


def made_up(seed, topics):
    """Scores that depend on system, topic and number of training topics alone."""

    def score(place, qid, size):
        return float(np.random.default_rng([seed, place, int(qid), size]).random())

    def learn(training, test):
        values = {name: [score(place, q, len(training)) for q in test] for place, name in enumerate(SYSTEMS)}
        return Learned(values, "a choice")

    return Opened([str(number) for number in range(topics)], None, learn, "BM25")


def test_rows_are_means_and_tests_over_topics_and_then_over_unrelated_collections(tmp_path):
    opened = {name: made_up(seed, 10 + seed) for seed, name in enumerate(RELATED)}
    outcome = run(settings(sizes=[5, 25]), opened, Context(tmp_path))
    for size in (5, 25):
        gains = {}
        for name, one in opened.items():
            n = len(one.training)
            taken = min(size, n - (n + 4) // 5)  # all that the largest of five folds leaves
            found = [one.learn(["0"] * taken, [qid]).values for qid in one.training]
            automatic, general = (np.array([of[system][0] for of in found]) for system in (AUTOMATIC, GENERAL))
            assert outcome.scores[f"{name}, {size} topics"][GENERAL] == pytest.approx(general.mean())
            row = outcome.scores[f"{name}, {size} topics, {AUTOMATIC} less {GENERAL}"]
            test = scipy.stats.ttest_rel(automatic, general)
            interval = test.confidence_interval()
            assert list(row.values()) == pytest.approx(
                [(automatic - general).mean(), interval.low, interval.high, test.pvalue]
            )
            gains[name] = row["difference"]
        two = [gains["cacm"], (gains["xquad_en"] + gains["xquad_de"]) / 2]
        row = outcome.scores[f"all, {size} topics, {AUTOMATIC} less {GENERAL}"]
        half = scipy.stats.t.ppf(0.975, 1) * np.std(two, ddof=1) / np.sqrt(2)
        expected = [np.mean(two), np.mean(two) - half, np.mean(two) + half, min(gains.values())]
        assert list(row.values()) == pytest.approx([*expected, sum(gain > 0 for gain in gains.values())])


def test_each_collection_is_a_curve_of_its_spaced_topics_without_its_own_weights(tmp_path, monkeypatch):
    curves = list[CurveSettings]()
    monkeypatch.setattr(few_topics, "open_curve", lambda curve, context: curves.append(curve) or context.folder)
    assert list(open_all(settings(most_topics=3), Context(tmp_path)).values()) == [tmp_path / name for name in RELATED]
    assert [curve.general_without for curve in curves] == list(RELATED)
    assert {curve.first_stage.hits for curve in curves} == {100}
    topics = list(read_topics(DEMO / "topics.tsv"))
    (read,) = {curve.read()[2] for curve in curves}
    assert len(read) == 3
    assert (read[0], read[2]) == (topics[0], topics[-1])
