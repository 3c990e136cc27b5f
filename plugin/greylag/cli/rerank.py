"""``greylag rerank``."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import numpy as np
import typer

from greylag.cli.options import INDEX, LETOR, TOPICS, VECTORS, OutputRun, PartText, Rules, Shared, Tag, check_rules
from greylag.cli.running import check_outputs
from greylag.cli.search import search_first
from greylag.cli.terminal import tell
from greylag.errors import FormatError, ModelError, ParameterError
from greylag.features.named_files import STAGE_FILES, is_model_file
from greylag.index.positional import PositionalIndex
from greylag.learning.letor import listed_run, read_features
from greylag.linesearch.data import RankingData
from greylag.model_files import read_content
from greylag.models.fusion_model import FusionModel
from greylag.models.general import GeneralRanker
from greylag.models.model import RankingModel
from greylag.models.rankers import ModelRanker
from greylag.pipeline import Pipeline, Stage
from greylag.ranking import SEEN, Ranking, Run, marked
from greylag.runtime.files import open_atomically
from greylag.runtime.inputs import Names
from greylag.runtime.parallel import parallel_map
from greylag.stages import StageStep, registered_stages
from greylag.tables import visible
from greylag.trec import write_rankings
from greylag.trec.parts import Part
from greylag.trec.runs import JoinedRuns, RunFile, run_tag, write_members
from greylag.vectors.dense import ArrayVectors
from greylag.vectors.vector_files import open_vectors

if TYPE_CHECKING:
    from greylag.diversity.model import DiversityModel
    from greylag.diversity.svmdiv import CSSVM

    Model = RankingModel | DiversityModel | FusionModel
RULES: Rules = {
    "--letor": (
        ("--model",),
        ("--index", "--topics", "--run", "--file", "--transfer", "--vectors", "--members", "--part"),
        "the file has topics, documents and features, for a model of such files",
    ),
}
_log = logging.getLogger("greylag")


def rerank(
    context: typer.Context,
    out: OutputRun,
    index: Annotated[list[Path] | None, INDEX] = None,
    topics: Annotated[Path | None, TOPICS] = None,
    run: Annotated[
        list[Path] | None,
        typer.Option(
            "--run",
            help="TREC run; of a model of `greylag fuse`, each run that it fuses. The general model, and one that was "
            "trained without a run, need none.",
        ),
    ] = None,
    model: Annotated[
        Path | None, typer.Option("--model", help="Rerank by a model from `greylag train`, or fuse by one from `fuse`.")
    ] = None,
    files: Annotated[
        list[str] | None,
        typer.Option(
            "--file", help="Read FILE in place of the file NAME of the model's feature run:NAME.", metavar="NAME=FILE"
        ),
        Names(lambda text: (text.partition("=")[2],)),
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
        STAGE_FILES,
    ] = None,
    vectors: Annotated[Path | None, VECTORS] = None,
    letor: Annotated[
        Path | None,
        typer.Option(
            "--letor", help=f"{LETOR}, to rank by a --model of such a file; for --out FILE.scores, a score a line."
        ),
    ] = None,
    members: Annotated[
        bool, typer.Option("--members", help="Write a run for each member of the ensemble that is the last stage.")
    ] = False,
    part: PartText = None,
    tag: Tag = None,
) -> None:
    """Rerank or diversify a run by a model, or by stages one after another; with neither, by the general model.

    The general model was learned on other collections, so that nothing has to be judged. Without --run, BM25's top 1000
    are searched for it.

    For example: --stage "mrf(model=mrf.json)" --stage "mmr(k=20,relevance_weight=0.7)". The options of a stage are the
    parameters of its class in Python; model, aspects, groups, titles and feedback are files. Stages with
    --vectors need no index; nor do xquad and pm2 with scores of aspects.

    A model that was trained without an index needs none; that of a feature file ranks such files, --letor.

    A model of `greylag train` that was trained without a run, unless it is --model mrf or a baseline, needs none: the
    union of BM25 and BM25+RM3 is searched, as in training.

    With --members, the ensemble's runs are div.1.run, div.2.run, ... for --out div.run. Without, they are fused by
    reciprocal ranks.
    """
    shared: Shared = context.obj
    check_rules(context, RULES)
    asked = Part.parse(part)
    rankings: Run | RunFile | JoinedRuns
    before: list[tuple[str, Path | None]]
    learned = None if model is None else load_model(model)
    listed = None if letor is None or learned is None else read_features(letor, lenient=shared.lenient)
    if letor is not None and listed is not None:
        learned = over_columns(learned, letor, listed)
    fusion = learned if isinstance(learned, FusionModel) else None
    if (model is None or fusion) and (files or transfer):
        raise ParameterError(
            "--file and --transfer go with --model, of features or diversity; a stage takes transfer=true"
        )
    steps = [StageStep.parse(text) for text in stages or ([] if model else ["general"])]
    positions = None if index is None else PositionalIndex.from_lucene(index)
    given = read_files(files or [])
    made = (
        []
        if learned is None or isinstance(learned, FusionModel)
        else [model_stage(learned, given, positions, transfer=transfer)]
    )
    embeddings = open_embeddings(vectors, steps)
    made += [(step.name, step.make(positions, vectors=embeddings)) for step in steps]
    if topics is None and (asking := next((name for name, stage in made if stage.reads_query), None)):
        raise ParameterError(f"give --topics: {asking} needs the queries' texts")
    if letor is not None and listed is not None:
        in_order = listed_run(listed, letor.name.split(".")[0] or "letor")
        if out.suffix == ".scores":
            write_scores(made, in_order, out, shared)
            return
        rankings, before = in_order, [(in_order.tag, None)]
    else:
        rankings, before = first_rankings(shared, run or (), index or (), topics, fusion or made[0][1], asked)
    for _, stage in made:
        stage.check_topics(rankings)
    names = [*(["fused"] if fusion else [rankings.tag]), *(name for name, _ in made)]
    tag = visible("-".join(names)) if tag is None else tag
    used = [path for path in shared.inputs if str(path) not in given]
    fingerprint = "" if positions is None else positions.fingerprint
    tag, last = marked(tag, seen_topics(used, rankings, fingerprint)), (made[-1][1] if made else fusion)
    methods = [*([] if model is None else [str(model)]), *map(str, steps)]
    step = {"name": tag, "method": " ".join(methods), "reranks": ", ".join(name for name, _ in before)}
    metadata = shared.metadata(step, before=before)
    stages_made: list[Callable[[Any], Ranking]] = [*([fusion] if fusion else []), *(stage for _, stage in made)]
    stages_before: Pipeline[Any] = Pipeline(tuple(stages_made[:-1] if members else stages_made))
    if not members:
        write_rankings(stages_before, rankings, out, tag=tag, n_jobs=shared.jobs, metadata=metadata, part=asked)
        return
    from greylag.diversity.svmdiv import CSSVM

    if not isinstance(last, CSSVM):
        raise ParameterError(f"--members is for an ensemble, cssvm, as the last stage, not for {names[-1]}")
    paths = [_numbered(out, number) for number in range(1, len(last.model.weights) + 1)]
    check_outputs(paths, shared.inputs)
    ranked = partial(_member_rankings, stages_before, last)
    write_members(ranked, rankings, paths, tag=tag, n_jobs=shared.jobs, metadata=metadata, part=asked)
    tell(" ".join(map(str, paths)))


def over_columns(model: Model | None, path: Path, data: RankingData) -> RankingModel:
    """The model of a feature file's columns with the values of another."""
    if not isinstance(model, RankingModel) or not model.columns:
        raise ParameterError("--letor needs a model of the columns of such a file: train one by greylag train --letor")
    try:
        return model.with_columns(data)
    except ModelError as error:
        raise FormatError(path, None, str(error)) from None


def write_scores(made: Sequence[tuple[str, Stage]], run: Run, out: Path, shared: Shared) -> None:
    """Write the scores of a model alone, one a line, in the order of the run."""
    (_, ranker), *others = made
    if others or not isinstance(ranker, ModelRanker):
        raise ParameterError(f"{out} has a score a line, which is that of the --model: leave --stage out")
    seen_topics(shared.inputs, run, "")
    with open_atomically(out) as file:
        for scores in parallel_map(ranker.scores, run.rankings, what="scores", n_jobs=shared.jobs, total=len(run)):
            file.writelines(f"{score!r}\n" for score in scores.tolist())


def load_model(path: Path) -> Model:
    """A model of any kind."""
    content = read_content(path)  # once: it may be a pipe
    kinds: list[type[RankingModel | FusionModel]] = [RankingModel, FusionModel]
    for kind in kinds:
        if content.get("kind") == kind.kind:
            return kind.of_content(path, content)
    from greylag.diversity.model import DiversityModel  # imports SciPy, which the other kinds do not need

    if content.get("kind") == DiversityModel.kind:
        return DiversityModel.of_content(path, content)
    raise ModelError(f"{path}: not a model of greylag: give a file that `greylag train` wrote")


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
    model: RankingModel | DiversityModel, files: Mapping[str, str], index: PositionalIndex | None, *, transfer: bool
) -> tuple[str, Stage]:
    """The name of a model's stage, and the stage."""
    if isinstance(model, RankingModel):
        for column in model.columns:
            column.bind(index, {})  # refuses a column without values before anything is ranked
        return "mrf", ModelRanker(model.with_files(files), index, transfer=transfer)
    if index is None:
        raise ParameterError("--model needs --index")
    from greylag.diversity.svmdiv import CSSVM, SVMDiv

    if files:
        raise ParameterError("--file is for a model of features, not for one that diversifies")
    if len(model.weights) == 1:
        return "svmdiv", SVMDiv(model, index, transfer=transfer)
    return "cssvm", CSSVM(model, index, transfer=transfer)


def first_rankings(
    shared: Shared,
    runs: Sequence[Path],
    index: Sequence[Path],
    topics: Path | None,
    first: Stage | FusionModel,
    part: Part,
) -> tuple[Run | RunFile | JoinedRuns, list[tuple[str, Path | None]]]:
    """The run, those that a model fuses, or the candidates of a model that needs none; and their tags.

    Candidates are searched for the part's topics alone.
    """
    opened = [shared.open_run(path, topics) for path in runs]
    before: list[tuple[str, Path | None]] = [(run.tag, path) for run, path in zip(opened, runs, strict=True)]
    if isinstance(first, FusionModel):
        return JoinedRuns(tuple(fused_runs(first, runs, opened))), before
    if len(runs) > 1:
        raise ParameterError(
            f"{len(runs)} runs cannot be reranked at once: several --run are for a model of greylag fuse"
        )
    if runs:
        return opened[0], before
    trained = isinstance(first, ModelRanker) and first.model.provenance.get("searched")
    if topics is not None and (trained or isinstance(first, GeneralRanker)):
        texts = shared.topics(topics)
        searched = search_first(index, dict(part.among(texts.items(), texts)), shared.jobs, stack=bool(trained))
        others = (Ranking(qid, text, (), np.empty(0)) for qid, text in texts.items())
        rankings = tuple(searched.get(ranking.qid, ranking) for ranking in others)
        return Run(rankings, searched.tag), [(searched.tag, None)]
    raise ParameterError("give a --run; only the general model, and one trained without a run, can do without")


def fused_runs(model: FusionModel, paths: Sequence[Path], runs: Sequence[Run | RunFile]) -> list[Run | RunFile]:
    """The runs in the order of the model's: by tag or name of file, and the others in the order that they are given in.

    A warning says which run is taken for which, if its name does not.
    """
    if len(runs) != len(model.runs):
        raise ParameterError(f"the model fuses {len(model.runs)} runs, {', '.join(model.runs)}: give --run for each")
    left, placed = dict(zip(paths, runs, strict=True)), dict[str, Path]()
    for path, run in zip(paths, runs, strict=True):
        name = next((name for name in (run.tag.removesuffix(SEEN), path.name) if name in model.runs), None)
        if name is not None:
            if name in placed:
                raise ParameterError(f"{placed[name]} and {path} are both {name}: give each run of the model once")
            placed[name] = path
    others = [path for path in paths if path not in placed.values()]
    unknown = dict(zip([name for name in model.runs if name not in placed], others, strict=True))
    if unknown:
        taken = ", ".join(f"{path} as {name}" for name, path in unknown.items())
        _log.warning(f"names of runs are not those of the model, so that their order counts: {taken}")
    return [left[(placed | unknown)[name]] for name in model.runs]


def seen_topics(files: Iterable[Path], rankings: Iterable[str], fingerprint: str) -> str:
    """The mark of runs whose topics were seen, if a model among the files was trained on some of them or a run has it.

    Topics of another collection, with another fingerprint, may have the same identifiers.
    """
    files, qids, tags = list(files), list(rankings), list[str]()
    for path in filter(is_model_file, files):
        with suppress(ModelError):  # whatever reads the file says it
            model = load_model(path)
            names = [model.provenance.get(key) for key in ("queries", "validation")]  # C was chosen by these
            trained = {qid for qids in names if isinstance(qids, list) for qid in qids if isinstance(qid, str)}
            if model.fingerprint in ("", fingerprint) and (seen := sum(qid in trained for qid in qids)):
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
