"""The learning curves of diversifiers."""

from pathlib import Path

import numpy as np
import pytest

from greylag.diversity import choose_diversifier
from greylag.evaluation import evaluate_by_subtopic, split_folds
from greylag.studies.study import Context
from greylag_papers.beyond.diversity_curve import Settings, run, synthetic
from greylag_papers.beyond.learning_curve import training_order
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics

SMALL = SyntheticSubtopics(6, n_documents=6, n_subtopics=4, n_words=8, n_vocabulary=40)
SETTINGS = Settings(name="small", training_sizes=(3, 9), folds=2)


def test_the_whole_of_the_other_folds_is_the_choice_of_a_diversifier(tmp_path: Path) -> None:
    """A size beyond the queries that there are is all of them; the results do not depend on the number of workers."""
    opened = synthetic(SMALL)
    one, two = (run(SETTINGS, opened, Context(tmp_path, n_jobs=n_jobs)) for n_jobs in (1, 2))
    assert one.scores == two.scores
    learned = ["mmr, 3 queries", "svmdiv, 3 queries"]
    assert list(one.scores) == ["none", *learned, *(f"{name} / none" for name in learned)]
    chosen = choose_diversifier(opened.first, opened.qrels, index=opened.index, methods=["mmr"], folds=2)
    for mine, other in (("none", "none"), ("mmr, 3 queries", "mmr")):
        assert one.scores[mine]["alpha-nDCG@10"] == pytest.approx(chosen.scores[other].means[0])


def test_synthetic_texts_are_the_drawn_sets() -> None:
    opened = synthetic(SMALL)
    frequencies, truth = SMALL.draw()[2]
    ranking = opened.first["2"]
    counts = opened.index.term_frequencies(opened.index.documents(ranking.docids))
    assert [sorted(row.data.tolist()) for row in counts] == [sorted(row.data.tolist()) for row in frequencies]
    coverage = truth.coverage.toarray()
    for subtopic, judged in enumerate(opened.qrels["2"].values()):
        assert [docid in judged for docid in ranking.docids] == (coverage[:, subtopic] > 0).tolist()
    assert evaluate_by_subtopic(opened.first, opened.qrels, ["S-recall@6"]).means[0] == 1


def test_training_queries_are_outside_the_fold_and_grow() -> None:
    qids = [f"q{number}" for number in range(12)]
    for part in split_folds(qids, 3, 1):
        order = training_order(qids, part, 1)
        assert sorted([*order, *part]) == sorted(qids)
    assert np.array_equal(training_order(qids, qids[:3], 1), training_order(qids, qids[:3], 1))
