"""SVM-div on a test collection, each query tested once (Yue & Joachims 2008, section 7).

There are two kinds of candidates: only the documents that cover a subtopic, as in the paper, and all retrieved ones.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, Literal, get_args

import numpy as np
from pydantic import Field

from greylag.evaluation import Figure, Section, Significance, line_figure, to_dict
from greylag.recipes import C_GRID
from greylag.studies import Context, Outcome, Positive, Study, comparison_table, means_table
from greylag_papers.contrasts import contrasts
from greylag_papers.texts import read_texts
from greylag_papers.yue_joachims_2008.comparison import (
    LOSS,
    METHODS,
    OKAPI,
    ORACLE,
    LossTable,
    constraint_bound,
    measure_losses,
    training_losses,
)
from greylag_papers.yue_joachims_2008.queries import (
    CandidateLists,
    CandidateSettings,
    StudyQuery,
    open_candidates,
    rotations,
)

Space = Literal["svmdiv", "svmdiv2", "svmdiv-all-levels"]
COMPARED = (*METHODS, OKAPI)
RELEVANT_ONLY = {"relevant": True, "all": False}
_TEXTS = read_texts(__file__)


class Settings(CandidateSettings):
    """The study of a test collection."""

    k: Positive = 5
    """Number of documents picked."""
    spaces: Annotated[tuple[Space, ...], Field(min_length=1)] = get_args(Space)
    """Feature spaces of SVM-div. Figures show the first."""
    grid: Annotated[tuple[float, ...], Field(min_length=1)] = C_GRID
    """Values of C."""
    n_training: Positive = 12
    """Number of queries to train on."""
    n_validation: Positive = 4
    """Number of queries to choose C on."""
    n_splits: Positive | None = None
    """Number of splits; each tests a block of queries, see `rotations`."""
    n_orders: Positive = 1
    """Orders of the queries, each with splits of its own: that of the file, and random orders. Several show how far
    the comparisons on the relevant candidates depend on the splits."""
    training_sizes: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1, 2, 4, 8, 12)
    """Numbers of training queries that are compared."""


@dataclass(frozen=True)
class Findings:
    """The losses with one kind of candidates."""

    table: LossTable  # all losses
    orders: tuple[LossTable, ...]  # all losses with the queries in other orders
    tests: tuple[Significance, ...]  # for each feature space, all other methods compared with it
    sizes: Mapping[int, LossTable]  # losses in the first feature space by number of training queries
    # on the first training queries, at the largest C: training losses by feature space and kind of constraints
    trained: Mapping[str, Mapping[str, float]]
    fitted: Mapping[float, Mapping[str, float]]  # `LossTable.fitted` in the first feature space by C
    tested: Mapping[float, float]  # mean test loss in the first feature space by C
    bound: Mapping[str, float]  # `constraint_bound` on the first training queries, as for `trained`


def run(settings: Settings, opened: CandidateLists, context: Context) -> Outcome:
    """Compare SVM-div with its baselines on both kinds of candidates."""
    findings = {}
    for name, relevant_only in RELEVANT_ONLY.items():
        queries = opened.queries(relevant_only=relevant_only)
        n_candidates = sum(len(query.relevance) for query in queries)
        context.progress(f"{name}: {len(queries)} queries, {n_candidates} candidates")
        findings[name] = find(queries, settings, context.n_jobs, settings.n_orders if relevant_only else 1)
    k, methods = settings.k, (*COMPARED, *settings.spaces)
    scores = {method: {name: part.table.mean(method, k) for name, part in findings.items()} for method in methods}
    claimed = {row: values for name, part in findings.items() for row, values in claims(part, settings, name).items()}
    means = means_table(f"Mean weighted subtopic loss, {k} documents picked", scores)
    tests = [comparison_table(f"Comparison on {name} candidates", *part.tests) for name, part in findings.items()]
    return Outcome(
        scores=scores | claimed,
        results={name: results(part, settings) for name, part in findings.items()},
        tables=[means, *tests],
        title=f"SVM-div: {settings.name}",
        sections=[
            Section("Losses", _TEXTS["collection: losses"], [means]),
            Section("Comparisons", _TEXTS["collection: tests"], tests),
            Section("Number of training queries", parts=[size_figure(findings, settings)]),
            Section("C", _TEXTS["collection: cost"], [cost_figure(findings, settings)]),
        ],
        provenance={"fingerprint": opened.index.fingerprint},
    )


def find(queries: Sequence[StudyQuery], settings: Settings, n_jobs: int | None, n_orders: int) -> Findings:
    """Take all measurements on one kind of candidates."""
    k, first = settings.k, settings.spaces[0]

    def losses(n_training: int, spaces: Sequence[str], ordered: Sequence[StudyQuery] = queries) -> LossTable:
        splits = rotations(ordered, n_training, settings.n_validation, settings.n_splits)
        return measure_losses(splits, [k], spaces=spaces, grid=settings.grid, n_jobs=n_jobs)

    # The main size is measured once, in all spaces; other sizes in the first space alone.
    table = losses(settings.n_training, settings.spaces)
    sizes = {n: table if n == settings.n_training else losses(n, [first]) for n in settings.training_sizes}
    orders = [np.random.default_rng(seed).permutation(len(queries)) for seed in range(1, n_orders)]
    return Findings(
        table,
        orders=tuple(
            losses(settings.n_training, settings.spaces, [queries[i] for i in order.tolist()]) for order in orders
        ),
        tests=tuple(table.compare(space, (*COMPARED, *settings.spaces), k) for space in settings.spaces),
        sizes=sizes,
        trained=training_losses(queries[: settings.n_training], k, max(settings.grid), settings.spaces, n_jobs),
        fitted={C: table.fitted(first, k, C) for C in sorted(settings.grid)},
        tested={C: table.mean(first, k, C) for C in sorted(settings.grid)},
        bound=constraint_bound(queries[: settings.n_training], k, max(settings.grid), first),
    )


def comparisons(table: LossTable, settings: Settings, where: str) -> dict[str, dict[str, float]]:
    """Return `contrasts` of the feature spaces with baselines and with each other."""
    losses = {method: [*table.losses(method, settings.k).values()] for method in (*COMPARED, *settings.spaces)}
    baselines = ("random", OKAPI, "essential-pages", "coverage", "mmr")
    families: list[list[tuple[str, str]]] = [[(space, other) for other in baselines] for space in settings.spaces]
    # Holm's correction is over a family: each space against the baselines, and the two spaces.
    families += [[("svmdiv2", "svmdiv")]] if {"svmdiv", "svmdiv2"} <= {*settings.spaces} else []
    rows: dict[str, dict[str, float]] = {}
    for family in families:
        rows |= contrasts(losses, family, test="wilcoxon", where=f", {where}")
    return rows


def ranges(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """Return the range of the difference and of p over orders of the queries, if there is more than one order."""
    values = {"difference": [row["mean"] - row["against"] for row in rows], "p": [row["p"] for row in rows]}
    ends = {"least": min, "most": max} if len(rows) > 1 else {}
    return {f"{end} {name}": extreme(numbers) for name, numbers in values.items() for end, extreme in ends.items()}


def claims(findings: Findings, settings: Settings, where: str) -> dict[str, dict[str, float]]:
    """Return rows that judge the paper's claims: contrasts, and the trainings of the first feature space."""
    k, first, table = settings.k, settings.spaces[0], findings.table
    by_order = [comparisons(losses_of_order, settings, where) for losses_of_order in (table, *findings.orders)]
    rows = {name: row | ranges([other[name] for other in by_order]) for name, row in by_order[0].items()}
    losses = {method: [*table.losses(method, k).values()] for method in COMPARED}
    for other in ("essential-pages", "coverage", OKAPI):
        rows |= contrasts(losses, [(other, "random")], test="wilcoxon", where=f", {where}")
    size_losses = {f"{n} queries": [*part.losses(first, k).values()] for n, part in findings.sizes.items()}
    most, *fewer = [f"{n} queries" for n in sorted(findings.sizes, reverse=True)]
    rows |= contrasts(size_losses, [(most, other) for other in fewer], test="wilcoxon", where=f", {where}")
    fits = findings.fitted.values()
    known = next(iter(fits))["greedy"]
    trained = {
        f"{space}, {kind}": loss for space, by_kind in findings.trained.items() for kind, loss in by_kind.items()
    }
    passes = {n: [fit.iterations for fit in part.fits if fit.method == first] for n, part in findings.sizes.items()}
    return rows | {
        f"training loss, {where}": {f"C = {C:g}": fit["loss"] for C, fit in findings.fitted.items()}
        | {"known-subtopics": known}
        | trained,
        f"test loss, {where}": {f"C = {C:g}": loss for C, loss in findings.tested.items()},
        f"passes, {where}": {
            "least": min(fit["iterations"] for fit in fits),
            "most": max(fit["iterations"] for fit in fits),
        }
        | {f"mean, {n} queries": float(np.mean(counts)) for n, counts in passes.items()},
        f"theorem 1, {where}": {**findings.bound},
    }


def results(findings: Findings, settings: Settings) -> dict[str, Any]:
    """Return all losses and comparisons, JSON-serialisable."""
    return {
        **to_dict(findings.table.scores((*COMPARED, *settings.spaces), settings.k)),
        "tests": [to_dict({}, test)["significance"] for test in findings.tests],
        "loss by training queries": by_size(findings, settings),
    }


def by_size(findings: Findings, settings: Settings) -> dict[int, float]:
    """Return the mean test loss in the first feature space by number of training queries."""
    return {n: part.mean(settings.spaces[0], settings.k) for n, part in findings.sizes.items()}


def size_figure(findings: Mapping[str, Findings], settings: Settings) -> Figure:
    """Return the loss by number of training queries (Figure 2 of the paper)."""
    panels = {
        name: (
            {str(settings.spaces[0]): {float(n): loss for n, loss in by_size(part, settings).items()}},
            {method: part.table.mean(method, settings.k) for method in ("random", "essential-pages", ORACLE)},
        )
        for name, part in findings.items()
    }
    return line_figure("Test loss by number of training queries", "training queries", LOSS, panels)


def cost_figure(findings: Mapping[str, Findings], settings: Settings) -> Figure:
    """Return the loss by C, and the loss of the oracle (Figure 3 of the paper)."""
    panels = {
        name: (
            {"training": {C: fit["loss"] for C, fit in part.fitted.items()}, "test": part.tested},
            {ORACLE: next(iter(part.fitted.values()))["greedy"]},
        )
        for name, part in findings.items()
    }
    return line_figure(f"Loss of {settings.spaces[0]} by C", "C", LOSS, panels, log=True)


STUDY = Study(Settings, open_candidates, run)
