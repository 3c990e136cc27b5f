from itertools import combinations

import numpy as np
import pytest
from scipy.sparse import csr_matrix

from greylag.evaluation import Subtopics
from greylag.studies.runner import run_study
from greylag_papers.yue_joachims_2008.judgements import STUDY, Settings, expected_random_loss


def test_the_expected_loss_is_the_mean_over_all_sets():
    rng = np.random.default_rng(0)
    truth = Subtopics(csr_matrix(rng.random((7, 4)) < 0.4, dtype=np.float64), rng.dirichlet(np.ones(4)))
    losses = [truth.loss(np.array(picked)) for picked in combinations(range(7), 3)]
    assert expected_random_loss(truth, 3) == pytest.approx(np.mean(losses))


def test_candidates_are_the_documents_with_a_subtopic(tmp_path):
    (tmp_path / "qrels").write_text("1 0 x 0\n1 1 a 1\n1 1 b 1\n1 2 b 1\n2 1 c 1\n")
    settings = Settings(
        name="j", study="svmdiv_judgements", data_folder=tmp_path, subtopic_qrels="qrels", queries=("1",), k=1
    )
    scores = run_study(STUDY, settings, tmp_path / "out").scores
    assert scores["documents"] == {"mean": 2, "least": 2}
    assert scores["random"]["loss"] == pytest.approx((1 / 3 + 0) / 2)
    assert scores["known-subtopics"]["loss"] == 0
