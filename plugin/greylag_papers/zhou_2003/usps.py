"""Digits by example: images ranked by one or more images of the same digit (Zhou et al. 2003, section 5.2).

Manifold ranking is compared with the distance to the nearest query. f* is linear in y, so one factorisation of the
graph's matrix serves all trials: the f* of a query set is the sum of its members'.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Annotated, NamedTuple

import numpy as np
from pydantic import Field
from scipy.spatial.distance import cdist

from greylag import FormatError
from greylag.base import FloatArray, IntArray, parallel_map, read_arrays
from greylag.evaluation import Figure, Panel, Section, line_figure
from greylag.rankers import Graph, affinity_graph, graph_degrees, spread_scores
from greylag.studies import Context, Experiment, InputFile, Outcome, Positive, Seed, Study
from greylag_papers.contrasts import contrasts
from greylag_papers.texts import read_texts
from greylag_papers.zhou_2003.by_example import (
    PAGERANK,
    areas_by_step,
    class_means,
    class_means_table,
    compare_by_class,
    draw_queries,
    query_columns,
    roc_areas,
)

MANIFOLD, DISTANCE, CHOSEN = "manifold", "distance", "chosen"
TOP = 99  # images, as in the paper's Figure 4


class Settings(Experiment):
    """The images, the queries and the ranking."""

    images: InputFile
    """An .npz file with X, shape (n, 256), grey values in [0, 1], and y, shape (n,), the digits."""
    digits: Annotated[tuple[int, ...], Field(min_length=2)] = (1, 2, 3, 4, 5, 6)
    """The digits to keep."""
    black: float = -1.0
    """The grey values 0 and 1 are mapped to these; sigma is in their units."""
    white: float = 1.0
    """The grey values 0 and 1 are mapped to these; sigma is in their units."""
    queries: Positive = 10
    """Images of each digit drawn in a trial; the first 1, 2, ... of them are its query sets."""
    trials: Positive = 30
    """The number of trials."""
    seed: Seed = 0
    """Seed of the trials."""
    graph: Graph = "full"
    """See `affinity_graph`."""
    sigma: float = 1.25
    """Kernel width."""
    alpha: Annotated[float, Field(gt=0, lt=1)] = 0.99
    """The alpha of manifold ranking."""
    widths: tuple[float, ...] = ()
    """Other values of sigma, among which leave-one-query-out chooses."""
    steps: Annotated[tuple[Positive, ...], Field(min_length=1)] = (1, 2, 3, 5, 10, 20, 50)
    """The t of each f(t), with one query."""
    alphas: Annotated[tuple[float, ...], Field(min_length=1)] = (0.9, 0.99)
    """The other values that leave-one-query-out chooses from; see `rank`."""
    exponents: Annotated[tuple[float, ...], Field(min_length=1)] = (0.0, 0.5, 1.0)
    """The other values that leave-one-query-out chooses from; see `rank`."""
    chosen_trials: Positive = 5
    """The number of trials in which parameters are chosen, on all queries of the trial."""

    @property
    def names(self) -> list[str]:
        """The classes' names."""
        return [f"digit {digit}" for digit in self.digits]


def read_images(settings: Settings, context: Context) -> tuple[FloatArray, IntArray]:
    """Read the selected images: rescaled X, shape (n, 256), and digits, shape (n,)."""
    path = settings.path(settings.images)
    if not path.exists():
        reason = "no such file; set GREYLAG_DATA to the folder that holds the collections"
        raise FormatError(path, None, reason)
    pixels, digits = read_arrays(path, X=("fiu", 2), y=("iu", 1))
    chosen = np.isin(digits, settings.digits)
    X = settings.black + (settings.white - settings.black) * pixels[chosen].astype(np.float64)
    return X, digits[chosen].astype(np.int64)


def run(settings: Settings, images: tuple[FloatArray, IntArray], context: Context) -> Outcome:
    """Rank the images by the first 1, 2, ... queries of each trial."""
    X, digits = images
    queries = draw_trials(digits, settings)
    context.progress(f"usps: {len(X)} images, {settings.trials} trials with {settings.queries} queries for each digit")
    scores = {MANIFOLD: spread(X, queries, settings), DISTANCE: nearness(X, queries)}
    areas = {name: areas_by_queries(f, digits, queries) for name, f in scores.items()}
    context.progress(f"{sum(area.size for area in areas.values())} rankings scored")
    single = queries[..., :1]  # as in the paper's other figures
    W = affinity_graph(X, graph=settings.graph, sigma=settings.sigma)
    by_step = areas_by_step(W, digits, single, settings.steps, settings.alpha)
    context.progress(f"f(t) scored for t = {', '.join(map(str, settings.steps))}")
    drawn = queries[:, : settings.chosen_trials]
    tried = try_parameters(X, digits, drawn, settings, context)
    parameters, chosen = choose(tried, drawn.shape[:2])
    means = class_means(areas, settings.names) | class_means({CHOSEN: chosen}, settings.names)
    parts = {"1 query": slice(1), f"{settings.queries} queries": slice(-1, None), "all": slice(None)}
    by_number = {f"{name}, {label}": area[..., part] for label, part in parts.items() for name, area in areas.items()}
    trials = f"over {settings.trials} trials"
    number_table = class_means_table(f"Mean ROC areas {trials}", by_number, settings.names)
    rows = {**{f"f({t})": area for t, area in by_step.items()}, "f*": areas[MANIFOLD][..., :1]}
    step_table = class_means_table("Mean ROC areas of f(t) with one query", rows, settings.names)
    fixed = areas[MANIFOLD][:, : settings.chosen_trials, -1]
    first = {name: f[..., :1] for name, f in scores.items()}
    first[PAGERANK] = first[MANIFOLD] * np.sqrt(graph_degrees(W))[:, None, None, None]
    with_one = {f"{name}, 1 query": areas_by_queries(f, digits, single) for name, f in first.items()}
    top = {f"{name}, top {TOP}": precision(f, digits, single, TOP) for name, f in first.items()}
    # On the same trials and with all queries, so that the choice is compared with the fixed parameters and nothing
    # else.
    choices = {CHOSEN: chosen, "fixed": fixed, **partial_choices(tried, fixed.shape, settings)}
    caption = f"Mean ROC areas with {settings.queries} queries over {fixed.shape[1]} trials"
    tested = compare_by_class(areas, [(MANIFOLD, DISTANCE)], settings.names)
    for scored in (with_one, top):
        spreading, distance, walk = scored
        tested |= compare_by_class(scored, [(spreading, distance), (walk, spreading)], settings.names)
    tested |= contrasts(rows, [(name, "f*") for name in rows if name != "f*"], where=", 1 query")
    tested |= contrasts(choices, [(name, "fixed") for name in choices if name != "fixed"])
    rankings = class_means(with_one | top, settings.names) | {
        name: {"all": float(area.mean())} for name, area in (rows | choices).items()
    }
    for name, by_digit in rankings.items():
        means[name] = means.get(name, {}) | by_digit
    return Outcome(
        scores=means | tested,
        results={
            "by digit, trial and number of queries": {name: area.tolist() for name, area in areas.items()},
            "chosen sigma, alpha, exponent": parameters.tolist(),
        },
        title="Manifold ranking of handwritten digits",
        sections=[
            Section("ROC areas", parts=[number_table, areas_figure(areas, settings)]),
            Section("Iterations", parts=[step_table]),
            Section("Chosen parameters", _TEXTS["choice"], [class_means_table(caption, choices, settings.names)]),
        ],
    )


def try_parameters(
    X: FloatArray, digits: IntArray, queries: IntArray, settings: Settings, context: Context
) -> list[Tried]:
    """Return every sigma, alpha and exponent."""
    widths = sorted({settings.sigma, *settings.widths})
    work, jobs = partial(_try_width, settings=settings), context.n_jobs
    tried: list[Tried] = []
    for width_trials in parallel_map(
        work, widths, X, digits, queries, what="leave-one-query-out", n_jobs=jobs, coarse=True
    ):
        tried += width_trials
        context.progress(f"leave-one-query-out: sigma {width_trials[0].parameters[0]}")
    return tried


def choose(tried: Sequence[Tried], shape: tuple[int, ...]) -> tuple[FloatArray, FloatArray]:
    """Choose parameters by leave-one-query-out for each digit and trial; the first combination wins ties."""
    best = np.argmax([combination.held_out for combination in tried], axis=0)
    areas = np.array([combination.areas for combination in tried])[best, np.arange(len(best))]
    parameters = np.array([combination.parameters for combination in tried])[best]
    return parameters.reshape(*shape, 3), areas.reshape(shape)


def partial_choices(tried: Sequence[Tried], shape: tuple[int, ...], settings: Settings) -> dict[str, FloatArray]:
    """Return ROC areas if fewer parameters are chosen, which shows the parameter that makes the difference."""
    choices = {
        "chosen sigma, alpha": [t for t in tried if t.parameters[2] == 0.5],
        "chosen sigma": [t for t in tried if t.parameters[1:] == (settings.alpha, 0.5)],
        "fixed, exponent 1": [t for t in tried if t.parameters == (settings.sigma, settings.alpha, 1.0)],
    }
    return {name: choose(combinations, shape)[1] for name, combinations in choices.items() if combinations}


def precision(scores: FloatArray, digits: IntArray, queries: IntArray, depth: int) -> FloatArray:
    """Return the share of a query's digit among the `depth` best other images, shape as `queries`; one query each."""
    shares = np.empty(queries.size)
    for i, (column, query) in enumerate(zip(scores.reshape(len(scores), -1).T, queries.ravel(), strict=True)):
        order = np.argsort(-column, kind="stable")
        shares[i] = np.mean(digits[order[order != query][:depth]] == digits[query])
    return shares.reshape(queries.shape)


class Tried(NamedTuple):
    """Sigma, alpha and exponent; for each digit and trial, their score by leave-one-query-out and their ROC area."""

    parameters: tuple[float, float, float]
    held_out: list[float]
    areas: FloatArray


def _try_width(sigma: float, X: FloatArray, digits: IntArray, queries: IntArray, *, settings: Settings) -> list[Tried]:
    """Return every alpha and exponent with one sigma."""
    points, query_sets = queries.ravel(), list(queries.reshape(-1, queries.shape[-1]))
    W = affinity_graph(X, graph=settings.graph, sigma=sigma)
    tried = []
    for alpha in settings.alphas:
        walk, degree = spread_scores(W, query_columns(len(X), points), alpha=alpha, exponent=0.0), graph_degrees(W)
        for exponent in settings.exponents:
            # One solution serves all exponents: S_k = D^-k P^T D^k, so f* = D^-k r*, where r* starts from D^k y.
            f = walk * degree[:, np.newaxis] ** -exponent * degree[points] ** exponent
            by_trial = f.reshape(len(X), -1, queries.shape[-1])
            held_out = [leave_one_query_out(by_trial[:, i], drawn) for i, drawn in enumerate(query_sets)]
            tried.append(
                Tried((sigma, alpha, exponent), held_out, roc_areas(by_trial.sum(axis=-1), digits, query_sets))
            )
    return tried


def leave_one_query_out(scores: FloatArray, queries: IntArray) -> float:
    """Compute the mean share of points, other than queries, that score below a query by the other queries.

    Column j of `scores`, shape (n, q), is the ranking by query j alone; rankings are linear in the queries. The columns
    of the other queries are added: subtracting the query's own from the sum of all would leave its rounding error, and
    its own column is by far the largest in its row. A tie counts one half. Counts are exact, so equal shares are equal.
    """
    by_others = scores @ (1.0 - np.eye(len(queries)))
    others, held_out = np.delete(by_others, queries, axis=0), by_others[queries, np.arange(len(queries))]
    below, not_above = np.count_nonzero(others < held_out), np.count_nonzero(others <= held_out)
    return (below + not_above) / (2 * others.size)


def draw_trials(digits: IntArray, settings: Settings) -> IntArray:
    """Draw queries, shape (digits, trials, queries)."""
    rng = np.random.default_rng(settings.seed)
    trials = range(settings.trials)
    return np.array([[draw_queries(rng, digits, digit, settings.queries) for _ in trials] for digit in settings.digits])


def spread(X: FloatArray, queries: IntArray, settings: Settings) -> FloatArray:
    """Compute f* of all images for the first 1, 2, ... queries, shape (n, digits, trials, queries)."""
    W = affinity_graph(X, graph=settings.graph, sigma=settings.sigma)
    f = spread_scores(W, query_columns(len(X), queries.ravel()), alpha=settings.alpha)
    # f* is linear in y: that of the first k queries is the sum of k columns.
    return f.reshape(len(X), *queries.shape).cumsum(axis=-1)


def nearness(X: FloatArray, queries: IntArray) -> FloatArray:
    """Compute minus the distance to the nearest query; shape as for `spread`."""
    # The nearest of the first k queries, for every k at once.
    distances = cdist(X, X[queries.ravel()]).reshape(len(X), *queries.shape)
    return -np.minimum.accumulate(distances, axis=-1)


def areas_by_queries(scores: FloatArray, digits: IntArray, queries: IntArray) -> FloatArray:
    """Compute ROC areas, shape (digits, trials, queries), of scores of shape (n, digits, trials, queries)."""
    sets = [drawn[: k + 1] for drawn in queries.reshape(-1, queries.shape[-1]) for k in range(queries.shape[-1])]
    return roc_areas(scores.reshape(len(scores), -1), digits, sets).reshape(queries.shape)


def areas_figure(areas: Mapping[str, FloatArray], settings: Settings) -> Figure:
    """Draw the ROC area over the number of queries, a panel for each digit (the paper's Figure 3)."""

    def by_number(values: FloatArray) -> dict[int, float]:
        return dict(enumerate(values.tolist(), 1))

    panels: dict[str, Panel] = {
        title: ({name: by_number(area[i].mean(axis=0)) for name, area in areas.items()}, {})
        for i, title in enumerate(settings.names)
    }
    deviations = {
        title: {name: by_number(area[i].std(axis=0)) for name, area in areas.items()}
        for i, title in enumerate(settings.names)
    }
    caption = f"Mean ROC area ± one standard deviation over {settings.trials} trials."
    return line_figure(caption, "queries", "ROC area", panels, deviations=deviations)


_TEXTS = read_texts(__file__)


STUDY = Study(Settings, read_images, run)
