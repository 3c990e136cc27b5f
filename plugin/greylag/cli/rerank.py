"""``greylag rerank``."""

from __future__ import annotations

from collections.abc import Callable, Container, Sequence
from pathlib import Path
from typing import Annotated, Any, cast

import typer

from greylag.base import Names, ParameterError, Pipeline, Ranking, Run, marked, open_atomically, parallel_map, visible
from greylag.cli.model_inputs import load_model, model_kind, seen_topics
from greylag.cli.options import (
    INDEX,
    LETOR,
    MISSING_AS_ZERO,
    NAMED_FILES,
    QUERY_VECTORS,
    TOPICS,
    TRANSFER,
    VECTORS,
    OutputRun,
    PartText,
    Rule,
    Shared,
    Tag,
    check_rules,
    completed,
    given_options,
)
from greylag.cli.ranking_inputs import first_rankings, over_columns, read_files, stages_of
from greylag.cli.vector_inputs import open_both, open_embeddings
from greylag.evaluation import Part, named_file, write_rankings
from greylag.features import STAGE_FILES, StageStep, registered_stages
from greylag.index import ArrayVectors, PositionalIndex

OF_HYBRID = "topics are ranked by the general model over --index and the cosines of both files of vectors"
RULES = [
    Rule(
        "--letor",
        "the file has topics, documents and features, for a model of such files",
        "--model",
        excluded="--index --topics --run --file --transfer --vectors --part",
    ),
    Rule("--missing-as-zero", "such a file lacks features", "--letor"),
    *(Rule("--query-vectors", OF_HYBRID, needed) for needed in ("--vectors", "--index", "--topics")),
    Rule("--query-vectors", OF_HYBRID, excluded="--letor"),
    Rule("--hits", "a model ranks as many as in its training", excluded="--model --letor"),
]


def _refuse_models(texts: list[str] | None) -> list[str] | None:
    """Refuse a model to train under the name of a stage."""
    # When the option is read, before files are looked for in the spellings.
    for text in texts or ():
        name = text.partition("(")[0].strip()
        if name not in registered_stages() and ":" not in name and (kind := model_kind(name)):
            raise ParameterError(
                f"{kind} is a model, not a stage: train it by `greylag train --model {kind} --out FILE`, and give "
                "--model FILE"
            )
    return texts


def rerank(
    context: typer.Context,
    out: OutputRun,
    index: Annotated[list[Path] | None, INDEX] = None,
    topics: Annotated[Path | None, TOPICS] = None,
    run: Annotated[
        list[str] | None,
        typer.Option(
            "--run",
            help="Run to rerank; repeat it for the runs of a fusion model, and give NAME=FILE if the model has it by "
            "another name. The general model and models trained without a run need none.",
        ),
        NAMED_FILES,
    ] = None,
    model: Annotated[
        Path | None,
        typer.Option(
            "--model",
            help="Model from `greylag train` to rerank by, or from `greylag fuse` to fuse by; with --query-vectors, "
            "one of `greylag train --vectors`.",
        ),
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option("--file", help="Read FILE instead of NAME for the model's feature run:NAME.", metavar="NAME=FILE"),
        Names(lambda text: (text.partition("=")[2],)),
    ] = None,
    transfer: Annotated[bool, TRANSFER] = False,
    stages: Annotated[
        list[str] | None,
        typer.Option(
            "--stage",
            callback=_refuse_models,
            autocompletion=completed(registered_stages),
            metavar="NAME(OPTION=VALUE,...)",
            help=f"Stage to rerank by: {', '.join(registered_stages())}. Several are applied in order, after --model.",
        ),
        STAGE_FILES,
    ] = None,
    vectors: Annotated[Path | None, VECTORS] = None,
    query_vectors: Annotated[
        Path | None,
        typer.Option(
            "--query-vectors",
            help=f"{QUERY_VECTORS}, for hybrid search: the 1000 nearest documents are candidates, too, and all are "
            "ranked by the general model and the encoder.",
        ),
    ] = None,
    hits: Annotated[
        int, typer.Option("--hits", help="Number of candidates from BM25, and from --query-vectors, for each topic.")
    ] = 1000,
    letor: Annotated[
        Path | None,
        typer.Option(
            "--letor",
            help=f"{LETOR} to rank, by a --model trained on such a file. --out FILE.scores has one score per line.",
        ),
    ] = None,
    missing_as_zero: Annotated[bool, MISSING_AS_ZERO] = False,
    part: PartText = None,
    tag: Tag = None,
) -> None:
    """Rerank or diversify a run by a model, by a chain of stages or, with neither, by the general model.

    The general model was trained on other collections, and needs no judgements. Without --run, it reranks BM25's top
    1000; with --vectors and --query-vectors, these and the 1000 nearest to the query, by the encoder, too.

    For example: --stage "mrf(model=mrf.json)" --stage "mmr(k=20,relevance_weight=0.7)". The options of a stage are the
    parameters of its class in Python; model, aspects, groups, titles and feedback name files. Stages with --vectors
    need no index; neither do xquad and pm2 with scores of aspects.

    A model that was trained without an index needs none. One that was trained on a LETOR file ranks such files
    (--letor), as do the trees that LightGBM or XGBoost saved.

    A model that was trained without --run needs none, unless it is mrf or a baseline: the union of BM25 and BM25+RM3 is
    searched, as in training.
    """
    shared: Shared = context.obj
    check_rules(context, RULES)
    asked, replaced = Part.parse(part), read_files(files or [])
    learned: Any = None if model is None or query_vectors else load_model(model, shared.inputs)
    listed = None
    if letor is not None:
        learned, listed = over_columns(learned, letor, missing_as_zero=missing_as_zero)
    steps = [StageStep.parse(text) for text in stages or ([] if model or query_vectors else ["general"])]
    positions = None if index is None else PositionalIndex.from_lucene(index)
    fused = () if learned is None else learned.runs
    embeddings = open_both(vectors, query_vectors) if vectors and query_vectors else open_embeddings(vectors, steps)
    if run and query_vectors is None and "--hits" in given_options(context):
        raise ParameterError("--hits is the number of candidates of a search, and --run has its own: leave out one")
    weighted = query_vectors is not None and model is not None
    ranked = stages_of(
        None if fused else learned, steps, positions, embeddings, replaced, transfer=transfer and not weighted
    )
    calls: list[Any] = [stage for _, stage in ranked]
    queries: Any = None if embeddings is None else embeddings.queries
    hybrid = [] if queries is None else ["hybrid"]
    if hybrid:
        from greylag.recipes import HybridModel

        searched = cast(PositionalIndex, positions)
        weight = 1.0 if model is None else HybridModel.load(model).on(searched, transfer=transfer)
        calls.insert(0, hybrid_stage(searched, cast(ArrayVectors, embeddings), queries, hits, weight))
    if topics is None and (asking := next((name for name, stage in ranked if stage.reads_query), None)):
        raise ParameterError(f"give --topics: {asking} needs the queries' texts")
    if listed is None:
        # None where a run is needed: a model that was trained on one expects its scores.
        general = hybrid or steps[:1] == [StageStep("general")]
        union = (learned.searched or None) if learned else False if general else None
        runs = [*map(named_file, run or ())]
        rankings, before = first_rankings(
            shared, runs, index or (), topics, asked, fused=fused, union=union, queries=queries, hits=hits
        )
    elif out.suffix == ".scores":
        write_scores(ranked, listed, out, shared)
        return
    else:
        rankings, before = listed, [listed.tag]
    for _, stage in ranked:
        stage.check_topics(rankings)
    names = ["fused" if fused else rankings.tag, *hybrid, *(name for name, _ in ranked)]
    used = {path: content for path, content in shared.inputs.items() if str(path) not in replaced}
    seen = seen_topics(used, rankings, "" if positions is None else positions.fingerprint)
    tag = marked(visible("-".join(names)) if tag is None else tag, seen)
    methods = [*([] if model is None else [str(model)]), *hybrid, *map(str, steps)]
    step = {"name": tag, "method": " ".join(methods), "reranks": ", ".join(before)}
    metadata = shared.metadata(step, before)
    if fused:
        from greylag.rankers import FusionRanker

        calls.insert(0, FusionRanker(learned))
    pipeline: Pipeline[Any] = Pipeline(tuple(calls))
    write_rankings(pipeline, rankings, out, tag=tag, n_jobs=shared.jobs, metadata=metadata, part=asked)


def hybrid_stage(
    index: PositionalIndex, vectors: ArrayVectors, queries: Container[str], k: int, weight: float
) -> Callable[[Ranking], Ranking]:
    """Make the stage of hybrid search; the general model alone ranks queries without a vector."""
    from greylag.recipes import GeneralRanker, HybridSearch

    search, general = HybridSearch(index, vectors, k=k, weight=weight), GeneralRanker(index)
    return lambda ranking: (search.extend if ranking.qid in queries else general)(ranking)


def write_scores(stages: Sequence[tuple[str, Any]], run: Run, out: Path, shared: Shared) -> None:
    """Write the scores of a model alone, one per line, in the order of the run."""
    (_, ranker), *others = stages
    if others:
        raise ParameterError(f"{out} takes one score per line, the model's: leave out --stage")
    seen_topics(shared.inputs, run, "")
    with open_atomically(out) as file:
        for scores in parallel_map(ranker.scores, run.rankings, what="scores", n_jobs=shared.jobs, total=len(run)):
            file.writelines(f"{score!r}\n" for score in scores.tolist())
