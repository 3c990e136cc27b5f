"""``greylag train-diversity``."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Annotated, Literal

import typer

from greylag.cli.groups import OnlyFor, given
from greylag.cli.options import Index, InputRun, Reading, Topics
from greylag.cli.running import Resumable
from greylag.diversity import training
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import PRESETS, CoverageFeatures
from greylag.diversity.model import DiversityModel
from greylag.errors import ParameterError
from greylag.features.spelling import parse_features
from greylag.index.positional import PositionalIndex
from greylag.structured.assignment import Assignment
from greylag.structured.coulomb import Coulomb
from greylag.structured.coulomb_problem import Repulsion
from greylag.structured.cutting_plane import CuttingPlane
from greylag.trec import read_subtopic_qrels, read_titles

VALIDATE_EVERY = 4  # Yue & Joachims train on 12 queries and validate on 4


@dataclass(frozen=True)
class LearnerOptions:
    """The learner and its parameters."""

    method: Annotated[
        Literal["svmdiv", "cssvm"], typer.Option("--method", help="Train one model, or an ensemble of diverse models.")
    ] = "svmdiv"
    C: Annotated[
        float | None, OnlyFor(("svmdiv", "cssvm"), "--C", "Weight of the loss against ||w||²/2 (default 1).")
    ] = None
    M: Annotated[int | None, OnlyFor("cssvm", "--models", "Number of models (default 5).")] = None
    alpha: Annotated[float | None, OnlyFor("cssvm", "--alpha", "Repulsion between models (default 0.1).")] = None
    repulsion: Annotated[
        Repulsion | None,
        OnlyFor(
            "cssvm",
            "--repulsion",
            "Form of the repulsion: the paper's displacement, whose angles are bounded, or the gradient of its "
            "objective, for which useful values of --alpha grow with the squared length of the weights (default "
            "displacement).",
        ),
    ] = None
    s: Annotated[
        float | None, OnlyFor("cssvm", "--s", "Exponent of the Riesz energy; 1 is the Coulomb energy (default 1).")
    ] = None
    assignment: Annotated[
        Assignment | None, OnlyFor("cssvm", "--assignment", "Which models learn from a query (default all).")
    ] = None
    seed: Annotated[int | None, OnlyFor("cssvm", "--seed", "Seed of the start (default 0).", min=0)] = None

    def make(self) -> CuttingPlane | Coulomb:
        """The learner."""
        options = given(self, "--method", self.method)
        return CuttingPlane(slack="n", **options) if self.method == "svmdiv" else Coulomb(**options)


@dataclass(frozen=True)
class FeatureSpace:
    """What a model covers documents by."""

    preset: Annotated[
        Literal["svmdiv", "svmdiv2", "svmdiv-all-levels"],
        typer.Option(
            "--preset",
            help="Words by frequency and in titles; svmdiv2: by TF-IDF, too; svmdiv-all-levels: words by all criteria.",
        ),
    ] = "svmdiv"
    document_features: Annotated[
        str | None,
        typer.Option(
            "--document-features", help="Learn relevance, too, from: score,reciprocal-rank,SD/ordered/LM-O-4,..."
        ),
    ] = None
    titles: Annotated[
        Path | None,
        typer.Option("--titles", metavar="FILE", help="Titles: JSON lines with id and title, such as the documents."),
    ] = None

    @property
    def features(self) -> CoverageFeatures:
        """The features."""
        named = () if self.document_features is None else tuple(map(str, parse_features(self.document_features)))
        return replace(PRESETS[self.preset], document_features=named)


def train_diversity(
    index: Index,
    topics: Topics,
    run: InputRun,
    qrels: Annotated[Path, typer.Option("--qrels", help="Subtopic judgements.")],
    out: Annotated[Path, typer.Option("--out", help="Model to write (JSON).")],
    learning: LearnerOptions,
    space: FeatureSpace,
    reading: Reading,
    running: Resumable,
    depth: Annotated[int, typer.Option("--depth", help="Candidates: the top N documents.")] = 100,
    k: Annotated[int, typer.Option("--k", help="Number of candidates to learn to pick.")] = 5,
    validate: Annotated[
        bool, typer.Option("--validate", help="Choose C from 1e-5 to 1e3 on every fourth query, which is held out.")
    ] = False,
) -> None:
    """Learn to diversify from subtopic judgements, and write the model as JSON.

    With --method cssvm, learn an ensemble with a Coulomb structured SVM: its models repel each other, so that one may
    serve a query on which others fail. --validate then chooses C by the best model for each query.
    """
    learner = learning.make()
    if validate and learning.C is not None:
        raise ParameterError("--C and --validate cannot be combined: --validate chooses C")
    titles = None if space.titles is None else read_titles(space.titles, lenient=reading.lenient)
    rankings = reading.run(run, topics)
    make = CandidateMaker(PositionalIndex.from_lucene(index), space.features, titles=titles)
    judgements = read_subtopic_qrels(qrels, lenient=reading.lenient)
    examples = training.training_examples(rankings.rankings, judgements, make, depth=depth, n_jobs=running.jobs)
    held_out = set(list(examples)[VALIDATE_EVERY - 1 :: VALIDATE_EVERY]) if validate else set()
    if validate and not held_out:
        raise ParameterError(f"--validate needs at least {VALIDATE_EVERY} queries with subtopics, not {len(examples)}")
    model = training.train(
        {qid: example for qid, example in examples.items() if qid not in held_out},
        make,
        learner,
        k=k,
        validation={qid: examples[qid] for qid in examples if qid in held_out},
        provenance={"method": learning.method, "depth": depth},
        n_jobs=running.jobs,
    )
    model.save(out)
    typer.echo(f"{space.preset} on {_summary(model)}")


def _summary(model: DiversityModel) -> str:
    """What the model was trained on, with which parameters and result."""
    made = model.provenance
    validated = f", C chosen on {len(made['validation'])} more" if made["validation"] else ""
    queries = f"{len(made['queries'])} queries{validated}"
    if made["method"] == "cssvm":
        spread = f"{made['repulsion']} with alpha {made['alpha']:g}, mean angle {made['mean_angle']:.1f} degrees"
        return f"{queries}: C {made['C']:g}, {len(model.weights)} models, {spread}"
    return f"{queries}: C {made['C']:g}, objective {made['objective']:.6g}, duality gap {made['gap']:.2g}"
