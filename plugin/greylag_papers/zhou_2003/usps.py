"""Digits by example: images ranked by one or more of the same digit (Zhou et al. 2003, section 5).

Manifold ranking against the distance to the nearest query. Scores are linear in the queries, so that all trials
together take one factor of the graph's matrix and a column of f* for each image that was drawn; the rest is sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import numpy as np
from pydantic import Field

from greylag.errors import FormatError
from greylag.experiments import config
from greylag.experiments.report import (
    Figure,
    Section,
    Table,
    as_text,
    check_dependencies,
    draw_figure,
    provenance,
    write_report,
    write_results,
)
from greylag.experiments.study import Result, Say
from greylag.manifold import affinity_graph, rank
from greylag.manifold.graph import Graph
from greylag.ranking import FloatArray, IntArray
from greylag_papers.zhou_2003.by_example import draw_queries, query_columns, roc_areas

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

MANIFOLD, DISTANCE = "manifold", "distance"
SIDE = 16  # of an image, in pixels
SHOWN = 10  # rows and columns of the best-ranked images


class Settings(config.Experiment):
    """The images, the queries and the ranking.

    Parameters
    ----------
    images : an .npz file with X, shape (n, 256), grey values from 0 to 1, and y, shape (n,), the digits.
    digits : only images of these count.
    black, white : what the grey values 0 and 1 become; sigma is in their units.
    queries, trials, seed : each trial draws so many images of each digit, the first 1, 2, ... of which are its queries.
    graph, sigma, alpha : of the ranking.
    widths : other values of sigma, tried with one query.
    """

    images: str
    digits: Annotated[tuple[int, ...], Field(min_length=2)] = (1, 2, 3, 4, 5, 6)
    black: float = -1.0
    white: float = 1.0
    queries: config.Positive = 10
    trials: config.Positive = 30
    seed: int = 0
    graph: Graph = "full"
    sigma: float = 1.25
    alpha: float = 0.99
    widths: tuple[float, ...] = ()


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json`` and ``report.html`` to `out`."""
    check_dependencies()
    X, digits = read_images(settings)
    queries = draw_trials(digits, settings)
    say(f"usps: {len(X)} images, {settings.trials} trials of {settings.queries} queries for each digit")
    scores = {MANIFOLD: spread(X, queries, settings, settings.sigma), DISTANCE: nearness(X, queries)}
    areas = {name: areas_by_queries(f, digits, queries) for name, f in scores.items()}
    say(f"{sum(area.size for area in areas.values())} rankings scored")
    by_width = {settings.sigma: areas[MANIFOLD][..., :1]}
    for sigma in settings.widths:
        f = spread(X, queries[..., :1], settings, sigma)
        by_width[sigma] = areas_by_queries(f, digits, queries[..., :1])
        say(f"sigma {sigma}: mean ROC area {by_width[sigma].mean():.4f} with one query")
    results = {name: _by_digit(area, settings) for name, area in areas.items()}
    each = {name: area.tolist() for name, area in areas.items()}
    content = {"means": results, "by digit, trial and number of queries": each}
    write_results(out, content, indent=None)
    tables = [areas_table(areas, settings), widths_table(by_width, areas[DISTANCE][..., :1], settings)]
    best = {name: f[:, 1, 0, 0] for name, f in scores.items()}
    sections = [
        Section("ROC areas", parts=[tables[0], areas_figure(areas, settings)]),
        Section("The best images for one query", parts=[best_figure(X, int(queries[1, 0, 0]), best)]),
        Section("The width", _WIDTH.format(black=settings.black, white=settings.white), tables[1:]),
    ]
    write_report(out / "report.html", "Manifold ranking of handwritten digits", sections, provenance(settings))
    return Result(results, "\n".join(map(as_text, tables)))


def read_images(settings: Settings) -> tuple[FloatArray, IntArray]:
    """X on the scale of the settings, shape (n, 256), and the digits, shape (n,), of the images that count."""
    path = settings.path(settings.images)
    try:
        with np.load(path) as arrays:
            X, digits = arrays["X"].astype(np.float64), arrays["y"].astype(np.int64)
    except FileNotFoundError:
        reason = "no such images; set GREYLAG_DATA to the folder that the collections are in"
        raise FormatError(path, None, reason) from None
    except (KeyError, ValueError) as error:
        raise FormatError(path, None, f"not an .npz file with X and y: {error}") from None
    chosen = np.isin(digits, settings.digits)
    return settings.black + (settings.white - settings.black) * X[chosen], digits[chosen]


def draw_trials(digits: IntArray, settings: Settings) -> IntArray:
    """Queries, shape (digits, trials, queries)."""
    rng = np.random.default_rng(settings.seed)
    trials = range(settings.trials)
    return np.array([[draw_queries(rng, digits, own, settings.queries) for _ in trials] for own in settings.digits])


def spread(X: FloatArray, queries: IntArray, settings: Settings, sigma: float) -> FloatArray:
    """f* of every image for the first query, the first two, ...: shape (n, digits, trials, queries)."""
    W = affinity_graph(X, graph=settings.graph, sigma=sigma)
    f = rank(W, query_columns(len(X), queries.ravel()), alpha=settings.alpha)
    return f.reshape(len(X), *queries.shape).cumsum(axis=-1)


def nearness(X: FloatArray, queries: IntArray) -> FloatArray:
    """Less the distance to the nearest of the queries; shape as `spread`."""
    from scipy.spatial.distance import cdist

    distances = cdist(X, X[queries.ravel()]).reshape(len(X), *queries.shape)
    return -np.minimum.accumulate(distances, axis=-1)


def areas_by_queries(scores: FloatArray, digits: IntArray, queries: IntArray) -> FloatArray:
    """ROC areas, shape (digits, trials, queries), of scores of shape (n, digits, trials, queries)."""
    sets = [drawn[: k + 1] for drawn in queries.reshape(-1, queries.shape[-1]) for k in range(queries.shape[-1])]
    return roc_areas(scores.reshape(len(scores), -1), digits, sets).reshape(queries.shape)


def areas_table(areas: Mapping[str, FloatArray], settings: Settings) -> Table:
    """Means by digit: with one query, with all, and over every number of them."""
    header, columns = ["digit"], []
    numbers = (("1 query", slice(1)), (f"{settings.queries} queries", slice(-1, None)), ("all", slice(None)))
    for label, part in numbers:
        for name, area in areas.items():
            header.append(f"{name}, {label}")
            columns.append(area[..., part].mean(axis=(1, 2)).tolist())
    rows = list(zip(settings.digits, *columns, strict=True))
    return Table(f"Mean ROC areas over {settings.trials} trials", header, rows)


def widths_table(by_width: Mapping[float, FloatArray], baseline: FloatArray, settings: Settings) -> Table:
    """Means by digit with one query: for each width, ascending, and for the distance."""
    named = {**{f"{sigma:g}": by_width[sigma] for sigma in sorted(by_width)}, DISTANCE: baseline}
    rows = [(name, *area.mean(axis=(1, 2)).tolist(), float(area.mean())) for name, area in named.items()]
    header = ["sigma", *(f"digit {digit}" for digit in settings.digits), "all"]
    return Table(f"Mean ROC areas with one query over {settings.trials} trials", header, rows)


def areas_figure(areas: Mapping[str, FloatArray], settings: Settings) -> Figure:
    """ROC areas against the number of queries, a panel for each digit."""
    numbers = np.arange(1, settings.queries + 1)

    def draw(canvas: Canvas) -> None:
        grid = canvas.subplots(-(-len(settings.digits) // 3), 3, sharex=True, sharey=True, squeeze=False).ravel()
        for axes in grid[len(settings.digits) :]:
            axes.set_axis_off()
        for i, (axes, digit) in enumerate(zip(grid, settings.digits, strict=False)):
            for (name, area), style in zip(areas.items(), ("-o", "--s"), strict=True):
                mean, deviation = area[i].mean(axis=0), area[i].std(axis=0)
                (line,) = axes.plot(numbers, mean, style, markersize=3, label=name)
                axes.fill_between(numbers, mean - deviation, mean + deviation, alpha=0.15, color=line.get_color())
            axes.set_title(f"digit {digit}")
        grid[0].legend()
        canvas.supxlabel("queries")
        canvas.supylabel("ROC area")

    caption = f"Mean ROC area and one standard deviation to either side, {settings.trials} trials."
    return draw_figure(caption, draw, height=4.5)


def best_figure(X: FloatArray, query: int, scores: Mapping[str, FloatArray]) -> Figure:
    """The query and the images that score highest, row by row, a panel for each of `scores`, shape (n,)."""

    def draw(canvas: Canvas) -> None:
        for axes, (name, values) in zip(canvas.subplots(1, len(scores)), scores.items(), strict=True):
            others = np.delete(np.arange(len(X)), query)
            best = others[np.argsort(-values[others], kind="stable")[: SHOWN**2 - 1]]
            rows = (len(best) + 1) // SHOWN
            tiles = X[[query, *best][: rows * SHOWN]].reshape(rows, SHOWN, SIDE, SIDE)
            axes.imshow(tiles.swapaxes(1, 2).reshape(rows * SIDE, -1), cmap="gray_r", interpolation="nearest")
            axes.set_title(name)
            axes.set_axis_off()

    return draw_figure("The query, top left, and the images that follow it, row by row.", draw, height=3.7)


def _by_digit(area: FloatArray, settings: Settings) -> dict[str, float]:
    means = area.mean(axis=(1, 2)).tolist()
    return {f"digit {digit}": mean for digit, mean in zip(settings.digits, means, strict=True)}


_WIDTH = """\
sigma is in the units of the grey values, which run from {black:g} to {white:g} here. The paper gives 1.25 without a
scale. The set's own scale is from -1 to 1; where grey values run from 0 to 1, all distances are half as long, and
sigma = 1.25 does what 2.5 does on the scale from -1 to 1.
"""
