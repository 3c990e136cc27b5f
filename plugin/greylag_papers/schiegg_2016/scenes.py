"""Semantic segmentation of generated scenes with several labels (Schiegg et al. 2016, section 4, task iii; Table 2).

The features of a superpixel are potentials: log-probabilities of its labels by logistic regression on colours, fitted
to scenes that are used for nothing else, instead of the paper's TextonBoost potentials. The loss is weighted by the
inverse frequency of labels in the training scenes, and results are Jaccard indices.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Annotated, cast

import numpy as np
from pydantic import Field

from greylag import ParameterError
from greylag.base import FloatArray, IntArray
from greylag.evaluation import Section
from greylag.studies import Context, Outcome, Positive, Study, Table
from greylag_papers.contrasts import contrasts
from greylag_papers.schiegg_2016.potts import (
    PottsModel,
    Superpixels,
    colour_affinities,
    colour_features,
    inverse_frequencies,
)
from greylag_papers.schiegg_2016.report import matched_trials, size_table
from greylag_papers.schiegg_2016.synthetic_images import LabelledImage, SyntheticImages
from greylag_papers.schiegg_2016.trials import (
    COULOMB,
    METHODS,
    SSVM,
    EnsembleSettings,
    Example,
    Task,
    Trial,
    TrialTable,
    run_trials,
)
from greylag_papers.texts import read_texts

UNARIES, LINEAR = "unaries only", "linear SVM"
PARTS = ("validation", "test")
_TEXTS = read_texts(__file__)


class Settings(EnsembleSettings):
    """The study of scenes."""

    image_seed: Annotated[int, Field(ge=0)] = 0
    """Seed of the scenes."""
    n_draws: Positive = 1
    """Independent draws of all scenes, with this seed and the ones after it."""
    n_classes: Positive = 5
    """Labels other than the background."""
    n_potentials: Positive = 10
    """Scenes for the potentials."""
    n_training: Positive = 10
    """Scenes to train on."""
    n_validation: Positive = 10
    """Scenes to choose parameters on."""
    n_test: Positive = 10
    """Scenes to test on."""
    svm_costs: Annotated[tuple[float, ...], Field(min_length=1)] = (0.01, 0.1, 1.0, 10.0)
    """C of the linear SVM."""

    @property
    def images(self) -> list[SyntheticImages]:
        """How the scenes are drawn."""
        number = self.n_potentials + self.n_training + self.n_validation + self.n_test
        seeds = range(self.image_seed, self.image_seed + self.n_draws)
        return [SyntheticImages(1, number, n_objects=(3, 6), n_classes=self.n_classes, seed=seed) for seed in seeds]


@dataclass(frozen=True)
class Scenes:
    """Potentials and labels of scenes, by use; an example's features end with a constant 1."""

    training: Sequence[Example]
    validation: Sequence[Example]
    test: Sequence[Example]

    @property
    def judged(self) -> dict[str, Sequence[Example]]:
        """The sets that Jaccard indices are of."""
        return {"validation": self.validation, "test": self.test}

    def task(self, number: int) -> Task:
        """Return the task of a draw; test scenes are named by draw and number, such as 2.1."""
        test = {f"{number}.{i}": example for i, example in enumerate(self.test, 1)}
        return Task(f"draw {number}", self.training, self.validation, test)


def open_scenes(settings: Settings, context: Context) -> list[Scenes]:
    """Draw the scenes, and fit the potentials."""
    first, third = settings.n_potentials, settings.n_training
    last = third + settings.n_validation
    scenes = []
    for images in settings.images:
        (drawn,) = images.draw()
        examples = with_potentials(drawn[:first], drawn[first:], settings.n_classes + 1)
        scenes.append(Scenes(examples[:third], examples[third:last], examples[last:]))
    return scenes


def with_potentials(known: Sequence[LabelledImage], images: Sequence[LabelledImage], n_labels: int) -> list[Example]:
    """Return superpixels of `images` with labels' log-probabilities by regression on `known`, and their labels."""
    from sklearn.linear_model import LogisticRegression

    labels = np.concatenate([image.labels for image in known])
    if len(np.unique(labels)) < n_labels:
        raise ParameterError(f"the {len(known)} scenes for the potentials lack one of {n_labels} labels: draw more")
    colours = np.concatenate([image.colours.reshape(-1, 3) for image in known])
    fitted = LogisticRegression(max_iter=2000).fit(colour_features(colours), labels)
    examples = []
    for image in images:
        potentials = fitted.predict_log_proba(colour_features(image.colours.reshape(-1, 3)))
        features = np.column_stack([potentials, np.ones(len(potentials))])
        examples.append(
            (Superpixels(image.colours.shape[:2], features, colour_affinities(image.colours)), image.labels)
        )
    return examples


def jaccard(pairs: Sequence[tuple[IntArray, IntArray]], n_labels: int) -> FloatArray:
    """Compute the Jaccard index of each label, shape (K,), for pairs of true and predicted labels; NaN if absent."""
    truth, predicted = (np.concatenate(labels) for labels in zip(*pairs, strict=True))
    confusion = np.zeros((n_labels, n_labels))
    np.add.at(confusion, (truth, predicted), 1.0)
    union = confusion.sum(axis=0) + confusion.sum(axis=1) - confusion.diagonal()
    shares = np.divide(confusion.diagonal(), union, out=np.full(n_labels, np.nan), where=union > 0)
    return np.asarray(shares)


def best_predictions(
    model: PottsModel, weights: FloatArray, examples: Sequence[Example]
) -> list[tuple[IntArray, IntArray]]:
    """Return the truth of each example, and the prediction of lowest loss among those of the members."""
    pairs = []
    for x, truth in examples:
        predictions = [model.infer(x, member) for member in weights]
        pairs.append((truth, min(predictions, key=lambda y: model.loss(truth, y))))
    return pairs


def unary_baselines(scenes: Scenes, n_labels: int, costs: Sequence[float]) -> dict[str, dict[str, FloatArray]]:
    """Compute Jaccard indices, by set of scenes, of the most probable labels and of a linear SVM on the potentials."""
    # The SVM weighs labels by their inverse frequency, as the loss does.
    from sklearn.svm import LinearSVC

    def indices(predict: Callable[[FloatArray], IntArray]) -> dict[str, FloatArray]:
        return {
            name: jaccard([(truth, predict(x.features[:, :-1])) for x, truth in examples], n_labels)
            for name, examples in scenes.judged.items()
        }

    indices_of = {UNARIES: indices(lambda potentials: potentials.argmax(axis=1))}
    features = np.concatenate([x.features[:, :-1] for x, _ in scenes.training])
    labels = np.concatenate([truth for _, truth in scenes.training])
    best = -1.0
    for C in costs:
        svm = LinearSVC(C=C, class_weight="balanced", random_state=0, max_iter=20000).fit(features, labels)
        linear = indices(svm.predict)
        # C is chosen on validation scenes alone, as parameters of the ensembles are.
        if (average := float(np.nanmean(linear["validation"]))) > best:
            best, indices_of[LINEAR] = average, linear
    return indices_of


def run(settings: Settings, draws: Sequence[Scenes], context: Context) -> Outcome:
    """Compare ensembles and baselines by the Jaccard index."""
    K, M = settings.n_classes + 1, max(settings.sizes)
    trials: list[Trial] = []
    matches: list[Trial] = []
    by_draw: list[dict[str, dict[str, FloatArray]]] = []
    for number, scenes in enumerate(draws, 1):
        model = PottsModel(K, inverse_frequencies([truth for _, truth in scenes.training], K))
        task = scenes.task(number)
        draw_table = TrialTable(tuple(run_trials(model, [task], settings, n_jobs=context.n_jobs)))
        matches += matched_trials(model, [task], draw_table, COULOMB, n_jobs=context.n_jobs).trials
        trials += draw_table.trials
        by_draw.append(unary_baselines(scenes, K, settings.svm_costs) | ensemble_indices(model, draw_table, scenes))
        context.progress(f"draw {number} of {len(draws)}")
    table, matched = TrialTable(tuple(trials)), TrialTable(tuple(matches))
    random = [*dict.fromkeys(trial.method for trial in matches)]
    indices = {
        method: {part: _average([draw[method][part] for draw in by_draw]) for part in PARTS} for method in by_draw[0]
    }
    averages = {method: [float(np.nanmean(draw[method]["test"])) for draw in by_draw] for method in indices}
    scores = {
        method: {
            f"jaccard {name}": float(np.mean([np.nanmean(draw[method][name]) for draw in by_draw])) for name in PARTS
        }
        | (table.scores(method) if method in METHODS else {})
        for method in indices
    }
    # Tests are over draws: a single draw tells nothing.
    if len(draws) > 1:
        ensembles = ("mcl", "divmcl", *COULOMB)
        for pairs in (
            [(method, SSVM) for method in ensembles],
            [("cssvm-best", name) for name in ("mcl", "divmcl")],
            [(SSVM, LINEAR), (SSVM, UNARIES)],
        ):
            scores |= contrasts(averages, pairs, where=", jaccard")
    sections = [
        Section("Jaccard index", _TEXTS["scenes: about"], [
            index_table(f"Jaccard index, {name} scenes, M = {M} (after Table 2 of the paper)",
                        {method: by_part[name] for method, by_part in indices.items()})
            for name in PARTS
        ]),
        Section("Loss", parts=[
            size_table(table, METHODS, "Pick-best weighted loss by M"),
            size_table(table, METHODS, "Mean weighted loss of the members by M", "mean"),
            size_table(matched, random, "Pick-best weighted loss of random vectors"),
        ]),
    ]  # fmt: skip
    return Outcome(
        scores=scores,
        results={
            "scores": scores,
            "jaccard": {
                method: {name: [*map(_finite, index.tolist())] for name, index in by_part.items()}
                for method, by_part in indices.items()
            },
            "jaccard by draw": averages,
            "chosen": table.chosen_learners(METHODS),
        },
        title=f"Diverse models of scenes: {settings.name}",
        sections=sections,
        provenance={"data": [asdict(images) for images in settings.images]},
    )


def ensemble_indices(model: PottsModel, table: TrialTable, scenes: Scenes) -> dict[str, dict[str, FloatArray]]:
    """Compute Jaccard indices of the best predictions of each method's members, by set of scenes."""
    indices = {}
    for method in METHODS:
        (trial,) = table.chosen(method)
        weights = cast(FloatArray, trial.weights)
        indices[method] = {
            name: jaccard(best_predictions(model, weights, examples), model.n_labels)
            for name, examples in scenes.judged.items()
        }
    return indices


def _average(indices: Sequence[FloatArray]) -> FloatArray:
    """Return the mean over draws of each label's index, NaN if it has none in any draw."""
    known = np.isfinite(indices)
    sums, counts = np.where(known, indices, 0.0).sum(axis=0), known.sum(axis=0)
    return np.asarray(np.divide(sums, counts, out=np.full(len(sums), np.nan), where=counts > 0))


def index_table(caption: str, indices: dict[str, FloatArray]) -> Table:
    """Return a row for each method, a column for each label, and the average."""
    K = len(next(iter(indices.values())))
    header = ("", "background", *(f"class {k}" for k in range(1, K)), "average")
    rows = [(method, *map(_finite, index.tolist()), float(np.nanmean(index))) for method, index in indices.items()]
    return Table(caption, header, rows)


def _finite(value: float) -> float | None:
    """Return the value, or None for NaN."""
    return value if np.isfinite(value) else None


STUDY = Study(Settings, open_scenes, run)
