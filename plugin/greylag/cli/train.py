"""``greylag train``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.features import PoolOption
from greylag.cli.model_inputs import seen_topics
from greylag.cli.options import (
    INDEX,
    LETOR,
    MEASURE,
    SPELLING,
    TOPICS,
    Described,
    Features,
    MeasureName,
    Rule,
    Shared,
    check_rules,
    given_options,
    help_of,
    parse_measures,
)
from greylag.cli.running import check_outputs
from greylag.cli.terminal import write_line
from greylag.cli.training_inputs import Files, TrainRequest, read_inputs
from greylag.core.spelling import nearest, read_call
from greylag.diversity.recipe import DIVERSITY_MODELS, parse_diversity, title_files, train_to_diversify
from greylag.errors import ParameterError
from greylag.evaluation import compare
from greylag.features.feature import Feature
from greylag.features.spelling import parse_features
from greylag.index.positional import PositionalIndex
from greylag.learning.linesearch.objectives import Objective
from greylag.ranking import Run, marked
from greylag.recipes.baselines import TUNED
from greylag.recipes.spelling import RANKERS, model_files
from greylag.recipes.training import TrainingResult
from greylag.recipes.training import train as train_by
from greylag.reports import table
from greylag.runtime.inputs import Names
from greylag.trec import Qrels, write_run
from greylag.trec.texts import read_fields

MODELS: Mapping[str, Described] = {**RANKERS, **DIVERSITY_MODELS}
MODEL = typer.Option(
    "--model",
    is_eager=True,
    callback=help_of(MODELS),
    metavar=SPELLING,
    help=f'Model to learn, such as mrf or mrf(max_features=3,mu=500): {", ".join(MODELS)}. "help" describes them, '
    '"mrf(help)" the options of mrf.',
)
QRELS_HELP = "Judgements to learn from: a file, a name of Pyserini, or irds:NAME; by subtopic for svmdiv and cssvm."
RULES = [
    Rule(
        ("--letor",),
        (),
        ("--index", "--qrels", "--topics", "--run"),
        "the file has topics, documents, features and grades",
    ),
    Rule(
        ("--validation",),
        ("--letor",),
        ("--folds", "--out-run"),
        "its topics are held out, and chosen by",
    ),
]


def spelt_files(text: str) -> list[str]:
    """Return the files that the spelling of a model names."""
    return [*model_files(text), *title_files(text)]


def train(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", help="Model file to write (JSON), for `greylag rerank`.")],
    index: Annotated[list[Path] | None, INDEX] = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", help=QRELS_HELP)] = None,
    topics: Annotated[Path | None, TOPICS] = None,
    model: Annotated[str, MODEL, Names(spelt_files)] = "automatic",
    run: Annotated[
        Path | None,
        typer.Option("--run", help="TREC run to rerank. By default, BM25 is searched; for automatic and "
        "lambdamart, BM25+RM3, too."),
    ] = None,
    letor: Annotated[Path | None, typer.Option("--letor", help=f"{LETOR}, instead of all other inputs.")] = None,
    validation: Annotated[
        Path | None, typer.Option("--validation", help="With --letor: a file with the same columns, whose "
        "topics choose among models.")
    ] = None,
    measure: MeasureName = MEASURE,
    features: Features = None,
    pool: PoolOption = None,
    folds: Annotated[
        int | None,
        typer.Option("--folds", min=2, help="Number of folds of a cross-validation over topics; 5 by default "
        "with --out-run."),
    ] = None,
    out_run: Annotated[
        Path | None,
        typer.Option(
            "--out-run",
            help="Also write the held-out rankings of the cross-validation. automatic adds a run per tuned "
            "baseline, such "
            "as held-out.tuned-rm3.run beside held-out.run.",
        ),
    ] = None,
) -> None:  # fmt: skip
    """Train a model on judged topics, and save it as JSON.

    Without --model, several models are tried and the best is saved; a table shows what was tried.

    Without --index, a model learns from the scores and ranks of --run and of other runs (--features run:FILE), or from
    the columns of a --letor file: all of them, or --features 1,5,column:NAME. The models are then automatic, mrf,
    listwise, coordinate-ascent and lambdamart.

    Scores on the training topics say nothing about other topics. With --folds, each topic is also ranked by a model
    that was trained on the other folds, and these held-out rankings are compared with the run that they rerank. All
    models have the same folds, so their held-out rankings can be compared.
    """
    shared: Shared = context.obj
    name, _ = read_call(model)
    if name not in MODELS:
        raise ParameterError(f"unknown model {name!r:.60}: {nearest(name, MODELS)}")
    check_rules(context, RULES)
    given = given_options(context)
    folds = 5 if folds is None and out_run is not None else folds
    [objective] = map(Objective.parse, parse_measures([measure], qrels or letor or Path()))
    files = Files(index, qrels, out, topics, run, letor, validation, out_run)
    named = () if features is None else parse_features(",".join(features))
    if name in DIVERSITY_MODELS:
        if ranking := given & {"--letor", "--measure", "--pool"}:
            raise ParameterError(f"{min(ranking)} is for models that rank, not for {name}, which diversifies")
        train_diversifier(shared, model, files, named, folds)
    else:
        wanted = TrainRequest(name, model, objective, named, pool)
        train_ranker(shared, wanted, files, folds, propose="--measure" not in given)


def train_ranker(shared: Shared, asked: TrainRequest, files: Files, folds: int | None, *, propose: bool) -> None:
    """Train a model that ranks, write it, and say what was learned."""
    name = asked.name
    if folds and files.out_run is not None and files.index is not None:
        # Before anything is searched: the baselines' runs are outputs that no option names.
        names = dict.fromkeys(asked.spelt.recipe.baselines, Run(()))
        check_outputs([files.out_run, *baseline_runs(files.out_run, names)], shared.inputs)
    inputs = read_inputs(shared, files, asked, folds)
    first, positions = inputs.first, inputs.positions
    if propose and inputs.recipe.proposes_measure:
        propose_measure(inputs.judged)
    seen = seen_topics(shared.inputs, first, "" if positions is None else positions.fingerprint)
    result = train_by(
        first,
        inputs.judged,
        positions,
        inputs.recipe,
        folds=folds,
        n_jobs=shared.jobs,
        tag=marked(f"{first.tag}-{f'tuned-{name}' if name in TUNED else 'held-out'}", seen),
        progress=write_line,
        query_form=inputs.query_form,
    )
    if result.held_out is not None and files.out_run is not None:
        step = {"method": name, "folds": folds, "reranks": first.tag}
        runs = {files.out_run: result.held_out.run, **baseline_runs(files.out_run, result.baselines)}
        for path, run in runs.items():
            tagged = Run(run.rankings, marked(run.tag.replace(" ", "-"), result.held_out.run.tag))
            metadata = shared.metadata({"name": tagged.tag, **step}, [first.tag])
            write_run(tagged, path, metadata=metadata)
    if result.held_out is not None:
        write_line(f"\n{table(result.scores, result.significance)}")
    learned = result.fitted
    if positions is not None and RANKERS[name].union:  # so that rerank knows whether to search in the same way
        learned = learned.noted({"searched": files.run is None})
    learned.model.save(files.out)
    if (depth := inputs.depth) is not None:
        write_line(
            f"Scores on training topics cover the top {depth} documents, from which the model learns; it ranks all."
        )
    write_line(_learned(name, result))
    if (validation := learned.validation) is not None:
        write_line(
            f"{learned.model.objective} {validation.means[0]:.4f} on {len(validation.qids)} topics for validation"
        )


def train_diversifier(shared: Shared, model: str, files: Files, named: tuple[Feature, ...], folds: int | None) -> None:
    """Train a model that diversifies, write it, and say what was learned."""
    recipe, titles, [name, _] = parse_diversity(model, tuple(map(str, named))), title_files(model), read_call(model)
    if files.index is None or files.qrels is None:
        raise ParameterError(f"--model {name} needs --index and --qrels")
    if files.run is None:
        raise ParameterError(f"--model {name} needs a --run, whose top documents it learns to pick from")
    if files.topics is None and (asking := [feature for feature in named if feature.reads_query]):
        raise ParameterError(f"give --topics: the feature {asking[0]} needs the queries' texts")
    positions, first = PositionalIndex.from_lucene(files.index), shared.run(files.run, files.topics)
    seen = seen_topics(shared.inputs, first, positions.fingerprint)
    learned, held_out, scores = train_to_diversify(
        recipe,
        first,
        shared.subtopic_qrels(files.qrels),
        positions,
        titles=None if not titles else read_fields(titles[0]),
        folds=folds,
        tag=marked(f"{first.tag}-held-out", seen),
        n_jobs=shared.jobs,
    )
    if held_out is not None and files.out_run is not None:
        write_run(held_out, files.out_run)
    learned.model.save(files.out)
    write_line(f"{recipe.preset} on {learned}")
    if scores:
        tests = None if held_out is None else compare(scores, "first stage")  # C was chosen on the queries otherwise
        write_line(f"\n{table(scores, tests)}")


def _learned(name: str, result: TrainingResult) -> str:
    """Describe a model in lines: features with weights, a baseline's parameters and grid ends, or the choice."""
    model = result.model
    if not model.training_scores:  # no feature was selected
        ends = (
            f"{tuned} is at an end of its values, {low} to {high}: try more, as in --model "
            f'"{name}({tuned}=[VALUE,VALUE])"'
            for tuned, (low, high) in result.fitted.ends.items()
        )
        return "\n".join([str(result.fitted), *ends])
    if result.choice is not None:
        return str(result)
    if result.advice:  # of a single topic, with which nothing is compared
        return str(result)
    rows = zip(model.features, model.weights, model.training_scores, strict=True)
    if len(model.features) > 1 and len(set(model.training_scores)) == 1:  # features that were not added one by one
        whole = f"{model.objective} {model.training_scores[0]:.4f} on training topics with"
        return "\n".join([whole, *(f"{weight:+.6g}  {spec}" for spec, weight, _ in rows)])
    advice = (
        []
        if result.scores or result.fitted.validation
        else ["Scores are those of training topics: --folds 5 holds topics out."]
    )
    steps = (f"{model.objective} {score:.4f}  {weight:+.6g}  {spec}" for spec, weight, score in rows)
    return "\n".join([*steps, *advice])


def baseline_runs(out_run: Path, baselines: Mapping[str, Run]) -> dict[Path, Run]:
    """Return the runs of tuned baselines by the files beside the held-out run, such as held-out.tuned-rm3.run."""
    tuned = {name.lower().replace(" ", "-"): run for name, run in baselines.items() if name.startswith("tuned ")}
    return {out_run.with_name(f"{out_run.stem}.{name}{out_run.suffix}"): run for name, run in tuned.items()}


def propose_measure(qrels: Qrels) -> None:
    """Suggest a measure that suits the judgements better than AP."""
    relevant = [[grade for grade in of_one.values() if grade > 0] for of_one in qrels.values()]
    if any(grade > 1 for grades in relevant for grade in grades):
        write_line("AP is maximised, which treats all grades above 0 alike; --measure nDCG@10 distinguishes them")
    elif sum(map(len, relevant)) <= 2 * sum(map(bool, relevant)):
        write_line("AP is maximised; with one or two relevant documents a topic, --measure RR or nDCG@10 is usual")
