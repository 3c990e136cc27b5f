"""A collection with a model, random training data, and names of rows."""

import struct
from collections import Counter
from itertools import pairwise

import numpy as np

from greylag.base import Ranking
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.features.spelling import parse_features
from greylag.index.positional import PositionalIndex
from greylag.learning.data import RankingData, positive_grades
from greylag.learning.extraction import training_data
from greylag.learning.greedy import GreedySelection
from greylag.recipes.recipe import train_on_data

WORDS = ["cat", "dog", "pig", "cow", "hen", "fox"]


def collection(seed=1):
    rng = np.random.default_rng(seed)
    return PositionalIndex.from_texts({f"d{i}": " ".join(rng.choice(WORDS, size=12)) for i in range(40)})


def rankings(index):
    """Queries of two words, the documents that have them side by side being relevant."""
    docids = tuple(f"d{i}" for i in range(40))
    queries = [f"{a} {b}" for a in WORDS[:4] for b in WORDS[:4] if a != b]
    phrases = FeatureExtractor(index, parse_features("SD/ordered/BM25-O-1"))
    ranked = [Ranking(str(i), query, docids, np.zeros(40)) for i, query in enumerate(queries)]
    qrels = {r.qid: {d: int(v > 0) for d, v in zip(docids, phrases(r)[:, 0], strict=True)} for r in ranked}
    return ranked, qrels


def trained(index, n_jobs=1, retrain=False):
    ranked, qrels = rankings(index)
    extractor = FeatureExtractor(index, candidate_pool("sd"))
    learner = GreedySelection("AP", max_features=3, retrain=retrain)
    return train_on_data(training_data(ranked, qrels, extractor), learner, n_jobs=n_jobs, provenance={"seed": 1})


def random_data(seed, *, queries=5, documents=12, features=3, levels=None):
    """Rankings with ties (scores on few `levels`), graded judgements and unretrieved relevant documents.

    Rows are in descending order of docid, which is how trec_eval breaks ties.
    """
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, documents + 1, size=queries)
    docids, grades, judged = [], [], []
    for size in sizes:
        names = sorted((f"d{i:03d}" for i in rng.choice(999, size=size, replace=False)), reverse=True)
        judgements = {name: int(grade) for name, grade in zip(names, rng.integers(-1, 4, size=size), strict=True)}
        judgements |= {f"lost{i}": int(grade) for i, grade in enumerate(rng.integers(1, 4, size=rng.integers(0, 3)))}
        judgements.setdefault("lost", 1)
        docids += names
        grades += [judgements[name] for name in names]
        judged.append(judgements)
    n = len(docids)
    values = (
        rng.standard_normal((n, features)) if levels is None else rng.integers(levels, size=(n, features)).astype(float)
    )
    return RankingData(
        specs=tuple(f"f{i}" for i in range(features)),
        qids=tuple(f"q{i}" for i in range(queries)),
        offsets=np.cumsum([0, *sizes]),
        docids=tuple(docids),
        features=values,
        grades=np.array(grades, dtype=np.int64),
        relevant_grades=tuple(positive_grades(judgements.values()) for judgements in judged),
    )


def spreads(data):
    """The root mean squares of features around their query means."""
    rows = [data.features[a:b] - data.features[a:b].mean(axis=0) for a, b in pairwise(data.offsets)]
    return np.asarray(np.sqrt(np.mean(np.concatenate(rows) ** 2, axis=0)))


def mixed(number):
    """Mix 64 bits as splitmix64 does, in whole numbers."""
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        number = (number ^ number >> shift) * factor % 2**64
    return number ^ number >> 31


def row_name(values):
    """The name of a row without a docid, by its values by number of feature."""
    total = 0
    for number, value in values.items():
        key = mixed((number + 1) * 0x9E3779B97F4A7C15 % 2**64)
        (bits,) = struct.unpack("<Q", struct.pack("<d", value))
        total += (mixed(bits ^ key) - mixed(key)) * (value != 0)
    return f"row-{total % 2**64:016x}"


def row_names(rows):
    """Names of rows of query, docid or None, and values."""
    names, seen = [], Counter()
    for qid, docid, values in rows:
        name = row_name(values)
        seen[qid, name] += docid is None
        number = seen[qid, name]
        names.append(docid or (f"{name}-{number}" if number > 1 else name))
    return names
