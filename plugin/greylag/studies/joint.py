"""The main study on several collections, compared in one table, with p corrected over all comparisons."""

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

_MEAN = "Column mean: the mean over collections, each with the same weight"


class Settings(config.Experiment):
    """The study pipeline on several collections, whose comparisons are corrected together. Fields that all collections
    share stand beside the field collections; greylag experiment --init pipeline lists them all.
    """

    model_config = ConfigDict(extra="allow")

    collections: Annotated[Mapping[config.FileName, Mapping[str, Any]], Field(min_length=2)]
    """By its name, each collection with its own collection, topics and qrels, and any other field of the study pipeline
    that differs from the shared ones. Systems and measures must be the same for all.
    """

    @model_validator(mode="after")
    def check_collections(self) -> Self:
        """Check the fields of each collection, and that all have the same systems and measures."""
        # Steps can be corrected together, and share a table, only if all collections have the same.
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
            place, reason = config.fault(pipeline.Settings, error)
            # A field that is wrong beside the collections is that of each
            within = [] if place and place.partition(".")[0] not in own else ["collections", name]
            raise ValueError(": ".join(filter(None, [".".join(filter(None, [*within, place])), reason]))) from None
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
    tables, charts = list[Table | str](), list[Figure]()
    for kind, test in kinds.items():
        differences, p, chart = step_parts(kind, ranked)
        tables += [means_table(kind, ranked), differences, p, f"{test.method}\n"]
        charts.append(chart)
    joint = Section("All collections", parts=[*tables, *charts])
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
    """Tabulate the mean of each system by each measure: a column for each collection, and the mean of these."""
    scores = {name: one.scores[kind] for name, one in ranked.items()}
    first = next(iter(scores.values()))
    rows: list[Row] = []
    for place, measure in enumerate(first[next(iter(first))].measures):
        for system in first:
            means = [float(of_one[system].means[place]) for of_one in scores.values()]
            rows.append((system, str(measure), *means, float(np.mean(means))))
    return Table(f"{kind.capitalize()}: means over queries. {_MEAN}", ("", "measure", *scores, "mean"), rows)


def step_parts(kind: str, ranked: Mapping[str, Ranked]) -> tuple[Table, Table, Figure]:
    """Show each step by collection: differences of means, corrected p, and a chart of the first measure."""
    found: dict[tuple[str, str, Measure], list[Comparison]] = {}
    for one in ranked.values():
        for c in one.tests[kind].comparisons:
            found.setdefault((c.run, c.baseline, c.measure), []).append(c)
    first, header = next(iter(found))[2], ("", "against", "measure", *ranked)
    differences, p, bars = list[Row](), list[Row](), dict[str, tuple[float, float, float, int]]()
    for (after, before, measure), compared in found.items():
        head = after, before, str(measure)
        cells = [Marked(c.difference, "+.4f", "*" if c.significant else "") for c in compared]
        differences.append((*head, *cells, Marked(float(np.mean([c.difference for c in compared])), "+.4f")))
        p.append((*head, *(c.corrected_p for c in compared)))
        if measure == first:
            of_one = zip(ranked, compared, strict=True)
            bars |= {
                f"{after} against {before}, {name}": (c.difference, *c.interval, c.direction * c.significant)
                for name, c in of_one
            }
    caption = f"Differences in {first} by collection, with 95 % intervals that are not corrected; coloured if shown"
    return (
        Table(f"{kind.capitalize()}: differences of means. {_MEAN}", (*header, "mean"), differences),
        Table(f"{kind.capitalize()}: corrected p of the differences", header, p),
        interval_figure(caption, f"difference of {first}", bars),
    )


def _within(context: Context, name: str) -> Context:
    """Return the context of a collection: its own folder, and its name before each line."""
    return Context(context.folder / name, context.n_jobs, lambda line: context.progress(f"{name}: {line}"))


STUDY = Study(Settings, open_collections, run)
