"""Commands that diversify a run, and that learn to."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from greylag.cli.options import (
    Assignment,
    DiversityLearner,
    Field,
    Index,
    InputRun,
    Jobs,
    Lenient,
    Method,
    Out,
    Preset,
    Tag,
    Topics,
    check_options,
    given_options,
    open_positional,
    read_ranked,
)
from greylag.errors import FormatError, ParameterError

if TYPE_CHECKING:
    from greylag.diversity.model import DiversityModel

VALIDATE_EVERY = 4  # Yue & Joachims train on 12 queries and validate on 4

Titles = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option(
        "--titles", metavar="FILE", help="svmdiv, cssvm: titles, as JSON lines with id and title (the documents)."
    ),
]
_LEARNER_OPTIONS = dict.fromkeys(("models", "alpha", "assignment", "seed"), (DiversityLearner.cssvm,))
_METHOD_OPTIONS = {
    "model": (Method.svmdiv, Method.cssvm),
    "titles": (Method.svmdiv, Method.cssvm),
    "transfer": (Method.svmdiv, Method.cssvm),
    "fuse": (Method.cssvm,),
    "relevance_weight": (Method.mmr,),
    "seed": (Method.random,),
}


def train_diversity(
    index: Index,
    topics: Topics,
    run: InputRun,
    qrels: Annotated[Path, typer.Option("--qrels", help="Judgements by subtopic; needed for training only.")],
    out: Annotated[Path, typer.Option("--out", help="The model's file (JSON).")],
    method: Annotated[
        DiversityLearner, typer.Option("--method", help="Train one model, or an ensemble of models that differ.")
    ] = DiversityLearner.svmdiv,
    models: Annotated[int | None, typer.Option("--models", help="cssvm: how many; 5.")] = None,
    alpha: Annotated[
        float | None, typer.Option("--alpha", help="cssvm: how strongly they repel each other; 0.1.")
    ] = None,
    assignment: Annotated[
        Assignment | None, typer.Option("--assignment", help="cssvm: which of them learn from a query; all.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="cssvm: of where they start; 0.")] = None,
    preset: Annotated[
        Preset, typer.Option("--preset", help="Words by frequency and titles; svmdiv2: by TF-IDF, too.")
    ] = Preset.svmdiv,
    document_features: Annotated[
        str | None,
        typer.Option("--document-features", help="Learn relevance too: score,reciprocal-rank,SD/ordered/LM-O-4,…"),
    ] = None,
    titles: Titles = None,
    depth: Annotated[int, typer.Option("--depth", help="Candidates: the first so many documents.")] = 100,
    k: Annotated[int, typer.Option("--k", help="Learn to pick so many of them.")] = 5,
    cost: Annotated[float | None, typer.Option("--C", help="Weight of the loss against ||w||²/2; 1.")] = None,
    validate: Annotated[
        bool, typer.Option("--validate", help="Choose C from 1e-5 to 1e3 by every fourth query.")
    ] = False,
    field: Field = "title",
    lenient: Lenient = False,
) -> None:
    """Learn which words are worth covering, from judgements by subtopic, and write the model as JSON.

    With --method cssvm, a Coulomb structured SVM: models that each learn to, and are pushed apart, so that one of them
    may serve a query where the others fail. --validate then chooses C by the best of their picks for each query.
    """
    from dataclasses import replace

    from greylag.diversity import training
    from greylag.diversity.candidates import CandidateMaker
    from greylag.diversity.coverage_model import PRESETS
    from greylag.diversity.titles import read_titles
    from greylag.structured import Coulomb, CuttingPlane
    from greylag.trec import has_subtopics, read_subtopic_qrels

    own = {"alpha": alpha, "assignment": assignment, "seed": seed}
    check_options(given_options(models=models, **own), _LEARNER_OPTIONS, method)
    if validate and cost is not None:
        raise ParameterError("give either --C or --validate, which chooses it")
    if not has_subtopics(qrels):
        raise FormatError(qrels, None, "the judgements are not by subtopic (qid subtopic docid grade)")
    learner = (
        CuttingPlane(**given_options(C=cost))
        if method is DiversityLearner.svmdiv
        else Coulomb(**given_options(M=models, C=cost, **own))
    )
    named = () if document_features is None else tuple(document_features.split(","))
    features = replace(PRESETS[preset.value], document_features=named)
    known = None if titles is None else read_titles(titles, lenient=lenient)
    rankings = read_ranked(run, topics, field, lenient)
    make = CandidateMaker(open_positional(index), features, titles=known)
    judgements = read_subtopic_qrels(qrels, lenient=lenient)
    examples = training.training_examples(rankings.rankings, judgements, make, depth=depth)
    held_out = set(list(examples)[VALIDATE_EVERY - 1 :: VALIDATE_EVERY]) if validate else set()
    if validate and not held_out:
        raise ParameterError(f"--validate needs at least {VALIDATE_EVERY} queries with subtopics, not {len(examples)}")
    model = training.train(
        {qid: example for qid, example in examples.items() if qid not in held_out},
        make,
        learner,
        k=k,
        validation={qid: examples[qid] for qid in examples if qid in held_out},
        provenance={"method": method.value, "depth": depth},
    )
    model.save(out)
    typer.echo(f"{preset.value} on {_summary(model)}")


def diversify(
    index: Index,
    run: InputRun,
    out: Out,
    topics: Annotated[
        Path | None,
        typer.Option("--topics", help="Topics; checked against the run's queries, and needed for MRF features."),
    ] = None,
    method: Annotated[Method, typer.Option("--method", help="How to diversify.")] = Method.mmr,
    model: Annotated[
        Path | None, typer.Option("--model", help="svmdiv, cssvm: a model from `greylag train-diversity`.")
    ] = None,
    titles: Titles = None,
    transfer: Annotated[
        bool, typer.Option("--transfer", help="svmdiv, cssvm: allow a model of another collection.")
    ] = False,
    fuse: Annotated[
        bool, typer.Option("--fuse", help="cssvm: one run, fused by reciprocal ranks, in place of one for each model.")
    ] = False,
    relevance_weight: Annotated[
        float | None, typer.Option(help="mmr: 1 for relevance only, 0 for novelty only; 0.7.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="random: the order's seed; 0.")] = None,
    depth: Annotated[int, typer.Option("--depth", help="Candidates: the first so many documents.")] = 100,
    k: Annotated[int, typer.Option("--k", help="How many of them to pick.")] = 20,
    field: Field = "title",
    tag: Tag = None,
    jobs: Jobs = 1,
    lenient: Lenient = False,
) -> None:
    """Reorder the top of a run so that it covers more.

    An ensemble (--method cssvm) gives a run for each of its models: --out div.run is written as div.1.run, div.2.run
    and so on. With --fuse there is one run, div.run.
    """
    from greylag.diversity.cssvm import CSSVM
    from greylag.diversity.model import DiversityModel
    from greylag.diversity.registry import diversifier
    from greylag.diversity.titles import read_titles
    from greylag.ranking import run_step
    from greylag.trec import write_run

    given = given_options(
        model=model,
        titles=titles,
        transfer=transfer or None,
        fuse=fuse or None,
        relevance_weight=relevance_weight,
        seed=seed,
    )
    check_options(given, _METHOD_OPTIONS, method)
    given.pop("fuse", None)
    if method in _METHOD_OPTIONS["model"]:
        if model is None:
            raise ParameterError("give the --model to diversify by, or another --method")
        given["model"] = DiversityModel.load(model)
    if titles is not None:
        given["titles"] = read_titles(titles, lenient=lenient)
    if method is not Method.random:
        given["index"] = open_positional(index)
    stage = diversifier(method.value)(**given, depth=depth, k=k)
    rankings = read_ranked(run, topics, field, lenient)
    tag = tag or f"{rankings.tag}-{method.value}"
    if isinstance(stage, CSSVM) and not fuse:
        runs = stage.member_runs(rankings, n_jobs=jobs, tag=tag)
        paths = [_numbered(out, number) for number in range(1, len(runs) + 1)]
        for path, found in zip(paths, runs, strict=True):
            write_run(found, path)
        typer.echo(" ".join(map(str, paths)))
    else:
        write_run(run_step(stage, rankings, n_jobs=jobs, tag=tag), out)


def _summary(model: DiversityModel) -> str:
    """What was trained, on what, and how it went."""
    made = model.provenance
    validated = f", C by {len(made['validation'])} more" if made["validation"] else ""
    queries = f"{len(made['queries'])} queries{validated}"
    if made["method"] == DiversityLearner.cssvm.value:
        spread = f"alpha {made['alpha']:g}, mean angle {made['mean_angle']:.1f} degrees"
        return f"{queries}: C {made['C']:g}, {len(model.weights)} models, {spread}"
    return f"{queries}: C {made['C']:g}, objective {made['objective']:.6g}, duality gap {made['gap']:.2g}"


def _numbered(path: Path, number: int) -> Path:
    """``div.1.run`` for ``div.run`` and ``div.1.run.gz`` for ``div.run.gz``."""
    packed = path.suffix if path.suffix == ".gz" else ""
    plain = Path(path.name.removesuffix(packed))
    return path.parent / f"{plain.stem}.{number}{plain.suffix}{packed}"
