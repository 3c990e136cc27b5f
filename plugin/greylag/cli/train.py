"""``greylag train``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from greylag.cli.first_stage import first_stage
from greylag.cli.groups import OnlyFor, given
from greylag.cli.held_out import HeldOut, train_recipe
from greylag.cli.options import FeatureOptions, Index, Reading, Topics, check_features
from greylag.cli.running import Resumable
from greylag.errors import ParameterError
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.coordinate_ascent import CoordinateAscent
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.learner import Learner
from greylag.ltr.linear import LinearModel
from greylag.ltr.preselect import MMRPreselection
from greylag.ltr.stack import StackRecipe
from greylag.ltr.training import MRFRecipe, Recipe

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

    def make_recipe(self, options: FeatureOptions) -> StackRecipe:
        """The recipe of the preset stack, which has its own way to learn and to tune parameters."""
        if self.learner != "greedy" or given(self, "--learner", self.learner).keys() - {"max_features"}:
            raise ParameterError("--preset stack selects greedily: of the learner, only --max-features can be given")
        if options.parameters != FeatureParameters():
            raise ParameterError("--preset stack chooses the features' parameters itself: leave them out")
        more = () if options.features is None else parse_features(options.features)
        return StackRecipe(self.measure, pool=options.pool or "sd", more=more, max_features=self.max_features or 5)

    def make(self) -> Learner:
        """The learner."""
        return LEARNERS[self.learner](self.measure, **given(self, "--learner", self.learner))


def train(
    index: Index,
    topics: Topics,
    qrels: Annotated[
        Path,
        typer.Option("--qrels", help="Relevance judgements to learn from: a file, a name of Pyserini, or irds:NAME."),
    ],
    out: Annotated[Path, typer.Option("--out", help="Model to write (JSON).")],
    learning: LearnerOptions,
    options: FeatureOptions,
    held_out: HeldOut,
    reading: Reading,
    running: Resumable,
    run: Annotated[
        Path | None, typer.Option("--run", help="TREC run to learn to rerank; by default BM25 (stack: and BM25+RM3).")
    ] = None,
    preselect: Annotated[
        str | None,
        typer.Option("--preselect", help="Preselect features by MMR: mmr:16, or mmr:16:0.7 with a relevance weight."),
    ] = None,
    preset: Annotated[
        Literal["stack"] | None,
        typer.Option(
            "--preset", help="stack: tune RM3, and select from it, MRF features, manifold ranking and --features."
        ),
    ] = None,
) -> None:
    """Learn a linear model of features (by default, those of the full pool), and write it as JSON.

    The scores on training topics say nothing about other topics. With --folds, each topic is also ranked by a model
    that was trained on the other folds, and those rankings are scored against the run that they rerank.
    """
    held_out.check([out, topics, qrels, run, *index])
    if preset is None:
        check_features(out, options.specs)
        recipe: Recipe = MRFRecipe(
            options.specs,
            learning.make(),
            parameters=options.parameters,
            preselection=None if preselect is None else MMRPreselection.parse(preselect),
        )
    elif preselect is not None:
        raise ParameterError("--preset stack takes no --preselect")
    else:
        recipe = learning.make_recipe(options)
        check_features(out, recipe.more)
    rankings = first_stage(run, index, topics, reading, running.jobs, stack=preset is not None)
    judgements, positions = reading.qrels(qrels, rankings), PositionalIndex.from_lucene(index)
    model = train_recipe(recipe, rankings, judgements, positions, held_out, "held-out", running.jobs)
    if preset is not None:  # so that rerank knows whether to search in the same way
        model = replace(model, provenance={**model.provenance, "searched": run is None})
    save(model, out)


def save(model: LinearModel, out: Path) -> None:
    """Write the model and show its features."""
    model.save(out)
    for spec, weight, score in zip(model.features, model.weights, model.training_scores, strict=True):
        typer.echo(f"{model.objective} {score:.4f}  {weight:+.6g}  {spec}")
