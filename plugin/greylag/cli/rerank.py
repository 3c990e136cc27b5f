"""``greylag rerank``."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

import typer

from greylag.cli.groups import OnlyFor, given
from greylag.cli.options import Index, InputRun, OutputRun, Reading, Tag, Topics, check_features
from greylag.cli.running import Resumable
from greylag.cli.training_topics import mark_training_topics, next_tag
from greylag.errors import ParameterError
from greylag.index.positional import PositionalIndex
from greylag.ltr.linear import LinearModel
from greylag.ltr.rankers import MRFRanker
from greylag.manifold.graph import Graph
from greylag.manifold.stage import Confidence, ManifoldRanker
from greylag.ranking import Run, Stage
from greylag.trec import RunFile, write_rankings


@dataclass(frozen=True)
class MethodOptions:
    """The reranking method and its parameters."""

    method: Annotated[
        Literal["mrf", "manifold"], typer.Option("--method", help="Rerank with a learned model or by manifold ranking.")
    ] = "mrf"
    model: Annotated[Path | None, OnlyFor("mrf", "--model", "A model from `greylag train`.")] = None
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

    def stage(self, index: Path, run: Run | RunFile, reading: Reading) -> Stage:
        """The stage that reranks `run`."""
        options = given(self, "--method", self.method)
        if self.method == "mrf":
            if self.model is None:
                raise ParameterError("--method mrf needs a --model")
            return MRFRanker(LinearModel.load(self.model), PositionalIndex.from_lucene(index), transfer=self.transfer)
        if self.feedback is not None:
            options["feedback"] = reading.qrels(self.feedback, run)
        return ManifoldRanker(PositionalIndex.from_lucene(index), **options)


def rerank(
    index: Index,
    topics: Topics,
    run: InputRun,
    out: OutputRun,
    method: MethodOptions,
    reading: Reading,
    running: Resumable,
    tag: Tag = None,
) -> None:
    """Rerank a run with a learned model or by manifold ranking."""
    rankings = reading.open_run(run, topics)
    stage = method.stage(index, rankings, reading)
    made_up = next_tag(rankings.tag, method.method)
    if isinstance(stage, MRFRanker):
        check_features(out, stage.model.features)
        made_up = mark_training_topics(stage.model, rankings, stage.index.fingerprint, made_up)
    write_rankings(stage, rankings, out, tag=tag or made_up, n_jobs=running.jobs)
