"""Whether to judge at all: the automatic choice with few judged topics beside the general model, on many collections.

The systems are those of `ranker_curve`, each with the general weights of other collections.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Annotated

from pydantic import Field

from greylag.evaluation import Scores, Section, compare_scores, parse_measure, to_dict
from greylag.studies import (
    Context,
    Experiment,
    FileName,
    Folds,
    ObjectiveName,
    Outcome,
    Positive,
    Seed,
    Study,
    Table,
    comparison_table,
    means_table,
)
from greylag_papers.beyond import ranker_curve
from greylag_papers.beyond.general import Part, PartSettings, difference, means_of, over_collections, related_names
from greylag_papers.beyond.learning_curve import learn_points, pooled, splits
from greylag_papers.beyond.ranker_curve import AUTOMATIC, BM25, GENERAL, LIGHTGBM, RM3, Opened, open_curve
from greylag_papers.texts import read_texts

SYSTEMS = (AUTOMATIC, GENERAL, BM25, RM3, LIGHTGBM)
_TEXTS = read_texts(__file__)


class Settings(Experiment):
    """The collections, and how many topics are learned from."""

    collections: Annotated[dict[FileName, Part], Field(min_length=2)]
    """Of those that the general model was learned from, under its names."""
    sizes: Annotated[tuple[Annotated[int, Field(ge=5)], ...], Field(min_length=1)] = (5, 10, 25)
    """Numbers of training topics, at least five; one above the number that a collection has stands for all of them."""
    most_topics: Positive = 200
    """The most topics of a collection, at equal distances in its file; each is held out once."""
    measure: ObjectiveName = "nDCG@10"
    """The measure that is maximised and compared."""
    folds: Folds = 5
    """The number of folds of cross-validation over topics."""
    seed: Seed = 0
    """Seeds folds, the order of training topics, and learners."""


class _Curve(ranker_curve.Settings, PartSettings):
    """The learning curve of one of the collections."""


def _curve(settings: Settings, name: str) -> _Curve:
    own = {field: getattr(settings, field) for field in ("sizes", "most_topics", "measure", "folds", "seed")}
    fields = {**dict(settings.collections[name]), **own, "name": name, "general_without": name}
    return _Curve(**fields, data_folder=settings.data_folder, file_folder=settings.file_folder)


def open_all(settings: Settings, context: Context) -> dict[str, Opened]:
    """Open and search one collection after another."""
    opened = {}
    for name in settings.collections:
        opened[name] = open_curve(_curve(settings, name), replace(context, folder=context.folder / name))
    return opened


def run(settings: Settings, opened: Mapping[str, Opened], context: Context) -> Outcome:
    """Learn from each number of topics of each collection, and compare what is learned with the general model."""
    related = related_names(settings.collections)
    measure = parse_measure(settings.measure)
    by_size: dict[int, dict[str, dict[str, Scores]]] = {}
    chosen: list[tuple[str | int, ...]] = []
    for name, collection in opened.items():
        context.progress(f"{name}: {len(collection.training)} topics")
        parts = splits(collection.training, collection.test, settings.folds, settings.seed)
        learned = learn_points(parts, settings.sizes, collection.learn, context)
        for size in settings.sizes:
            point = learned[min(size, max(learned))]
            scores = pooled(measure, parts, [{system: fold.values[system] for system in SYSTEMS} for fold in point])
            by_size.setdefault(size, {})[name] = scores
            chosen += [(name, size, fold.chosen) for fold in point]
    rows: dict[str, dict[str, float]] = {}
    sections = [Section("Few topics", _TEXTS["few_topics: collections"])]
    for size, compared in by_size.items():
        means = means_of(compared)
        tests = {name: compare_scores(own, GENERAL) for name, own in compared.items()}
        for name, row in means.items():
            comparison = next(c for c in tests[name].comparisons if c.run == AUTOMATIC)
            rows[f"{name}, {size} topics"] = row
            rows[f"{name}, {size} topics, {AUTOMATIC} less {GENERAL}"] = difference(comparison)
        for other in SYSTEMS[1:]:
            gains = {name: row[AUTOMATIC] - row[other] for name, row in means.items()}
            rows[f"all, {size} topics, {AUTOMATIC} less {other}"] = over_collections(gains, related)
        label = f"{measure}, {size} training topics"
        tables = [means_table(label, means), comparison_table(f"{label}, less {GENERAL}", *tests.values())]
        sections.append(Section(f"{size} topics", "", tables))
    choices = Table("What the automatic choice was", ("", "topics", "chosen"), chosen)
    return Outcome(
        scores=rows,
        results={
            "scores": {
                str(size): {name: to_dict(own) for name, own in compared.items()} for size, compared in by_size.items()
            },
            "chosen": [choice for *_, choice in chosen],
        },
        title="Whether to judge: few topics beside the general model",
        sections=[*sections, Section("Choices", "", [choices])],
        provenance={"fingerprints": {name: collection.fingerprint for name, collection in opened.items()}},
    )


STUDY = Study(Settings, open_all, run)
