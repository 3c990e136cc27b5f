"""A collection, queries and a model for tests of training: documents with the query as a phrase are relevant."""

from __future__ import annotations

import numpy as np

from greylag.features.extract import FeatureExtractor
from greylag.features.spec import candidate_pool
from greylag.features.spelling import parse_features
from greylag.index.positional import PositionalIndex
from greylag.ltr.extraction import training_data
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.linear import LinearModel
from greylag.ltr.training import train_on_data
from greylag.ranking import Ranking

WORDS = ["cat", "dog", "pig", "cow", "hen", "fox"]


def collection(seed: int = 1) -> PositionalIndex:
    rng = np.random.default_rng(seed)
    return PositionalIndex.from_texts({f"d{i}": " ".join(rng.choice(WORDS, size=12)) for i in range(40)})


def rankings(index: PositionalIndex) -> tuple[list[Ranking], dict[str, dict[str, int]]]:
    """Queries of two words, the documents that have them side by side being relevant."""
    docids = tuple(f"d{i}" for i in range(40))
    queries = [f"{a} {b}" for a in WORDS[:4] for b in WORDS[:4] if a != b]
    phrases = FeatureExtractor(index, parse_features("SD/ordered/BM25-O-1"))
    ranked = [Ranking(str(i), query, docids, np.zeros(40)) for i, query in enumerate(queries)]
    qrels = {r.qid: {d: int(v > 0) for d, v in zip(docids, phrases(r)[:, 0], strict=True)} for r in ranked}
    return ranked, qrels


def trained(index: PositionalIndex, n_jobs: int = 1, retrain: bool = False) -> LinearModel:
    ranked, qrels = rankings(index)
    extractor = FeatureExtractor(index, candidate_pool("sd"))
    learner = GreedySelection("AP", max_features=3, retrain=retrain)
    return train_on_data(training_data(ranked, qrels, extractor), learner, n_jobs=n_jobs, provenance={"seed": 1})
