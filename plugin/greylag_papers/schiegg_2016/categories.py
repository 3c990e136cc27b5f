"""Ensembles trained on images of all categories together (Schiegg et al. 2016, section 4, task ii; Figure 4).

The images are those of `images`. They are divided at random into five folds. Ensembles are trained on one fold, their
parameters are chosen on two, and the other two are tested.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import numpy as np

from greylag import ParameterError
from greylag.evaluation import Section
from greylag.studies import Context, Outcome, Study, means_table
from greylag_papers.schiegg_2016 import report
from greylag_papers.schiegg_2016.images import MODEL, ImageSettings, named_examples, open_images
from greylag_papers.schiegg_2016.synthetic_images import LabelledImage
from greylag_papers.schiegg_2016.trials import COULOMB, METHODS, SSVM, Task, TrialTable, run_trials
from greylag_papers.texts import read_texts

FOLDS, VALIDATED = 5, 2
_TEXTS = read_texts(__file__)


def fold_tasks(categories: Sequence[Sequence[LabelledImage]], seed: int) -> list[Task]:
    """Return a task for each fold, of images of all categories, named by category and number, such as 2.1."""
    examples = [
        example for category, images in enumerate(categories, 1) for example in named_examples(f"{category}.", images)
    ]
    if len(examples) < FOLDS:
        raise ParameterError(f"{len(examples)} images cannot be divided into {FOLDS} folds")
    order = np.random.default_rng(seed).permutation(len(examples))
    folds = [[examples[number] for number in order[fold::FOLDS]] for fold in range(FOLDS)]
    tasks = []
    # In a circle, so that every fold has each use equally often.
    for first in range(FOLDS):
        training, *others = folds[first:] + folds[:first]
        validation, test = (
            [example for fold in part for example in fold] for part in (others[:VALIDATED], others[VALIDATED:])
        )
        tasks.append(
            Task(f"fold {first + 1}", [image for _, image in training], [image for _, image in validation], dict(test))
        )
    return tasks


def run(settings: ImageSettings, categories: Sequence[Sequence[LabelledImage]], context: Context) -> Outcome:
    """Compare ensembles that were trained on one fold of all images each."""
    tasks = fold_tasks(categories, 0)
    context.progress(f"{FOLDS} folds, {len(tasks[0].training)} images to train on in the first")
    table = TrialTable(tuple(run_trials(MODEL, tasks, settings, n_jobs=context.n_jobs)))
    matched = report.matched_trials(MODEL, tasks, table, COULOMB, n_jobs=context.n_jobs)
    others = (SSVM, "mcl", "divmcl", "cssvm-all", "cssvm-stochastic")
    claims = report.claims(table, matched, COULOMB, others, "task", ("pick-best",))
    scores = {method: table.scores(method) for method in METHODS} | claims
    tests = means_table("Pick-best losses at the largest M", claims)
    return Outcome(
        scores=scores,
        results={"scores": scores, "by fold": {method: table.by_task(method) for method in METHODS}},
        title=f"Diverse models from all categories: {settings.name}",
        sections=[
            Section(
                "Pick-best",
                _TEXTS["categories: loss"],
                [report.size_table(table, METHODS, "Pick-best loss by M (after Figure 4 of the paper)")],
            ),
            Section("Members", parts=[report.size_table(table, METHODS, "Mean loss of the members by M", "mean")]),
            Section("Significance", _TEXTS["categories: tests"], [tests]),
        ],
        provenance={"data": asdict(settings.images)},
    )


STUDY = Study(ImageSettings, open_images, run)
