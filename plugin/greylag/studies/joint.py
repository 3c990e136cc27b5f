"""The main study on several collections, with one table and one correction over all."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

import numpy as np
from pydantic import ConfigDict, Field, ValidationError, model_validator

from greylag.core.tables import Marked, Row, Table
from greylag.evaluation.measures import Measure
from greylag.evaluation.significance import Comparison
from greylag.reports.figures import Figure, interval_figure
from greylag.reports.report import Section
from greylag.studies import config, pipeline
from greylag.studies.collection import OpenCollection, open_collection
from greylag.studies.pipeline_report import Ranked
from greylag.studies.study import Context, Outcome, Study

EXAMPLE = {
    name: {"collection": {"docs": f"{name}/docs.jsonl"}, "topics": f"{name}/topics.tsv", "qrels": f"{name}/qrels.txt"}
    for name in ("first", "second")
}


class Settings(config.Experiment):
    """The fields of the study pipeline, which all collections share, and those of each collection."""

    model_config = ConfigDict(extra="allow")

    collections: Annotated[Mapping[config.FileName, Mapping[str, Any]], Field(min_length=2, examples=[EXAMPLE])]
    """By a collection's name the fields that are its own: collection, topics, qrels, and any other of the study
    pipeline. Those that all collections share, such as model and baselines, stand beside this field.
    """

    @model_validator(mode="after")
    def check_collections(self) -> Self:
        """Check the fields of each collection, and that all have the same systems and measures."""
        systems = {
            name: (
                [one.first_stage.name, *(source for source, _ in one.first_stage.sources)],
                [*one.systems, *one.after],
                one.measures,
                one.subtopic_qrels and one.subtopic_measures,
            )
            for name, one in self.members().items()
        }
        first = next(iter(systems))
        if other := next((name for name, found in systems.items() if found != systems[first]), None):
            raise ValueError(
                f"collections: {first} and {other} differ in their systems or measures: share these fields"
            )
        return self

    def members(self) -> dict[str, pipeline.Settings]:
        """Return the settings of each collection."""
        return {name: self._member(name, own) for name, own in self.collections.items()}

    def _member(self, name: str, own: Mapping[str, Any]) -> pipeline.Settings:
        fields = {**(self.model_extra or {}), **own, "name": name, "data": self.data}
        try:
            member = pipeline.Settings.model_validate_json(json.dumps(fields), strict=True)
        except ValidationError as error:
            first = error.errors()[0]
            place = ".".join(map(str, ("collections", name, *first["loc"])))
            raise ValueError(f"{place}: {first['msg'].removeprefix('Value error, ')}") from None
        return member.model_copy(update={"data_folder": self.data_folder, "file_folder": self.file_folder})

    def paths(self) -> Iterator[Path]:
        """Yield the files and folders that the collections name."""
        for member in self.members().values():
            yield from member.paths()


def open_collections(settings: Settings, context: Context) -> dict[str, OpenCollection]:
    """Open each collection, with a folder of its own for its index."""
    return {name: open_collection(member, _within(context, name)) for name, member in settings.members().items()}


def run(settings: Settings, opened: Mapping[str, OpenCollection], context: Context) -> Outcome:
    """Run the study pipeline on each collection, and compare all together."""
    members = settings.members()
    ranked = {name: pipeline.rank(members[name], one, _within(context, name)) for name, one in opened.items()}
    tests = pipeline.compare_steps(ranked)
    ranked = {name: replace(one, tests=tests[name]) for name, one in ranked.items()}
    outcomes = {name: pipeline.outcome(members[name], one) for name, one in ranked.items()}
    kinds = next(iter(tests.values()))
    tables = [
        part
        for kind, test in kinds.items()
        for part in (means_table(kind, ranked), differences_table(kind, ranked), f"{test.method}\n")
    ]
    joint = Section("All collections", parts=[*tables, *(differences_chart(kind, ranked) for kind in kinds)])
    return Outcome(
        scores={f"{name}: {system}": of for name, one in outcomes.items() for system, of in one.scores.items()},
        results={name: one.results for name, one in outcomes.items()},
        tables=tables,
        title=f"{settings.name}: {len(ranked)} collections",
        sections=[
            joint,
            *(replace(part, title=f"{name}: {part.title}") for name, one in outcomes.items() for part in one.sections),
        ],
        runs={f"{name}.{tag}": run for name, one in outcomes.items() for tag, run in one.runs.items()},
        models={f"{name}-{key}": model for name, one in outcomes.items() for key, model in one.models.items()},
        provenance={"fingerprints": {name: one.collection.index.fingerprint for name, one in ranked.items()}},
    )


def means_table(kind: str, ranked: Mapping[str, Ranked]) -> Table:
    """Tabulate the means of each system by the first measure: a column for each collection, and their mean."""
    scores = {name: one.scores[kind] for name, one in ranked.items()}
    first = next(iter(scores.values()))
    rows: list[Row] = []
    for system in first:
        means = [float(of_one[system].means[0]) for of_one in scores.values()]
        rows.append((system, *means, float(np.mean(means))))
    caption = f"{kind.capitalize()}: mean {first[next(iter(first))].measures[0]} by collection"
    return Table(caption, ("", *scores, "mean"), rows)


def differences_table(kind: str, ranked: Mapping[str, Ranked]) -> Table:
    """Tabulate the differences of each step by the first measure; a star marks those that are significant."""
    found = {name: _by_step(kind, one) for name, one in ranked.items()}
    rows: list[Row] = []
    for before, after in next(iter(found.values())):
        compared = [by_step[before, after] for by_step in found.values()]
        cells = [Marked(c.difference, "+.4f", "*" if c.significant else "") for c in compared]
        rows.append((after, before, *cells, Marked(float(np.mean([c.difference for c in compared])), "+.4f")))
    return Table(f"{kind.capitalize()}: differences in {_measure(kind, ranked)}", ("", "against", *found, "mean"), rows)


def differences_chart(kind: str, ranked: Mapping[str, Ranked]) -> Figure:
    """Draw the differences of each step by the first measure, by collection, with their intervals."""
    found = {name: _by_step(kind, one) for name, one in ranked.items()}
    rows = {
        f"{after} against {before}, {name}": (by_step[before, after].difference, *by_step[before, after].interval)
        for before, after in next(iter(found.values()))
        for name, by_step in found.items()
    }
    measure = _measure(kind, ranked)
    caption = f"Differences in {measure} by collection, with 95 % intervals that are not corrected"
    return interval_figure(caption, f"difference of {measure}", rows)


def _measure(kind: str, ranked: Mapping[str, Ranked]) -> Measure:
    return next(iter(ranked.values())).tests[kind].comparisons[0].measure


def _by_step(kind: str, ranked: Ranked) -> dict[tuple[str, str], Comparison]:
    """Return the comparisons by the first measure, by the systems before and after a step."""
    comparisons = ranked.tests[kind].comparisons
    return {(c.baseline, c.run): c for c in comparisons if c.measure == comparisons[0].measure}


def _within(context: Context, name: str) -> Context:
    """Return the context of a collection: its own folder, and its name before each line."""
    return Context(context.folder / name, context.n_jobs, lambda line: context.progress(f"{name}: {line}"))


STUDY = Study(Settings, open_collections, run)
