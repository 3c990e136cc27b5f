"""Feature matrices as files: LETOR (SVMlight) text, which other learners read, or NumPy's .npz."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import numpy as np

from greylag.ranking import FloatArray, Ranking
from greylag.trec.text import open_atomically

Qrels = Mapping[str, Mapping[str, int]]


def write_features(
    path: str | Path, names: Iterable[str], rows: Iterable[tuple[Ranking, FloatArray]], qrels: Qrels | None = None
) -> None:
    """Write rankings' features, query by query; a name in .npz gives NumPy's form, any other LETOR text.

    LETOR: a comment line ``# NUMBER NAME`` for each feature, then a line ``GRADE qid:QID 1:VALUE 2:VALUE ... # DOCID``
    for each document, values with all their digits. Without `qrels`, and for documents that are not judged, the grade is 0.
    .npz: arrays ``features`` (n, f), ``names`` (f,), ``qids``, ``docids`` and ``grades`` (n,).
    """
    if Path(path).suffix == ".npz":
        _write_npz(path, tuple(names), rows, qrels or {})
    else:
        with open_atomically(path) as file:
            file.writelines(_letor_lines(names, rows, qrels or {}))


def _letor_lines(names: Iterable[str], rows: Iterable[tuple[Ranking, FloatArray]], qrels: Qrels) -> Iterator[str]:
    for number, name in enumerate(names, 1):
        yield f"# {number} {name}\n"
    for ranking, features in rows:
        grades = qrels.get(ranking.qid, {})
        for docid, values in zip(ranking.docids, features.tolist(), strict=True):
            cells = " ".join(f"{number}:{value!r}" for number, value in enumerate(values, 1))
            yield f"{grades.get(docid, 0)} qid:{ranking.qid} {cells} # {docid}\n"


def _write_npz(
    path: str | Path, names: tuple[str, ...], rows: Iterable[tuple[Ranking, FloatArray]], qrels: Qrels
) -> None:
    kept = list(rows)
    docids = [docid for ranking, _ in kept for docid in ranking.docids]
    qids = [ranking.qid for ranking, _ in kept for _ in ranking.docids]
    grades = [qrels.get(qid, {}).get(docid, 0) for qid, docid in zip(qids, docids, strict=True)]
    features = np.concatenate([np.empty((0, len(names))), *(values for _, values in kept)])
    with open_atomically(path, binary=True) as file:
        np.savez_compressed(
            file,
            features=features,
            names=np.array(names),
            qids=np.array(qids),
            docids=np.array(docids),
            grades=np.array(grades, dtype=np.int64),
        )
