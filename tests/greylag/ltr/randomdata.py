"""Random training data for the learning tests."""

from __future__ import annotations

import numpy as np

from greylag.ltr.data import RankingData, positive_grades


def random_data(
    seed: int, *, queries: int = 5, documents: int = 12, features: int = 3, levels: int | None = None
) -> RankingData:
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
        relevant_grades=tuple(positive_grades(judgements) for judgements in judged),
    )
