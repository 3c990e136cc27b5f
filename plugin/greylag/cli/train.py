"""``greylag train``."""

from __future__ import annotations

from collections.abc import Set
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any

import typer

from greylag.base import Names, ParameterError, marked, nearest, read_call
from greylag.cli.feature_options import Features, PoolOption, named_features
from greylag.cli.model_inputs import seen_topics
from greylag.cli.options import (
    INDEX,
    LETOR,
    MEASURE,
    SPELLING,
    TOPICS,
    MeasureName,
    Rule,
    Shared,
    check_rules,
    completed,
    given_options,
    help_of,
    parse_measures,
)
from greylag.cli.running import check_outputs
from greylag.cli.terminal import write_line
from greylag.cli.training_inputs import (
    from_index,
    from_letor,
    from_runs,
    from_subtopics,
    propose_measure,
    recipe_of_folds,
)
from greylag.cli.vector_inputs import open_both, topics_with_vectors
from greylag.evaluation import Evaluation, compare_scores, read_folds, write_run
from greylag.index import PositionalIndex
from greylag.recipes import (
    HELD_OUT,
    MODEL_KINDS,
    TUNED,
    HybridRecipe,
    HybridSearch,
    TrainingResult,
    model_files,
    spelt_learner,
    spelt_model,
    train_on_letor,
)
from greylag.recipes import train as train_by

MODEL = typer.Option(
    "--model",
    is_eager=True,
    callback=help_of(MODEL_KINDS),
    autocompletion=completed(lambda: MODEL_KINDS),
    metavar=SPELLING,
    help=f'Model to learn, such as mrf or mrf(max_features=3,mu=500): {", ".join(MODEL_KINDS)}. "help" describes them, '
    '"mrf(help)" the options of mrf.',
)
OF_WEIGHT = "the weight of hybrid search is learned from judged topics and both files of vectors"
UNWEIGHTED, DEPTH = "hybrid without judgements", 1000
QRELS_HELP = "Judgements to learn from: a file, a name of Pyserini, or irds:NAME; by subtopic for svmdiv and cssvm."
RULES = [
    Rule("--letor", "the file has topics, documents, features and grades", excluded="--index --qrels --topics --run"),
    Rule("--pool", "its features are counted there", needed="--index"),
    *(Rule("--query-vectors", OF_WEIGHT, needed) for needed in ("--vectors", "--index", "--topics", "--qrels")),
    Rule("--vectors", OF_WEIGHT, "--query-vectors"),
    Rule("--query-vectors", OF_WEIGHT, excluded="--model --run --letor --measure --features --pool"),
    Rule("--validation", "its topics are held out, and chosen by", "--letor", excluded="--folds --out-run"),
]


def train(
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", help="Model file to write (JSON), for `greylag rerank`.")],
    index: Annotated[list[Path] | None, INDEX] = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", help=QRELS_HELP)] = None,
    topics: Annotated[Path | None, TOPICS] = None,
    model: Annotated[str, MODEL, Names(model_files)] = "automatic",
    run: Annotated[
        Path | None,
        typer.Option("--run", help="TREC run to rerank. By default, BM25 is searched; for automatic and "
        "lambdamart, BM25+RM3, too."),
    ] = None,
    letor: Annotated[
        Path | None,
        typer.Option("--letor", help=f"{LETOR}, instead of all other inputs; or a folder of Fold1, Fold2, ..."),
    ] = None,
    validation: Annotated[
        Path | None, typer.Option("--validation", help="With --letor: a file with the same columns, whose "
        "topics choose among models.")
    ] = None,
    measure: MeasureName = MEASURE,
    features: Features = None,
    pool: PoolOption = None,
    vectors: Annotated[
        Path | None, typer.Option("--vectors", help="Document embeddings (.npz or JSON lines), for --query-vectors.")
    ] = None,
    query_vectors: Annotated[
        Path | None,
        typer.Option(
            "--query-vectors",
            help="Embeddings of the topics by the encoder of --vectors: learn how much the cosines count in hybrid "
            "search, for `greylag rerank --model FILE --query-vectors`.",
        ),
    ] = None,
    folds: Annotated[
        str | None,
        typer.Option("--folds", metavar="NUMBER|FILE", help="Number of folds of a cross-validation over topics, or a "
        "file of qid and fold; 5 by default with --out-run."),
        Names(lambda text: [] if text.isdecimal() else [text]),
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
    the columns of a --letor file: all of them, or --features 1-10,15,column:NAME. The models are then automatic, mrf,
    listwise, coordinate-ascent and lambdamart.

    Scores on the training topics say nothing about other topics. With --folds, each topic is also ranked by a model
    that was trained on the other folds, and these held-out rankings are compared with the run that they rerank. All
    models have the same folds, so their held-out rankings can be compared. With a file of folds, or a --letor folder
    whose folds have train.txt, vali.txt and test.txt, a table has the means over folds, as papers print them.
    """
    shared: Shared = context.obj
    name, options = read_call(model)
    if name not in MODEL_KINDS:
        raise ParameterError(f"unknown model {name!r:.60}: {nearest(name, MODEL_KINDS)}")
    check_rules(context, RULES)
    asked = given_options(context)
    parts = number_or_file(folds) if folds is not None else 5 if out_run is not None else None
    named = named_features(features)
    kind = MODEL_KINDS[name]
    if kind.diversifies:
        check_diversifier(name, asked, parts)
    [objective] = map(str, parse_measures([measure], qrels or letor or Path()))
    form, union = None, kind.union and index is not None
    if letor is not None and letor.is_dir():
        if folds is not None or validation is not None:
            raise ParameterError(
                f"the folder {letor} has the folds, and their validation: leave out --folds and --validation"
            )
        recipe_of = recipe_of_folds(letor, named, *spelt_learner(name, options, objective))
        whole = train_on_letor(letor, recipe_of, n_jobs=shared.jobs, tag=f"{letor.name}-held-out", progress=write_line)
        finish(shared, whole, name, letor.name, out, out_run)
        return
    if query_vectors is not None:
        train_weight(shared, (index, topics, qrels, vectors, query_vectors), parts, out, out_run)
        return
    if kind.diversifies:
        spelt, form = spelt_model(name, options, objective, features=named)
        inputs = from_subtopics(shared, name, index, topics, qrels, run, named, spelt)
    elif letor is not None:
        inputs = from_letor(letor, validation, named, *spelt_learner(name, options, objective))
    elif qrels is None:
        raise ParameterError(
            "--qrels is missing: name the judgements to learn from, or a file of features and grades, --letor"
        )
    elif index is None:
        inputs = from_runs(shared, topics, qrels, run, named, *spelt_learner(name, options, objective))
    else:
        spelt, form = spelt_model(name, options, objective, features=named, pool=pool)
        outputs = [] if out_run is None else [out_run, *(beside(out_run, key) for key in kind.baselines)]
        check_outputs(outputs, shared.inputs)  # before anything is searched
        inputs = from_index(shared, index, topics, qrels, run, spelt, union=union, every=parts is not None)
    first, judged, positions, recipe = inputs
    given = read_folds(parts, first) if isinstance(parts, Path) else parts
    if "--measure" not in asked and kind.proposes_measure:
        propose_measure(judged)
    seen = seen_topics(shared.inputs, first, "" if positions is None else positions.fingerprint)
    result = train_by(
        first, judged, positions, recipe, folds=given, n_jobs=shared.jobs, query_form=form,
        progress=None if kind.diversifies else write_line,
        tag=marked(f"{first.tag}-{f'tuned-{name}' if name in TUNED else 'held-out'}", seen),
    )  # fmt: skip
    if union:  # so that rerank knows whether to search in the same way
        result = replace(result, fitted=result.fitted.noted({"searched": run is None}))
    finish(shared, result, name, first.tag, out, out_run)


def train_weight(
    shared: Shared, files: tuple[Any, ...], folds: int | Path | None, out: Path, out_run: Path | None
) -> None:
    """Learn the weight of hybrid search, compare it with a weight of 1, and save it."""
    index, topics, qrels, vectors, query_vectors = files  # all are given: see `RULES`
    embeddings, asked = open_both(vectors, query_vectors), shared.topics(topics)
    texts = topics_with_vectors(asked, embeddings, "they are left out")
    lacking = asked.keys() - texts.keys()
    positions, judged = PositionalIndex.from_lucene(index), shared.qrels(qrels, None, topics)
    judged = {qid: grades for qid, grades in judged.items() if qid not in lacking}  # else they would count as 0
    if out_run is None and folds is None:
        texts = {qid: text for qid, text in texts.items() if qid in judged}
    first = positions.bm25(DEPTH).run(texts, n_jobs=shared.jobs, tag="bm25")
    given = read_folds(folds, first) if isinstance(folds, Path) else folds
    recipe = HybridRecipe(embeddings)
    result = train_by(first, judged, positions, recipe, folds=given, n_jobs=shared.jobs, tag="hybrid-held-out")
    result.model.save(out)
    if (held_out := result.held_out) is not None:
        if out_run is not None:
            step = {"name": held_out.run.tag, "method": "hybrid", "folds": len(held_out.folds), "reranks": first.tag}
            write_run(held_out.run, out_run, metadata=shared.metadata(step, [first.tag]))
        same = HybridSearch(positions, embeddings).run(texts, n_jobs=shared.jobs, tag=UNWEIGHTED)
        scores = recipe.score({UNWEIGHTED: same, HELD_OUT: held_out.run}, judged, positions)
        write_line(f"\n{Evaluation(scores, compare_scores(scores, UNWEIGHTED))}")
    write_line(str(result))


def check_diversifier(name: str, asked: Set[str], folds: int | Path | None) -> None:
    """Refuse what is for models that rank alone."""
    if ranking := asked & {"--letor", "--measure", "--pool"}:
        raise ParameterError(f"{min(ranking)} is for models that rank, not for {name}, which diversifies")
    if isinstance(folds, Path):
        raise ParameterError(f"{name} takes a number of --folds, and no file")


def number_or_file(folds: str) -> int | Path:
    """Read the number of folds, or the name of their file."""
    if folds in ("0", "1"):
        raise ParameterError(f"--folds {folds} is neither a number from 2 on nor a file of qid and fold")
    return int(folds[:9]) if folds.isdecimal() else Path(folds)


def finish(shared: Shared, result: TrainingResult, name: str, reranks: str, out: Path, out_run: Path | None) -> None:
    """Write the model and the held-out rankings, and print what was learned."""
    held_out = result.held_out
    if held_out is not None and out_run is not None:
        step = {"method": name, "folds": len(held_out.folds), "reranks": reranks}
        known = [key for key in MODEL_KINDS[name].baselines if key in result.baselines]
        tuned = {beside(out_run, key): result.baselines[key] for key in known}
        for path, ranked in {out_run: held_out.run, **tuned}.items():
            tag = marked(ranked.tag.replace(" ", "-"), held_out.run.tag)
            write_run(replace(ranked, tag=tag), path, metadata=shared.metadata({"name": tag, **step}, [reranks]))
    result.model.save(out)
    tables = [] if result.by_fold is None else [f"\n{result.by_fold}\n"]
    if result.scores:
        significance = None if held_out is None or len(result.scores) < 2 else result.significance
        tables.insert(0, f"\n{Evaluation(result.scores, significance)}")
    # What diversifies is told in a line, before its scores.
    for text in (str(result), *tables) if MODEL_KINDS[name].diversifies else (*tables, str(result)):
        write_line(text)


def beside(out_run: Path, baseline: str) -> Path:
    """Return the file of a baseline's rankings beside held-out ones, such as held-out.tuned-rm3.run."""
    return out_run.with_name(f"{out_run.stem}.{baseline.lower().replace(' ', '-')}{out_run.suffix}")
