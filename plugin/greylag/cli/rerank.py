"""``greylag rerank``."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer

from greylag.cli.options import INDEX, TOPICS, VECTORS, OutputRun, Shared, Tag
from greylag.cli.running import check_outputs, input_files
from greylag.cli.search import search_first
from greylag.cli.terminal import tell
from greylag.diversity.model import DiversityModel
from greylag.diversity.svmdiv import CSSVM, SVMDiv
from greylag.errors import ModelError, ParameterError
from greylag.features.named_files import is_model_file
from greylag.features.stages import StageStep, registered_stages
from greylag.index.positional import PositionalIndex
from greylag.ltr.linear import LinearModel
from greylag.ltr.rankers import MRFRanker
from greylag.model_files import read_kind
from greylag.pipeline import Pipeline
from greylag.ranking import SEEN, Ranking, Run, marked
from greylag.tables import visible
from greylag.trec import write_rankings
from greylag.trec.runs import RunFile, run_tag, write_members
from greylag.vectors.dense import ArrayVectors
from greylag.vectors.vector_files import open_vectors

KINDS: dict[str, type[LinearModel] | type[DiversityModel]] = {kind.kind: kind for kind in (LinearModel, DiversityModel)}
_log = logging.getLogger("greylag")


def rerank(
    context: typer.Context,
    out: OutputRun,
    index: Annotated[list[Path] | None, INDEX] = None,
    topics: Annotated[Path | None, TOPICS] = None,
    run: Annotated[
        Path | None, typer.Option("--run", help="TREC run. A model that was trained without one needs none.")
    ] = None,
    model: Annotated[Path | None, typer.Option("--model", help="Rerank by a model from `greylag train`.")] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file", help="Read FILE in place of the file NAME of the model's feature run:NAME.", metavar="NAME=FILE"
        ),
    ] = None,
    transfer: Annotated[bool, typer.Option("--transfer", help="Allow a model trained on another collection.")] = False,
    stages: Annotated[
        list[str] | None,
        typer.Option(
            "--stage",
            metavar="NAME(OPTION=VALUE,...)",
            help=f"Rerank by a stage: {', '.join(registered_stages())}. Several are applied one after another, after "
            "the --model.",
        ),
    ] = None,
    vectors: Annotated[Path | None, VECTORS] = None,
    members: Annotated[
        bool, typer.Option("--members", help="Write a run for each member of the ensemble that is the last stage.")
    ] = False,
    tag: Tag = None,
) -> None:
    """Rerank or diversify a run by a model, or by stages one after another.

    For example: --stage "mrf(model=mrf.json)" --stage "mmr(k=20,relevance_weight=0.7)". The options of a stage are the
    parameters of its class in Python; model, aspects, groups, titles and feedback are files. Stages with
    --vectors need no index; nor do xquad and pm2 with scores of aspects.

    A model of `greylag train` that was trained without a run, unless it is --model mrf or a baseline, needs none: the
    union of BM25 and BM25+RM3 is searched, as in training.

    With --members, the ensemble's runs are div.1.run, div.2.run, ... for --out div.run. Without, they are fused by
    reciprocal ranks.
    """
    shared: Shared = context.obj
    if model is None and (files or transfer):
        raise ParameterError("--file and --transfer go with --model; a stage takes transfer=true")
    if model is None and not stages:
        raise ParameterError(f"give a --model, or a --stage: {', '.join(registered_stages())}")
    steps = [StageStep.parse(text) for text in stages or []]
    positions = None if index is None else PositionalIndex.from_lucene(index)
    embeddings = open_embeddings(vectors, steps)
    given = read_files(files or [])
    made = [] if model is None else [model_stage(model, given, positions, transfer=transfer)]
    made += [(step.name, step.make(positions, vectors=embeddings)) for step in steps]
    if topics is None and (asking := next((name for name, stage in made if needs_queries(name, stage)), None)):
        raise ParameterError(f"give --topics: {asking} needs the queries' texts")
    rankings = first_rankings(shared, run, index or (), topics, made[0][1])
    for _, stage in made:
        check_topics(stage, rankings)
    read = input_files({"run": run, "topics": topics, "model": model, "stages": stages, "files": files})
    tag = visible("-".join([rankings.tag, *(name for name, _ in made)])) if tag is None else tag
    used = [path for path in read if str(path) not in given]
    fingerprint = "" if positions is None else positions.fingerprint
    tag, last = marked(tag, seen_topics(used, rankings, fingerprint)), made[-1][1]
    methods = [*([] if model is None else [str(model)]), *map(str, steps)]
    step = {"name": tag, "method": " ".join(methods), "reranks": rankings.tag}
    metadata = shared.metadata(step, before=[(rankings.tag, run)])
    before: Pipeline[Ranking] = Pipeline(tuple(stage for _, stage in (made[:-1] if members else made)))
    if not members:
        write_rankings(before, rankings, out, tag=tag, n_jobs=shared.jobs, metadata=metadata)
        return
    if not isinstance(last, CSSVM):
        raise ParameterError(f"--members is for an ensemble, cssvm, as the last stage, not for {made[-1][0]}")
    paths = [_numbered(out, number) for number in range(1, len(last.model.weights) + 1)]
    check_outputs(paths, read)
    write_members(
        partial(_member_rankings, before, last), rankings, paths, tag=tag, n_jobs=shared.jobs, metadata=metadata
    )
    tell(" ".join(map(str, paths)))


def load_model(path: Path) -> LinearModel | DiversityModel:
    """A model of any kind."""
    kind = read_kind(path)
    if kind not in KINDS:
        raise ModelError(f"{path}: not a model of greylag: give a file that `greylag train` wrote")
    return KINDS[kind].load(path)


def read_files(texts: Iterable[str]) -> dict[str, str]:
    """The files of ``NAME=FILE`` by name."""
    files: dict[str, str] = {}
    for name, _, file in (text.partition("=") for text in texts):
        if not name or not file:
            raise ParameterError(f"--file {name} is not of the form NAME=FILE")
        if name in files:
            raise ParameterError(f"--file {name} is given twice: {files[name]} and {file}")
        files[name] = file
    return files


def open_embeddings(path: Path | None, steps: Sequence[StageStep]) -> ArrayVectors | None:
    """The vectors of a file, which at least one of the stages takes."""
    if path is None:
        return None
    if not any("vectors" in step.readers for step in steps):
        taking = ", ".join(name for name in registered_stages() if "vectors" in StageStep(name).readers)
        raise ParameterError(f"--vectors is for {taking}, and none of the stages is one")
    return open_vectors(path)


def model_stage(
    path: Path, files: Mapping[str, str], index: PositionalIndex | None, *, transfer: bool
) -> tuple[str, Any]:
    """The name of a model's stage, and the stage."""
    model = load_model(path)
    if index is None:
        raise ParameterError("--model needs --index")
    if isinstance(model, LinearModel):
        return "mrf", MRFRanker(model.with_files(files), index, transfer=transfer)
    if files:
        raise ParameterError(f"--file is for a model of features, not for {path}")
    if len(model.weights) == 1:
        return "svmdiv", SVMDiv(model, index, transfer=transfer)
    return "cssvm", CSSVM(model, index, transfer=transfer)


OF_RANKS = {"score", "reciprocal-rank"}
"""Features of documents for which no query's text is needed."""


def needs_queries(name: str, stage: Any) -> bool:
    """Whether a stage looks at the texts of queries."""
    if isinstance(stage, SVMDiv | CSSVM):
        return bool({*stage.model.features.document_features} - OF_RANKS)
    return name in ("mrf", "manifold", "rm3")


def first_rankings(
    shared: Shared, run: Path | None, index: Sequence[Path], topics: Path | None, first: Any
) -> Run | RunFile:
    """The run, or the candidates of a model that was trained without one."""
    if run is not None:
        return shared.open_run(run, topics)
    if topics is not None and isinstance(first, MRFRanker) and first.model.provenance.get("searched"):
        return search_first(index, shared.topics(topics), shared.jobs, stack=True)
    raise ParameterError("give a --run; only an automatic model or a stack, trained without one, can do without")


def check_topics(stage: Any, rankings: Run | RunFile) -> None:
    """Check that a stage's feedback or aspects are of one of the topics."""
    for name in ("feedback", "aspects"):
        by_query = getattr(stage, name, None)
        if by_query is not None and not any(qid in by_query for qid in rankings):
            raise ParameterError(f"{name}: no query in common with the run")


def seen_topics(files: Iterable[Path], rankings: Run | RunFile, fingerprint: str) -> str:
    """The mark of runs whose topics were seen, if a model among the files was trained on some of them or a run has it.

    Topics of another collection, with another fingerprint, may have the same identifiers.
    """
    files, qids, tags = list(files), list(rankings), list[str]()
    for path in filter(is_model_file, files):
        with suppress(ModelError):  # whatever reads the file says it
            model = load_model(path)
            names = [model.provenance.get(key) for key in ("queries", "validation")]  # C was chosen by these
            trained = {qid for qids in names if isinstance(qids, list) for qid in qids if isinstance(qid, str)}
            if model.fingerprint == fingerprint and (seen := sum(qid in trained for qid in qids)):
                tags.append(SEEN)
                _log.warning(
                    f"{seen} of {len(qids)} topics are among those that {path} was trained on: their scores say "
                    "nothing about other topics; for held-out rankings, use greylag train --folds"
                )
    return marked("", *tags, *map(run_tag, files))


def _member_rankings(before: Pipeline[Ranking], ensemble: CSSVM, ranking: Ranking) -> tuple[Ranking, ...]:
    return ensemble.member_rankings(before(ranking) if before.steps else ranking)


def _numbered(path: Path, number: int) -> Path:
    """``div.1.run`` for ``div.run``, ``div.1.run.gz`` for ``div.run.gz``."""
    packed = path.suffix if path.suffix == ".gz" else ""
    plain = Path(path.name.removesuffix(packed))
    return path.parent / f"{plain.stem}.{number}{plain.suffix}{packed}"
