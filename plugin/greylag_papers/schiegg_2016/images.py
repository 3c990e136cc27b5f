"""The Coulomb structured SVM on the paper's own kind of task: segmenting images, learned from a single one.

After Schiegg, Diego & Hamprecht (2016), Figures 3 and 4, on generated images (`synthetic_images`) with a Potts model
whose inference is exact (`potts`). Learners and losses are `cssvm`'s. With one image to train on, each member of the
Coulomb structured SVM has to learn from that image: of its assignments only "all" means anything.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, cast

import numpy as np
from pydantic import Field

from greylag.errors import ParameterError
from greylag.evaluation import Scores, compare, to_dict
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
from greylag.ranking import FloatArray, IntArray
from greylag_papers.schiegg_2016.ensembles import (
    QUANTITIES,
    EnsembleLearner,
    EnsembleSettings,
    Quantity,
    Task,
    TrialTable,
    run_trials,
)
from greylag_papers.schiegg_2016.potts import PottsModel, Superpixels
from greylag_papers.schiegg_2016.synthetic_images import LabelledImage, SyntheticImages
from greylag_papers.schiegg_2016.tables import (
    LOSS,
    SSVM,
    Row,
    angle_table,
    limit_table,
    rank_table,
    size_figure,
    size_table,
    spread_figure,
    wins_table,
)
from greylag_papers.yue_joachims_2008.tables import comparison_table

if TYPE_CHECKING:
    from matplotlib.figure import Figure as Canvas

MODEL = PottsModel()
CSSVM = "cssvm-all"
ENSEMBLES = ("perturbed", "mcl", "divmcl", CSSVM)
METHODS = (SSVM, *ENSEMBLES)
ALONE, TOGETHER = "category 1", "all categories"
UNIT = "share of wrong labels"
GREY = 0.75
_LOSS = """\
The loss is the share of superpixels with a wrong label. Each image of a category is trained on once, alone; the next
ones of the category choose the parameters, by pick-best, and all others are tested. All methods choose from as many
candidates, for each training image and M. "ssvm" is one structured SVM, "perturbed" are random vectors around one. Of
"mcl"'s members only one learns, and the others stay the structured SVM."""
_MEMBERS = """\
"mean" is over all members; 1 is pick-best, 2 the second best, and so on: the means of each test image's losses in
order. The angle is between two members, in degrees, on average. For wins, the members of each training are ordered by
how often they are best, so that the first has more than a share of 1 / M even where all are as good."""
_TESTS = """\
Training images that leave the Coulomb structured SVM with a lower, equal and higher loss than another method, on
average over their test images; Wilcoxon's signed-rank test, two-sided, before and after Holm's correction. Training
images of a category are tested on much the same images, of which the test knows nothing."""
_GALLERY = """\
The first training image's first test image, its labels (white is the object), and by method the members' labels, the
best first"""


class Settings(EnsembleSettings):
    """What is drawn, and how it is learned from.

    Parameters
    ----------
    image_seed, n_categories, n_images : of `SyntheticImages`, whose other sizes are its own.
    n_validation : images to choose parameters by, for each that is trained on.
    """

    image_seed: Annotated[int, Field(ge=0)] = 0
    n_categories: config.Positive = 5
    n_images: config.Positive = 8
    n_validation: config.Positive = 2


def run(settings: Settings, out: Path, *, n_jobs: int, say: Say) -> Result:
    """Run the study; write ``results.json`` and ``report.html`` to `out`."""
    check_dependencies()
    data = SyntheticImages(settings.n_categories, settings.n_images, seed=settings.image_seed)
    images = data.draw()
    tasks = {
        f"category {number}": image_tasks(f"{number}.", category, settings.n_validation)
        for number, category in enumerate(images, 1)
    }
    every = [task for category in tasks.values() for task in category]
    say(f"images: {len(every)}, each trained on alone, in {len(tasks)} categories")
    trials = run_trials(MODEL, every, settings.sizes, settings.grid, methods=METHODS, n_jobs=n_jobs)
    table = TrialTable(tuple(trials))
    tables = {name: restrict(table, [task.name for task in category]) for name, category in tasks.items()}
    gallery = draw_gallery(every[0], images[0][1 + settings.n_validation], table)
    return write(settings, data, {**tables, TOGETHER: table}, gallery, out)


def image_tasks(prefix: str, images: Sequence[LabelledImage], n_validation: int) -> list[Task]:
    """A task for each image: to train on it, validate on the `n_validation` next ones, and test the rest.

    After the last image comes the first. An image is known by its number, from 1, after `prefix`.

    Raises
    ------
    ParameterError
        Where none is left to test.
    """
    held_out = 1 + n_validation
    if len(images) <= held_out:
        raise ParameterError(
            f"{len(images)} images leave none to test after 1 to train on and {n_validation} to validate"
        )
    examples = [
        (f"{prefix}{number}", (Superpixels.from_colours(image.colours), image.labels))
        for number, image in enumerate(images, 1)
    ]
    tasks = []
    for first, (name, example) in enumerate(examples):
        turned = [*examples[first:], *examples[:first]]
        validation = [other for _, other in turned[1:held_out]]
        tasks.append(Task(name, [example], validation, dict(turned[held_out:])))
    return tasks


def write(
    settings: Settings, data: SyntheticImages, tables: Mapping[str, TrialTable], gallery: Figure, out: Path
) -> Result:
    """Write what was found to `out`, and summarise it; the scores are over all categories."""
    table, about = tables[TOGETHER], provenance(settings, data=asdict(data))
    scores = {method: table.scores(method) for method in METHODS}
    trained = {quantity: training_scores(table, quantity) for quantity in QUANTITIES}
    tests = {quantity: compare(found, CSSVM, test="wilcoxon") for quantity, found in trained.items()}
    content = {
        **about,
        "scores": scores,
        "by training image": {quantity: to_dict(trained[quantity], tests[quantity]) for quantity in QUANTITIES},
        "chosen": {
            method: {trial.task: str(trial.learner) for trial in table.chosen(method, table.largest(method))}
            for method in METHODS
        },
    }
    write_results(out, content)
    sections = [
        Section("Pick-best", _LOSS, loss_parts(tables)),
        Section("Members", _MEMBERS, member_parts(tables)),
        Section(
            "Significance",
            _TESTS,
            [comparison_table(f"{name.capitalize()} loss at the largest M", test) for name, test in tests.items()],
        ),
        Section("One image", parts=[gallery]),
    ]
    write_report(out / "report.html", f"Diverse models from one image: {settings.name}", sections, about)
    shown = [part for section in sections for part in section.parts if isinstance(part, Table)]
    summary = "\n".join(map(as_text, shown))
    return Result(scores, f"{summary}\nThe report is {out / 'report.html'}\n")


def loss_parts(tables: Mapping[str, TrialTable]) -> list[Table | Figure]:
    """Pick-best by M and by category."""
    table = tables[TOGETHER]
    rows: list[Row] = [
        (method, *(part.score(method, part.largest(method)) for part in tables.values())) for method in METHODS
    ]
    return [
        size_figure(_panels(tables), ENSEMBLES, "Pick-best loss by M (after Figures 3 and 4)", UNIT),
        size_table(table, METHODS, "Pick-best loss by M, over all categories"),
        Table("Pick-best loss at the largest M, by category", ("", *tables), rows),
    ]


def member_parts(tables: Mapping[str, TrialTable]) -> list[Table | Figure]:
    """What becomes of the members other than the best."""
    table = tables[TOGETHER]
    return [
        size_table(table, METHODS, "Mean loss of all members by M, over all categories", "mean"),
        rank_table(table, METHODS, "Mean and ordered losses at the largest M, over all categories"),
        wins_table(table, ENSEMBLES, "Shares of test images that the members win, at the largest M"),
        angle_table(table, table.largest(CSSVM), "By C and alpha, at the largest M, unchosen ones too"),
        limit_table(table, METHODS, "Ensembles trained, and how many stopped at their learner's limit"),
        spread_figure(_panels(tables), METHODS, "Losses of all members on all test images, at the largest M", UNIT),
    ]


def _panels(tables: Mapping[str, TrialTable]) -> dict[str, TrialTable]:
    """One category, and all together."""
    return {name: tables[name] for name in (ALONE, TOGETHER)}


def restrict(table: TrialTable, tasks: Collection[str]) -> TrialTable:
    """The trials of some tasks."""
    return TrialTable(tuple(trial for trial in table.trials if trial.task in tasks))


def training_scores(table: TrialTable, quantity: Quantity) -> dict[str, Scores]:
    """By method, at its largest M: each training image's mean over its test images, in the place of a query's score."""
    alone = {task: restrict(table, [task]) for task in dict.fromkeys(trial.task for trial in table.trials)}
    return {
        method: Scores.single(
            LOSS, {task: own.score(method, table.largest(method), quantity) for task, own in alone.items()}
        )
        for method in METHODS
    }


def draw_gallery(task: Task, image: LabelledImage, table: TrialTable) -> Figure:
    """A task's first test image, which is `image`, and what each method's members, trained on the task, make of it."""
    x, truth = next(iter(task.test.values()))

    def tile(y: IntArray) -> FloatArray:
        return np.broadcast_to(y.reshape(*x.shape, 1), (*x.shape, 3)).astype(np.float64)

    rows = {"image, labels": [image.colours, tile(truth)]}
    for method in METHODS:
        (trial,) = restrict(table, [task.name]).chosen(method, table.largest(method))
        members = cast(EnsembleLearner, trial.learner).fit(MODEL, task.training).weights
        found = sorted((MODEL.infer(x, weights) for weights in members), key=lambda y: MODEL.loss(truth, y))
        rows[method] = [tile(y) for y in found]

    def draw(canvas: Canvas) -> None:
        axes = canvas.subplots()
        axes.imshow(mosaic([*rows.values()]), interpolation="none")
        height = x.shape[0] + 1
        axes.set_yticks(np.arange(len(rows)) * height + height / 2, list(rows))
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.spines[:].set_visible(False)

    return draw_figure(_GALLERY, draw)


def mosaic(rows: Sequence[Sequence[FloatArray]]) -> FloatArray:
    """Images of one shape (r, c, 3) side by side on grey, a line of which is below and to the right of each."""
    r, c, _ = rows[0][0].shape
    joined = np.full((len(rows) * (r + 1), max(map(len, rows)) * (c + 1), 3), GREY)
    for i, row in enumerate(rows):
        for j, image in enumerate(row):
            joined[i * (r + 1) : i * (r + 1) + r, j * (c + 1) : j * (c + 1) + c] = image
    return joined
