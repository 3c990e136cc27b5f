"""Small random collections with subtopics."""

import numpy as np
from scipy.sparse import csr_matrix

from greylag.base import Ranking
from greylag.diversity import PRESETS, Candidates, DiversityModel
from greylag.diversity.coverage_model import CoverageFeatures
from greylag.evaluation import Subtopics
from greylag.index.positional import PositionalIndex

WORDS = [f"w{i}x" for i in range(12)]
SMALL = CoverageFeatures(
    (("count", 1), ("count", 2), ("frequency", 0.25), ("title", 1), ("tfidf", 2)), (0.1, 0.25, 0.5)
)
ENSEMBLE = DiversityModel(SMALL, tuple(map(tuple, np.random.default_rng(0).standard_normal((3, 15)).tolist())), k=5)
MODEL = ENSEMBLE.members[0]


def texts(seed, n):
    """Contents and titles by docid; some of either are empty, and some titles are missing."""
    rng = np.random.default_rng(seed)
    shares = rng.dirichlet(np.ones(len(WORDS)))
    contents = {f"d{i}": " ".join(rng.choice(WORDS, rng.integers(0, 12), p=shares)) for i in range(n)}
    titles = {docid: " ".join(rng.choice([*WORDS, "unheard"], rng.integers(0, 3))) for docid in contents}
    return contents, {docid: title for docid, title in titles.items() if rng.random() < 0.8}


def ranking(seed, n, qid="q"):
    """d0 to d(n - 1) in random order."""
    rng = np.random.default_rng(seed)
    return Ranking(qid, "w1x w2x", tuple(f"d{i}" for i in rng.permutation(n)), np.arange(n, 0.0, -1.0))


def judgements(seed, n, subtopics=5):
    """Grades 0 or 1 by subtopic and docid; some documents cover nothing, some subtopics have no relevant document."""
    rng = np.random.default_rng(seed)
    return {f"s{s}": {f"d{i}": int(rng.random() < 0.25) for i in range(n)} for s in range(subtopics)}


def candidates(seed, n, pairs=30):
    """Candidates of the svmdiv preset with random coverage."""
    rng = np.random.default_rng(seed)
    features = PRESETS["svmdiv"]
    coverage = csr_matrix((rng.random((n, pairs)) < 0.3).astype(float))
    return Candidates(features, coverage, rng.integers(features.n_features, size=(pairs, 1)), np.zeros((n, 0)))


def subtopics(seed, n):
    """The truth of `judgements`."""
    return Subtopics.from_qrels([f"d{i}" for i in range(n)], judgements(seed, n))


def index(seed, n):
    """The collection of `texts`."""
    return PositionalIndex.from_texts(texts(seed, n)[0])


def frequencies(seed, n=8, words=10):
    """Term counts; some documents are empty and some words unused."""
    rng = np.random.default_rng(seed)
    return csr_matrix(rng.integers(1, 5, (n, words)) * (rng.random((n, words)) < 0.3), dtype=np.float64)
