"""The main study on several collections, compared in one table, with p corrected over all comparisons."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import ConfigDict, Field, ValidationError, model_validator

from greylag.evaluation import Evaluation, Section, collections_chart, stacked
from greylag.studies import config, pipeline
from greylag.studies.collection import OpenCollection, open_collection
from greylag.studies.pipeline_report import together
from greylag.studies.study import Context, Outcome, Study


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
                [*((system, chosen.model) for system, chosen in one.systems), *one.after],
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
    kinds = {
        kind: {name: Evaluation(one.scores[kind], one.tests[kind]) for name, one in ranked.items()}
        for kind in next(iter(tests.values()))
    }
    by_kind = {kind: Evaluation({}, parts=parts) for kind, parts in kinds.items()}
    found = together(by_kind)
    joint = Section(
        "All collections", parts=[*found.tables(), *(collections_chart(one.tested) for one in by_kind.values())]
    )
    return Outcome(
        scores={f"{name}: {system}": of for name, one in outcomes.items() for system, of in one.scores.items()},
        results={name: one.results for name, one in outcomes.items()},
        evaluation=found,
        tables=[found.format(), stacked({name: one.columns for name, one in ranked.items()})],
        title=f"{settings.name}: {len(ranked)} collections",
        sections=[
            joint,
            *(replace(part, title=f"{name}: {part.title}") for name, one in outcomes.items() for part in one.sections),
        ],
        runs={f"{name}.{tag}": run for name, one in outcomes.items() for tag, run in one.runs.items()},
        models={f"{name}-{key}": model for name, one in outcomes.items() for key, model in one.models.items()},
        provenance={"fingerprints": {name: one.collection.index.fingerprint for name, one in ranked.items()}},
    )


def _within(context: Context, name: str) -> Context:
    """Return the context of a collection: its own folder, and its name before each line."""
    return Context(context.folder / name, context.n_jobs, lambda line: context.progress(f"{name}: {line}"))


STUDY = Study(Settings, open_collections, run, evaluates=True)
