"""SVM-div on a test collection, each query tested once (Yue & Joachims 2008, section 7).

Twice: with the documents that cover a subtopic as the only candidates, as in the paper, and with all candidates.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field

from greylag.diversity import C_GRID, CoverageModel, fit_grid, mean_loss, read_titles
from greylag.evaluation import Significance, to_dict
from greylag.experiments import config
from greylag.experiments.collection import open_collection
from greylag.experiments.report import (
    Figure,
    Section,
    as_text,
    check_dependencies,
    line_figure,
    provenance,
    write_report,
    write_results,
)
from greylag.experiments.study import Result, Say
from greylag.index import PositionalIndex
from greylag.ranking import Ranking, run_step
from greylag.trec import read_run, read_subtopic_qrels, read_topics
from greylag_papers.yue_joachims_2008.comparison import LEARNER, LossTable, StudyQuery, index_queries, rotations, study
from greylag_papers.yue_joachims_2008.tables import (
    BOUND,
    LOSS,
    METHODS,
    compare_losses,
    comparison_table,
    loss_scores,
    loss_table,
)

Space = Literal["svmdiv", "svmdiv2"]
LISTS = {"relevant": True, "all": False}  # by whether only documents that cover a subtopic are candidates
_LOSSES = """\
The loss is the weight of the subtopics that the picked documents do not cover, each subtopic weighing as many documents
as cover it. Every query is tested once, by a model trained on other queries, with C chosen by again others.

"relevant": candidates are the documents that cover a subtopic. "all": they are the whole list. "random" is the mean
over 20 orders, "known-subtopics" the greedy choice by the truth."""
_TESTS = """\
Queries on which the learned model loses less, as much and more than each other method; Wilcoxon's signed-rank test,
two-sided, before and after Holm's correction over the table."""
_COST = """\
"training": trained on all queries and scored on the same ones, which shows how far the features can follow the truth.
"test": scored on queries that were not trained on, with one C for all rotations."""


class CandidateFiles(config.Experiment):
    """A collection with candidates and subtopics.

    Parameters
    ----------
    docs : JSON lines with id, title and contents.
    topics, subtopic_qrels : as elsewhere.
    run : the candidates; BM25's where it is not given.
    depth : candidates are the first so many documents.
    """

    docs: str
    topics: str
    subtopic_qrels: str
    run: str | None = None
    depth: config.Positive = 100


class Settings(CandidateFiles):
    """How the collection is learned from.

    Parameters
    ----------
    k : how many of the candidates are picked.
    spaces : SVM-div's feature spaces; figures show the first.
    grid : values of C.
    n_training, n_validation : queries to train on, and to choose C by.
    training_sizes : numbers of training queries that are compared.
    """

    k: config.Positive = 5
    spaces: Annotated[tuple[Space, ...], Field(min_length=1)] = ("svmdiv", "svmdiv2")
    grid: Annotated[tuple[float, ...], Field(min_length=1)] = C_GRID
    n_training: config.Positive = 12
    n_validation: config.Positive = 4
    training_sizes: Annotated[tuple[config.Positive, ...], Field(min_length=1)] = (1, 2, 4, 8, 12)


@dataclass(frozen=True)
class Findings:
    """What was found with one list of candidates.

    Parameters
    ----------
    table : all losses of the rotated study.
    tests : each feature space against all other methods.
    by_size : the first space's mean test loss by number of training queries.
    fitted : its mean loss by C on all queries, trained on the same ones.
    """

    table: LossTable
    tests: tuple[Significance, ...]
    by_size: Mapping[int, float]
    fitted: Mapping[float, float]


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json`` and ``report.html`` to `out`."""
    check_dependencies()
    index, rankings = read_candidates(settings, out, n_jobs, say)
    qrels = read_subtopic_qrels(settings.path(settings.subtopic_qrels))
    titles = read_titles(settings.path(settings.docs))
    found = {}
    for name, relevant_only in LISTS.items():
        queries = index_queries(index, rankings, qrels, titles=titles, relevant_only=relevant_only)
        say(f"{name}: {len(queries)} queries, {sum(len(query.relevance) for query in queries)} candidates")
        found[name] = find(queries, settings, n_jobs)
    return write(settings, found, index.fingerprint, out)


def read_candidates(
    settings: CandidateFiles, out: Path, n_jobs: int, say: Say
) -> tuple[PositionalIndex, list[Ranking]]:
    """The index, and the first documents of the run or of BM25."""
    topics = read_topics(settings.path(settings.topics))
    lucene = open_collection(settings.path(settings.docs), "JsonCollection", out / "index", say)
    if settings.run is None:
        ranked = run_step(lucene.bm25(settings.depth), topics, n_jobs=n_jobs, tag="bm25")
    else:
        ranked = read_run(settings.path(settings.run), topics)
    return PositionalIndex.from_lucene(lucene), [ranking.head(settings.depth) for ranking in ranked.rankings]


def find(queries: Sequence[StudyQuery], settings: Settings, n_jobs: int) -> Findings:
    """All that the study asks of one list of candidates."""
    k, first, methods = settings.k, settings.spaces[0], (*METHODS, *settings.spaces)

    def losses(n_training: int, spaces: Sequence[str]) -> LossTable:
        splits = rotations(queries, n_training, settings.n_validation)
        return study(splits, [k], spaces=spaces, grid=settings.grid, n_jobs=n_jobs)

    table = losses(settings.n_training, settings.spaces)
    model, examples = CoverageModel(k), [(query.candidates[first], query.truth) for query in queries]
    solutions = fit_grid(model, examples, LEARNER, settings.grid)
    return Findings(
        table,
        tests=tuple(compare_losses(table, k, space, methods) for space in settings.spaces),
        by_size={n: losses(n, [first]).mean(first, k) for n in settings.training_sizes},
        fitted={C: mean_loss(model, examples, solution.weights) for C, solution in solutions.items()},
    )


def write(settings: Settings, found: Mapping[str, Findings], fingerprint: str, out: Path) -> Result:
    """Write the study's files, and summarise it."""
    k, methods = settings.k, (*METHODS, *settings.spaces)
    content = {
        name: {
            **to_dict(loss_scores(part.table, k, methods)),
            "tests": [to_dict({}, test)["significance"] for test in part.tests],
            "loss by training queries": part.by_size,
            "training loss by C": part.fitted,
            "test loss by C": {C: part.table.mean(settings.spaces[0], k, C) for C in settings.grid},
        }
        for name, part in found.items()
    }
    more = {"fingerprint": fingerprint}
    write_results(out, {**provenance(settings, **more), **content})
    means = loss_table({name: part.table for name, part in found.items()}, k, methods)
    tests = [
        comparison_table(f"{test.baseline} on {name} candidates", test)
        for name, part in found.items()
        for test in part.tests
    ]
    sections = [
        Section("Losses", _LOSSES, [means]),
        Section("Wins, ties and losses", _TESTS, tests),
        Section("Number of training queries", parts=[size_figure(found, settings)]),
        Section("C", _COST, [cost_figure(found, settings)]),
    ]
    write_report(out / "report.html", f"SVM-div: {settings.name}", sections, provenance(settings, **more))
    scores = {method: {name: part.table.mean(method, k) for name, part in found.items()} for method in methods}
    summary = "\n".join(as_text(table) for table in (means, *tests))
    return Result(scores, f"{summary}\nThe report is {out / 'report.html'}\n")


def size_figure(found: Mapping[str, Findings], settings: Settings) -> Figure:
    """The loss by number of training queries (their Figure 2)."""
    first: str = settings.spaces[0]
    panels = {
        name: (
            {first: {float(n): loss for n, loss in part.by_size.items()}},
            {method: part.table.mean(method, settings.k) for method in ("random", "essential-pages", BOUND)},
        )
        for name, part in found.items()
    }
    return line_figure("Test loss by number of training queries", "training queries", LOSS, panels)


def cost_figure(found: Mapping[str, Findings], settings: Settings) -> Figure:
    """The loss by C, with that of the greedy that knows the subtopics (their Figure 3)."""
    panels = {
        name: (
            {
                "training": part.fitted,
                "test": {C: part.table.mean(settings.spaces[0], settings.k, C) for C in sorted(settings.grid)},
            },
            {BOUND: part.table.mean(BOUND, settings.k)},
        )
        for name, part in found.items()
    }
    return line_figure(f"Loss of {settings.spaces[0]} by C", "C", LOSS, panels, log=True)
