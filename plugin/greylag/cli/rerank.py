"""``greylag rerank``."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from greylag.cli.first_stage import search_first
from greylag.cli.groups import OnlyFor, given
from greylag.cli.options import Index, OutputRun, Reading, Tag, Topics, check_features
from greylag.cli.running import Resumable
from greylag.cli.training_topics import mark_training_topics, next_tag
from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.ltr.linear import LinearModel
from greylag.ltr.rankers import MRFRanker
from greylag.manifold import Confidence, Graph
from greylag.pipeline import Stage
from greylag.ranking import Run
from greylag.trec import RunFile, write_rankings


@dataclass(frozen=True)
class MethodOptions:
    """The reranking method and its parameters."""

    method: Annotated[
        Literal["mrf", "manifold"], typer.Option("--method", help="Rerank with a learned model or by manifold ranking.")
    ] = "mrf"
    model: Annotated[Path | None, OnlyFor("mrf", "--model", "A model from `greylag train`.")] = None
    file: Annotated[
        list[str] | None,
        OnlyFor(
            "mrf", "--file", "Read FILE in place of the file NAME of a feature such as run:NAME.", metavar="NAME=FILE"
        ),
    ] = None
    transfer: Annotated[bool, OnlyFor("mrf", "--transfer", "Allow a model trained on another collection.")] = False
    depth: Annotated[int | None, OnlyFor("manifold", "--depth", "Rerank the top N documents (default 100).")] = None
    alpha: Annotated[float | None, OnlyFor("manifold", "--alpha", "How far scores spread (default 0.6).")] = None
    graph: Annotated[Graph | None, OnlyFor("manifold", "--graph", "Graph of the documents (default knn).")] = None
    neighbours: Annotated[
        int | None, OnlyFor("manifold", "--neighbours", "Neighbours in a kNN graph (default 10).")
    ] = None
    confidence: Annotated[
        Confidence | None,
        OnlyFor("manifold", "--confidence", "Start from the query, or also from the scores (the default)."),
    ] = None
    feedback: Annotated[
        Path | None, OnlyFor("manifold", "--feedback", "Start from judged documents, too.", metavar="QRELS")
    ] = None

    def load(self) -> LinearModel | None:
        """The model, with the files that were given; None for manifold ranking."""
        given(self, "--method", self.method)
        if self.method == "manifold":
            return None
        if self.model is None:
            raise ParameterError("--method mrf needs a --model")
        files: dict[str, str] = {}
        for name, _, file in (text.partition("=") for text in self.file or []):
            if not name or not file:
                raise ParameterError(f"--file {name} is not of the form NAME=FILE")
            if name in files:
                raise ParameterError(f"--file {name} is given twice: {files[name]} and {file}")
            files[name] = file
        return LinearModel.load(self.model).with_files(files)

    def stage(self, index: Sequence[Path], model: LinearModel | None, run: Run | RunFile, reading: Reading) -> Stage:
        """The stage that reranks `run`."""
        options = given(self, "--method", self.method)
        if model is not None:
            return MRFRanker(model, PositionalIndex.from_lucene(index), transfer=self.transfer)
        from greylag.manifold.stage import ManifoldRanker

        if self.feedback is not None:
            options["feedback"] = reading.qrels(self.feedback, run)
        return ManifoldRanker(PositionalIndex.from_lucene(index), **options)


def rerank(
    index: Index,
    topics: Topics,
    out: OutputRun,
    method: MethodOptions,
    reading: Reading,
    running: Resumable,
    run: Annotated[
        Path | None,
        typer.Option("--run", help="TREC run. A model trained with --preset stack needs none."),
    ] = None,
    tag: Tag = None,
) -> None:
    """Rerank a run with a learned model or by manifold ranking.

    A model of `greylag train --preset stack` that was trained without a run needs none: the union of BM25 and BM25+RM3
    is searched, as in training.
    """
    model = method.load()
    rankings: Run | RunFile
    if run is not None:
        rankings = reading.open_run(run, topics)
    elif model is not None and model.provenance.get("searched"):
        rankings = search_first(index, reading.topics(topics), running.jobs, stack=True)
    else:
        raise ParameterError("give a --run; only a model of train --preset stack, trained without one, can do without")
    stage = method.stage(index, model, rankings, reading)
    made_up = next_tag(rankings.tag, method.method)
    if isinstance(stage, MRFRanker):
        check_features(out, stage.model.features)
        made_up = mark_training_topics(stage.model, rankings, stage.index.fingerprint, made_up)
    write_rankings(stage, rankings, out, tag=tag or made_up, n_jobs=running.jobs)
