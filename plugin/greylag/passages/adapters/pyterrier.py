"""PyTerrier: greylag's sources and stages as transformers, and transformers as steps of greylag's pipelines.

Transformers of data frames need no JVM, and greylag's own JVM is not shared with PyTerrier's.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from greylag.base import (
    ParameterError,
    Pipeline,
    Query,
    Ranking,
    Run,
    Source,
    Stage,
    as_run,
    as_topics,
    imported,
    run_step,
    shown,
)
from greylag.evaluation import strictly_decreasing
from greylag.passages.adapters.frames import run_to_frame, topics_to_frame


def to_pyterrier(step: Callable[[Any], Ranking], *, n_jobs: int | None = None) -> Any:
    """Return a ``pyterrier.Transformer`` that applies a source, a stage or a pipeline.

    A source takes frames with the columns qid and query. A stage takes frames with qid, query, docno and score, keeps
    other columns, and fails where PyTerrier inspects a pipeline in which they are missing. Ranks are from 0. Scores
    decrease strictly in float32, as in the files of `write_run`, since PyTerrier's evaluation orders ties by itself.

    Parameters
    ----------
    step : Source, Stage, Pipeline, or function from Ranking to Ranking
    n_jobs : int, optional
        Number of workers; the results do not depend on it.
    """
    if not callable(step):
        raise ParameterError(f"{shown(step)} is not a step: pass a source, a stage or a pipeline")
    pt = imported("pyterrier", "python-terrier")
    first = step.steps[0] if isinstance(step, Pipeline) else step
    retrieves = isinstance(first, Source)

    class GreylagTransformer(pt.Transformer):  # type: ignore[misc, name-defined, unused-ignore]
        """A step of greylag."""

        def __repr__(self) -> str:
            return f"greylag({type(step).__name__})"

        def transform(self, inp: Any) -> Any:
            """Apply the step to every query of a frame."""
            if retrieves:
                pt.validate.query_frame(inp, extra_columns=["query"])
            else:
                pt.validate.result_frame(inp, extra_columns=["query", "score"])
            inputs: Any = (as_topics if retrieves else as_run)(inp)
            # PyTerrier inspects transformers by frames without rows.
            run = run_step(step, inputs, n_jobs=n_jobs) if len(inp) else Run(())
            if retrieves:
                return _with_other_columns(run, inp.drop_duplicates("qid"), ["qid", "query"])
            return _with_other_columns(run, inp, ["qid", "query", "docno"])

    return GreylagTransformer()


def from_pyterrier(transformer: Any) -> PyTerrierSource | PyTerrierStage:
    """Wrap a PyTerrier transformer as a step: a source if it gives documents for queries, else a stage."""
    pt = imported("pyterrier", "python-terrier")
    if not isinstance(transformer, pt.Transformer):
        raise ParameterError(f"{shown(transformer)} is not a PyTerrier transformer")
    if _gives_documents(pt, transformer, ["qid", "query"]):
        return PyTerrierSource(transformer)
    if _gives_documents(pt, transformer, ["qid", "query", "docno", "score", "rank"]):
        return PyTerrierStage(transformer)
    raise ParameterError(
        f"PyTerrier cannot tell what {transformer!r} takes: wrap it in PyTerrierSource(...) or PyTerrierStage(...)"
    )


def _gives_documents(pt: Any, transformer: Any, columns: list[str]) -> bool:
    # Without `strict`, None tells that PyTerrier does not know; it would raise.
    outputs = pt.inspect.transformer_outputs(transformer, columns, strict=False)
    return outputs is not None and {"qid", "docno", "score"} <= set(outputs)


@dataclass(frozen=True)
class PyTerrierSource(Source):
    """A transformer of PyTerrier that retrieves, as a source.

    Parameters
    ----------
    transformer : pyterrier.Transformer
        From frames with qid and query to frames with qid, docno and score.
    """

    transformer: Any

    def __call__(self, query: Query, /) -> Ranking:
        """Retrieve for one query."""
        return _query_ranking(self.transformer(topics_to_frame({query.qid: query.text})), query.qid, query.text)


@dataclass(frozen=True)
class PyTerrierStage(Stage):
    """A transformer of PyTerrier that reranks, as a stage.

    Parameters
    ----------
    transformer : pyterrier.Transformer
        From frames with qid, query, docno, score and rank to frames with qid, docno and score.
    """

    transformer: Any

    def __call__(self, ranking: Ranking) -> Ranking:
        """Rerank the documents of one query."""
        if not len(ranking):
            return ranking
        return _query_ranking(self.transformer(run_to_frame([ranking])), ranking.qid, ranking.query)


def _with_other_columns(run: Run, frame: Any, keys: list[str]) -> Any:
    """Return the run as a frame, with the other columns of the frame that it was made from."""
    made = run_to_frame(
        Ranking(r.qid, r.query, r.docids, strictly_decreasing(r.scores).astype(np.float64)) for r in run.rankings
    )
    more = [column for column in frame.columns if column not in {*keys, "score", "rank", *made.columns}]
    if not more:
        return made
    # One row for each key: a query's columns for a source, a document's for a stage.
    other = frame[[*keys, *more]].copy()
    for key in keys:  # identifiers may be integers there, and are strings in the run
        other[key] = other[key].astype(str).astype(object)
    return made.merge(other, on=keys, how="left", sort=False)


def _query_ranking(frame: Any, qid: str, query: str) -> Ranking:
    run = as_run(frame, {qid: query}) if len(frame) else Run(())
    return run.get(qid) or Ranking(qid, query, (), np.empty(0))
