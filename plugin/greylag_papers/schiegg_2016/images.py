"""The Coulomb structured SVM on image segmentation, learned from a single image (section 4, task i; Figure 3).

The images are generated (`synthetic_images`), and the inference of the Potts model is exact (`potts`). With one
training image, all members of the Coulomb structured SVM learn from it; the paper uses the assignment "all", too.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from itertools import product
from typing import Annotated

import numpy as np
from pydantic import Field

from greylag import ParameterError
from greylag.evaluation import Section
from greylag.studies import Context, Outcome, Positive, Study, means_table
from greylag_papers.schiegg_2016 import report
from greylag_papers.schiegg_2016.potts import PottsModel, Superpixels
from greylag_papers.schiegg_2016.synthetic_images import LabelledImage, SyntheticImages
from greylag_papers.schiegg_2016.trials import (
    QUANTITIES,
    SSVM,
    EnsembleSettings,
    Example,
    Task,
    TrialTable,
    run_trials,
)
from greylag_papers.texts import read_texts

MODEL = PottsModel()
CSSVM = "cssvm-all"
GRADIENT = "cssvm-gradient"
ENSEMBLES = ("perturbed", "mcl", "mcl-perturbed", "divmcl", CSSVM, GRADIENT)
METHODS = (SSVM, *ENSEMBLES)
ALONE, TOGETHER = "category 1", "all categories"
UNIT = "share of wrong labels"
_TEXTS = read_texts(__file__)


class ImageSettings(EnsembleSettings):
    """Which images are drawn."""

    image_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the images."""
    n_categories: Positive = 6
    """Number of categories, each with colours of its own for objects and backgrounds."""
    n_images: Positive = 10
    """Number of images of a category."""

    @property
    def images(self) -> SyntheticImages:
        """How the images are drawn."""
        return SyntheticImages(self.n_categories, self.n_images, seed=self.image_seed)


class Settings(ImageSettings):
    """The study of images."""

    n_validation: Positive = 3
    """Number of images that parameters are chosen on, for each training image."""


def open_images(settings: ImageSettings, context: Context) -> list[list[LabelledImage]]:
    """Draw the images of each category."""
    return settings.images.draw()


def run(settings: Settings, categories: Sequence[Sequence[LabelledImage]], context: Context) -> Outcome:
    """Compare ensembles that were trained on one image each; the scores are over all categories."""
    tasks = {
        f"category {number}": image_tasks(f"{number}.", images, settings.n_validation)
        for number, images in enumerate(categories, 1)
    }
    every = [task for part in tasks.values() for task in part]
    context.progress(f"images: {len(every)} in {len(tasks)} categories, each trained on alone")
    table = TrialTable(tuple(run_trials(MODEL, every, settings, methods=METHODS, n_jobs=context.n_jobs)))
    tables = {name: table.restrict([task.name for task in part]) for name, part in tasks.items()} | {TOGETHER: table}
    matched = report.matched_trials(MODEL, every, table, (CSSVM, GRADIENT), n_jobs=context.n_jobs)
    others = (SSVM, "mcl", "mcl-perturbed", "divmcl", GRADIENT)
    claims = report.claims(table, matched, [CSSVM], others, "task")
    claims |= report.claims(table, matched, [GRADIENT], (), "task")
    # The tasks of a category share test images, so that categories alone are independent units.
    for quantity, (name, row) in product(QUANTITIES, claims.items()):
        if name.endswith(f", {quantity}"):
            method, _, other = name.removesuffix(f", {quantity}").partition(" / ")
            source = table if other in METHODS else matched
            losses, against = table.by_task(method, None, quantity), source.by_task(other, None, quantity)
            row.update(lower_in(([task.name for task in part] for part in tasks.values()), losses, against))
    members = {method: member_scores(table, method) for method in METHODS}
    scores = {method: table.scores(method) | members[method] for method in METHODS} | claims
    shown = {name: tables[name] for name in (ALONE, TOGETHER)}
    by_category = {method: {name: part.score(method) for name, part in tables.items()} for method in METHODS}
    return Outcome(
        scores=scores,
        results={
            "scores": scores,
            "by training image": {
                quantity: {method: table.by_task(method, quantity=quantity) for method in METHODS}
                for quantity in QUANTITIES
            },
            "chosen": table.chosen_learners(METHODS),
        },
        title=f"Diverse models from one image: {settings.name}",
        sections=[
            Section(
                "Pick-best",
                _TEXTS["images: loss"],
                [
                    report.size_figure(shown, ENSEMBLES, "Pick-best loss by M (after Figure 3 of the paper)", UNIT),
                    report.size_table(table, METHODS, "Pick-best loss by M, all categories"),
                    means_table("Pick-best loss at the largest M, by category", by_category),
                ],
            ),
            Section(
                "Members",
                _TEXTS["images: members"],
                [
                    report.size_table(table, METHODS, "Mean loss of the members by M, all categories", "mean"),
                    means_table("Members at the largest M, all categories", members),
                ],
            ),
            Section("Significance", _TEXTS["images: tests"], [means_table("Losses at the largest M", claims)]),
        ],
        provenance={"data": asdict(settings.images)},
    )


def named_examples(prefix: str, images: Sequence[LabelledImage]) -> list[tuple[str, Example]]:
    """Return superpixels and labels of images, which are named by `prefix` and their number, from 1."""
    numbered = enumerate(images, 1)
    return [(f"{prefix}{i}", (Superpixels.from_colours(image.colours), image.labels)) for i, image in numbered]


def image_tasks(prefix: str, images: Sequence[LabelledImage], n_validation: int) -> list[Task]:
    """Make a task per image: train on it, validate on the `n_validation` images after it, and test on the rest."""
    held_out = 1 + n_validation
    if len(images) <= held_out:
        raise ParameterError(
            f"{len(images)} images are too few for 1 to train on, {n_validation} to validate on and at least 1 to test"
        )
    examples, tasks = named_examples(prefix, images), []
    for first, (name, example) in enumerate(examples):
        order = [*examples[first:], *examples[:first]]
        # In a circle, so that every image is trained on once and all tasks have as many test images.
        validation = [other for _, other in order[1:held_out]]
        tasks.append(Task(name, [example], validation, dict(order[held_out:])))
    return tasks


def member_scores(table: TrialTable, method: str) -> dict[str, float]:
    """Compute, at the largest M, the first member's share of wins, the mean training loss, the angle, and more."""
    # The last is the share of members that predict the training image without an error: the version space of eq. 2.
    M = table.sizes(method)[-1]
    chosen = table.chosen(method)
    return {
        f"first wins@{M}": float(table.wins(method)[0]),
        f"training@{M}": float(np.mean([trial.training for trial in chosen])),
        f"angle@{M}": float(np.mean([trial.mean_angle for trial in chosen])),
        f"in version space@{M}": float(np.mean([trial.fitted for trial in chosen])),
    }


def lower_in(
    categories: Iterable[Iterable[str]], losses: Mapping[str, float], others: Mapping[str, float]
) -> dict[str, float]:
    """Count the categories of tasks in which the mean of the losses is below the mean of the others."""
    gains = [sum(others[task] - losses[task] for task in category) for category in categories]
    return {"categories": float(sum(gain > 0 for gain in gains)), "of": float(len(gains))}


STUDY = Study(Settings, open_images, run)
