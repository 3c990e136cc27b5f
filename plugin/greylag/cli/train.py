"""``greylag train``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from greylag.cli.groups import OnlyFor, given
from greylag.cli.options import FeatureOptions, Index, Jobs, Reading, Topics, check_features
from greylag.features.extract import FeatureExtractor
from greylag.index.positional import PositionalIndex
from greylag.ltr import training
from greylag.ltr.coordinate_ascent import CoordinateAscent
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.learner import Learner
from greylag.ltr.preselect import MMRPreselection
from greylag.lucene.lucene_index import LuceneIndex

LEARNERS: dict[str, Callable[..., Learner]] = {"greedy": GreedySelection, "coordinate-ascent": CoordinateAscent}


@dataclass(frozen=True)
class LearnerOptions:
    """The learner and its parameters."""

    learner: Annotated[
        Literal["greedy", "coordinate-ascent"],
        typer.Option("--learner", help="Select features greedily, or weight all of them by coordinate ascent."),
    ] = "greedy"
    measure: Annotated[
        str, typer.Option("--measure", help="Measure to maximise: map, nDCG@10, RR, P@5, ERR@20, ...")
    ] = "map"
    max_features: Annotated[
        int | None, OnlyFor("greedy", "--max-features", "Largest number of features (default 5).")
    ] = None
    epsilon: Annotated[
        float | None, OnlyFor("greedy", "--epsilon", "Stop if the measure rises by no more than this (default 0).")
    ] = None
    retrain: Annotated[bool, OnlyFor("greedy", "--retrain", "Retrain all weights after each round.")] = False
    restarts: Annotated[int | None, OnlyFor("coordinate-ascent", "--restarts", "Restarts (default 3).")] = None
    seed: Annotated[int | None, OnlyFor("coordinate-ascent", "--seed", "Seed of restarts (default 0).", min=0)] = None

    def make(self) -> Learner:
        """The learner."""
        return LEARNERS[self.learner](self.measure, **given(self, "--learner", self.learner))


def train(
    index: Index,
    topics: Topics,
    qrels: Annotated[Path, typer.Option("--qrels", help="Relevance judgements to learn from.")],
    out: Annotated[Path, typer.Option("--out", help="Model to write (JSON).")],
    learning: LearnerOptions,
    options: FeatureOptions,
    reading: Reading,
    run: Annotated[Path | None, typer.Option("--run", help="TREC run to learn to rerank; BM25 by default.")] = None,
    preselect: Annotated[
        str | None,
        typer.Option("--preselect", help="Preselect features by MMR: mmr:16, or mmr:16:0.7 with a relevance weight."),
    ] = None,
    jobs: Jobs = -1,
) -> None:
    """Learn a linear model of features (by default, those of the full pool), and write it as JSON."""
    preselection = None if preselect is None else MMRPreselection.parse(preselect)
    learner, specs, parameters = learning.make(), options.specs, options.parameters
    check_features(out, specs)
    if run is None:
        rankings = LuceneIndex(index).bm25().run(reading.topics(topics), n_jobs=jobs, tag="bm25")
    else:
        rankings = reading.run(run, topics)
    judgements = reading.qrels(qrels, rankings)
    extractor = FeatureExtractor(PositionalIndex.from_lucene(index), specs, parameters)
    data = training.training_data(rankings.rankings, judgements, extractor)
    provenance = {}
    if preselection is not None:
        provenance = {"pool": len(data.specs), "preselect": str(preselection)}
        data = preselection.select(data)
    model = training.train(data, learner, n_jobs=jobs, provenance=provenance)
    model.save(out)
    for spec, weight, score in zip(model.features, model.weights, model.training_scores, strict=True):
        typer.echo(f"{model.objective} {score:.4f}  {weight:+.6g}  {spec}")
