"""``greylag train --also``: a model for any collection, learned from several."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from greylag.cli.options import Shared
from greylag.cli.search import search_first
from greylag.cli.terminal import tell
from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.learning.data import RankingData, linear_scores
from greylag.learning.linesearch.objectives import Objective
from greylag.recipes.general import collection_weights, general_data, general_model, learn_general

FORM = "INDEX:TOPICS:QRELS"


class JudgedCollection(NamedTuple):
    """The files of a collection."""

    folders: list[Path]  # of the index
    topics: Path
    qrels: Path


def parse_also(text: str) -> JudgedCollection:
    """The collection of a text ``INDEX:TOPICS:QRELS``."""
    names = text.split(":")
    if len(names) != 3 or not all(names):
        raise ParameterError(
            f"--also {text!r:.200} is not of the form {FORM}, three files without a colon in their names"
        )
    index, topics, qrels = map(Path, names)
    return JudgedCollection([index], topics, qrels)


def judged_collections(
    index: list[Path] | None, topics: Path | None, qrels: Path | None, also: Sequence[str]
) -> list[JudgedCollection]:
    """The first collection, of the options for one, and the others."""
    if index is None or topics is None or qrels is None:
        first = {"--index": index, "--topics": topics, "--qrels": qrels}
        missing = " and ".join(flag for flag, value in first.items() if value is None)
        raise ParameterError(f"--also needs {missing}, too: {', '.join(first)} are the first collection, --also others")
    return [JudgedCollection(index, topics, qrels), *map(parse_also, also)]


def also_files(text: str) -> list[str]:
    """The names of the files in a text ``INDEX:TOPICS:QRELS``."""
    (index,), topics, qrels = parse_also(text)
    return [str(index), str(topics), str(qrels)]


def train_general(shared: Shared, collections: Sequence[JudgedCollection], objective: Objective, out: Path) -> None:
    """Learn the model, write it, and say how well each collection is ranked by weights of the others."""
    indexes = [PositionalIndex.from_lucene(collection.folders) for collection in collections]
    features = general_model(texts=all(index.words is not None for index in indexes)).features
    learned_from: dict[str, tuple[RankingData, ...]] = {}
    for (folders, topics, qrels), index in zip(collections, indexes, strict=True):
        judged, texts = shared.qrels(qrels, None, topics), shared.topics(topics)
        run = search_first(folders, {qid: text for qid, text in texts.items() if qid in judged}, shared.jobs)
        # Several sets of topics may share an index.
        name = ",".join(map(str, folders))
        name = name if name not in learned_from else f"{name}:{topics}:{qrels}"
        learned_from[name] = general_data(run, judged, index, features, n_jobs=shared.jobs)
    model = learn_general(learned_from, objective)
    model.save(out)
    weights = {name: collection_weights(parts, objective) for name, parts in learned_from.items()}
    tell(f"{objective} of BM25's top 100, and as reranked by weights of the other collections")
    first = [str(feature) for feature in features].index("score@z")
    for name, (data, *_) in learned_from.items():
        # A collection is ranked too well by its own weights; the others' rank it as they would rank a new one.
        others = np.mean([own for other, own in weights.items() if other != name], axis=0)
        before, after = (
            float(objective.evaluate(data, linear_scores(data, columns, values)).mean())
            for columns, values in (([first], np.ones(1)), (range(len(features)), others))
        )
        tell(f"{before:.4f}  {after:.4f}  {name}, {len(data.qids)} topics")
    tell("\n".join(f"{weight:+.4f}  {feature}" for weight, feature in zip(model.weights, model.features, strict=True)))
