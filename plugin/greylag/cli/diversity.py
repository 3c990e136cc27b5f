"""Commands that diversify a run, and that learn to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

from greylag.cli.options import (
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
    open_positional,
    read_ranked,
)
from greylag.errors import FormatError, ParameterError

VALIDATE_EVERY = 4  # Yue & Joachims train on 12 queries and validate on 4

Titles = Annotated[
    Optional[Path],  # noqa: UP045
    typer.Option("--titles", metavar="FILE", help="svmdiv: titles, as JSON lines with id and title (the documents)."),
]
_OWN_OPTIONS = {
    "model": Method.svmdiv,
    "titles": Method.svmdiv,
    "transfer": Method.svmdiv,
    "relevance_weight": Method.mmr,
    "seed": Method.random,
}


def train_diversity(
    index: Index,
    topics: Topics,
    run: InputRun,
    qrels: Annotated[Path, typer.Option("--qrels", help="Judgements by subtopic; needed for training only.")],
    out: Annotated[Path, typer.Option("--out", help="The model's file (JSON).")],
    method: Annotated[DiversityLearner, typer.Option("--method", help="What to train.")] = DiversityLearner.svmdiv,
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
    """Learn which words are worth covering, from judgements by subtopic, and write the model as JSON."""
    from dataclasses import replace

    from greylag.diversity import training
    from greylag.diversity.candidates import CandidateMaker
    from greylag.diversity.coverage import PRESETS
    from greylag.diversity.titles import read_titles
    from greylag.structured import CuttingPlane
    from greylag.trec import has_subtopics, read_subtopic_qrels

    if validate and cost is not None:
        raise ParameterError("give either --C or --validate, which chooses it")
    if not has_subtopics(qrels):
        raise FormatError(qrels, None, "the judgements are not by subtopic (qid subtopic docid grade)")
    learner = CuttingPlane() if cost is None else CuttingPlane(cost)
    named = () if document_features is None else tuple(document_features.split(","))
    features = replace(PRESETS[preset.value], document_features=named)
    known = None if titles is None else read_titles(titles, lenient=lenient)
    rankings = read_ranked(run, topics, field, lenient)
    make = CandidateMaker(open_positional(index), features, known)
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
    made = model.provenance
    queries = f"{len(made['queries'])} queries" + (f", C by {len(held_out)} more" if held_out else "")
    found = f"C {made['C']:g}, objective {made['objective']:.6g}, duality gap {made['gap']:.2g}"
    typer.echo(f"{preset.value} on {queries}: {found}")


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
        Path | None, typer.Option("--model", help="svmdiv: a model from `greylag train-diversity`.")
    ] = None,
    titles: Titles = None,
    transfer: Annotated[bool, typer.Option("--transfer", help="svmdiv: allow a model of another collection.")] = False,
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
    """Reorder the top of a run so that it covers more."""
    from greylag.diversity import stage as stages
    from greylag.diversity.greedy import GreedyStage
    from greylag.diversity.mmr import MMR
    from greylag.diversity.model import DiversityModel
    from greylag.diversity.titles import read_titles
    from greylag.ranking import run_step
    from greylag.trec import write_run

    options = {
        "model": model,
        "titles": titles,
        "transfer": transfer or None,
        "relevance_weight": relevance_weight,
        "seed": seed,
    }
    given: dict[str, Any] = {name: value for name, value in options.items() if value is not None}
    for name in given:
        if _OWN_OPTIONS[name] is not method:
            raise ParameterError(f"--{name.replace('_', '-')} is for --method {_OWN_OPTIONS[name].value}")
    if method is Method.svmdiv and model is None:
        raise ParameterError("give the --model to diversify by, or another --method")
    given |= {"depth": depth, "k": k}
    if method is Method.svmdiv:
        given["model"] = DiversityModel.load(given["model"])
    if titles is not None:
        given["titles"] = read_titles(titles, lenient=lenient)
    if method is not Method.random:
        given["index"] = open_positional(index)
    makers: dict[Method, type[GreedyStage]] = {
        Method.svmdiv: stages.SVMDiv,
        Method.essential_pages: stages.EssentialPages,
        Method.coverage: stages.Coverage,
        Method.mmr: MMR,
        Method.random: stages.Random,
    }
    stage = makers[method](**given)
    rankings = read_ranked(run, topics, field, lenient)
    write_run(run_step(stage, rankings, n_jobs=jobs, tag=tag or f"{rankings.tag}-{method.value}"), out)
