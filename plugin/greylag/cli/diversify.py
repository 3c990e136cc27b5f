"""``greylag diversify``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any

import typer

from greylag.cli.groups import OnlyFor, given
from greylag.cli.options import Index, InputRun, OutputRun, Reading, Tag
from greylag.cli.outputs import check_output
from greylag.cli.running import Resumable
from greylag.cli.training_topics import mark_training_topics, next_tag
from greylag.diversity.model import DiversityModel
from greylag.diversity.registry import DIVERSIFIERS, diversifier
from greylag.diversity.stage import DiversityStage
from greylag.diversity.svmdiv import CSSVM, SVMDiv
from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.pipeline import Stage
from greylag.trec import read_aspects, read_titles, write_members, write_rankings

_LEARNED = ("svmdiv", "cssvm")


def _check_method(method: str) -> str:
    if method not in DIVERSIFIERS:
        raise typer.BadParameter(f"{method!r} is not one of {', '.join(DIVERSIFIERS)}")
    return method


@dataclass(frozen=True)
class MethodOptions:
    """The diversification method and its parameters."""

    method: Annotated[
        str,
        typer.Option(
            "--method", metavar=f"<{'|'.join(DIVERSIFIERS)}>", callback=_check_method, help="Diversification method."
        ),
    ] = "mmr"
    model: Annotated[Path | None, OnlyFor(_LEARNED, "--model", "A model from `greylag train-diversity`.")] = None
    titles: Annotated[
        Path | None, OnlyFor(_LEARNED, "--titles", "Titles: JSON lines with id and title.", metavar="FILE")
    ] = None
    transfer: Annotated[bool, OnlyFor(_LEARNED, "--transfer", "Allow a model trained on another collection.")] = False
    fuse: Annotated[bool, OnlyFor("cssvm", "--fuse", "Fuse the models' rankings into one run.")] = False
    relevance_weight: Annotated[
        float | None,
        OnlyFor(
            ("mmr", "xquad"), "--relevance-weight", "1 for relevance only, 0 for novelty only (default 0.7; xquad 0.5)."
        ),
    ] = None
    aspects: Annotated[
        Path | None, OnlyFor(("xquad", "pm2"), "--aspects", "Aspects: TSV (qid, name, text).", metavar="FILE")
    ] = None
    aspect_weight: Annotated[
        float | None, OnlyFor("pm2", "--aspect-weight", "1 serves one aspect at a time (default 0.5).")
    ] = None
    seed: Annotated[int | None, OnlyFor("random", "--seed", "Seed of the order (default 0).", min=0)] = None
    depth: Annotated[int, typer.Option("--depth", help="Candidates: the top N documents.")] = DiversityStage.depth
    k: Annotated[int, typer.Option("--k", help="Number of candidates to pick.")] = DiversityStage.k

    def stage(self, index: Sequence[Path], *, lenient: bool) -> Stage:
        """The stage."""
        options: dict[str, Any] = given(self, "--method", self.method) | {"depth": self.depth, "k": self.k}
        options.pop("fuse", None)
        stage = diversifier(self.method)
        needed = {field.name for field in fields(stage)}
        if "model" in needed:
            if self.model is None:
                raise ParameterError(f"--method {self.method} needs a --model")
            options["model"] = DiversityModel.load(self.model)
        if self.titles is not None:
            options["titles"] = read_titles(self.titles, lenient=lenient)
        if "aspects" in needed:
            if self.aspects is None:
                raise ParameterError(f"--method {self.method} needs --aspects")
            options["aspects"] = read_aspects(self.aspects)
        if "index" in needed:
            options["index"] = PositionalIndex.from_lucene(index)
        return stage(**options)


def diversify(
    index: Index,
    run: InputRun,
    out: OutputRun,
    method: MethodOptions,
    topics: Annotated[
        Path | None, typer.Option("--topics", help="Topics; needed by models with features of the query.")
    ] = None,
    *,
    reading: Reading,
    running: Resumable,
    tag: Tag = None,
) -> None:
    """Reorder the top of a run so that it covers more.

    An ensemble (--method cssvm) writes one run per model: div.1.run, div.2.run, ... for --out div.run. With --fuse, it
    writes one run, div.run, by reciprocal rank fusion.
    """
    stage = method.stage(index, lenient=reading.lenient)
    rankings = reading.open_run(run, topics)
    ensemble = stage if isinstance(stage, CSSVM) and not method.fuse else None
    paths = [_numbered(out, number) for number in range(1, len(ensemble.model.members) + 1)] if ensemble else []
    for path in paths:
        check_output(path, [file for file in (run, topics, method.model, method.titles) if file is not None])
    made_up = next_tag(rankings.tag, method.method)
    if isinstance(stage, SVMDiv | CSSVM):
        made_up = mark_training_topics(stage.model, rankings, stage.index.fingerprint, made_up)
    tag = tag or made_up
    if ensemble:
        write_members(ensemble.member_rankings, rankings, paths, tag=tag, n_jobs=running.jobs)
        typer.echo(" ".join(map(str, paths)))
    else:
        write_rankings(stage, rankings, out, tag=tag, n_jobs=running.jobs)


def _numbered(path: Path, number: int) -> Path:
    """``div.1.run`` for ``div.run``, ``div.1.run.gz`` for ``div.run.gz``."""
    packed = path.suffix if path.suffix == ".gz" else ""
    plain = Path(path.name.removesuffix(packed))
    return path.parent / f"{plain.stem}.{number}{plain.suffix}{packed}"
