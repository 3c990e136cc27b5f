"""Small queries for tests."""

import numpy as np
from scipy.sparse import csr_matrix

from greylag.evaluation import Subtopics
from greylag_papers.yue_joachims_2008.queries import StudyQuery
from greylag_papers.yue_joachims_2008.synthetic_subtopics import SyntheticSubtopics
from tests.greylag.diversity import samples

SETS = SyntheticSubtopics(n_sets=8, n_documents=20, n_subtopics=6, n_words=60, n_vocabulary=400, seed=3)


def queries(n):
    """Queries "0", "1", ... of two documents: the first covers 0.3 of the weight, the second the rest."""

    def query(qid):
        empty, truth = csr_matrix((2, 1)), Subtopics(csr_matrix(np.eye(2)), np.array([0.3, 0.7]))
        return StudyQuery(qid, truth, empty, empty, np.zeros(2), {"svmdiv": samples.candidates(0, 2)})

    return [query(str(number)) for number in range(n)]
