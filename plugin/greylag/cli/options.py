"""Options that commands share: those of greylag itself, files, and parameters as ``--set NAME=VALUE``."""

from __future__ import annotations

import logging
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import typer

from greylag.errors import FormatError, ParameterError
from greylag.evaluation.measures import Measure, parse_measure
from greylag.features.stages import accepts, domain, read_option
from greylag.ranking import Run
from greylag.trec import Qrels, SubtopicQrels, open_run, read_qrels, read_run, read_subtopic_qrels, read_topics
from greylag.trec.runs import RunFile

_log = logging.getLogger("greylag")


V = TypeVar("V")


@dataclass(frozen=True)
class Shared:
    """The options of greylag itself, which every command may use."""

    jobs: int = -1
    scheduler: str | None = None
    field: str = "title"
    lenient: bool = False
    given: Mapping[str, Any] | None = None  # metadata of runs

    def metadata(
        self, *steps: Mapping[str, Any], before: Iterable[tuple[str, Path | None]] = ()
    ) -> dict[str, Any] | None:
        """The metadata of a run that these steps made of earlier runs (tag and file); None unless it is asked for."""
        if self.given is None:
            return None
        from greylag.experiments.provenance import run_metadata, steps_before
        from greylag.trec.metadata import read_metadata

        earlier = steps_before([(tag, {} if path is None else read_metadata(path)) for tag, path in before])
        return run_metadata({"retrieval": [*earlier, *steps]}, self.given)

    def topics(self, path: Path) -> dict[str, str]:
        """Query texts by qid, of a file or name."""
        from greylag.interop import named_topics

        named = None if path.exists() else named_topics(path, field=self.field)
        return read_topics(path, field=self.field, lenient=self.lenient) if named is None else named

    def run(self, path: Path, topics: Path | None = None) -> Run:
        """A run, with the texts of its queries if topics are given."""
        return read_run(path, None if topics is None else self.topics(topics), lenient=self.lenient)

    def open_run(self, path: Path, topics: Path | None) -> Run | RunFile:
        """A run that may be larger than memory, with the texts of its queries if topics are given."""
        return open_run(path, None if topics is None else self.topics(topics), lenient=self.lenient)

    def qrels(self, path: Path, run: Run | RunFile | None = None, topics: Path | None = None) -> Qrels:
        """Relevance judgements of a file or name; of given topics alone; of at least one of a given run's queries."""
        from greylag.interop import named_qrels

        named = None if path.exists() else named_qrels(path)
        qrels = self.of_topics(read_qrels(path, lenient=self.lenient) if named is None else named, path, topics)
        if run is not None and not any(qid in qrels for qid in run):
            reason = f"no query in common with the run, whose first query is {next(iter(run), None)!r}"
            raise FormatError(path, None, reason)
        return qrels

    def subtopic_qrels(self, path: Path) -> SubtopicQrels:
        """Judgements by subtopic, of a file or of ``irds:NAME``."""
        from greylag.interop import subtopic_qrels_from_ir_datasets

        if str(path).startswith("irds:") and not path.exists():
            return subtopic_qrels_from_ir_datasets(str(path))
        return read_subtopic_qrels(path, lenient=self.lenient)

    def of_topics(self, judgements: dict[str, V], path: Path, topics: Path | None) -> dict[str, V]:
        """The judgements of the topics alone; a line of the log says how many others were left out."""
        if topics is None:
            return judgements
        among = self.topics(topics)
        left = {qid: judged for qid, judged in judgements.items() if qid in among}
        if not left:
            raise FormatError(path, None, f"no query in common with {topics}, whose first is {next(iter(among))!r}")
        if others := len(judgements) - len(left):
            _log.info("%s: left out are %d judged queries that are not among the topics", path, others)
        return left


def _index_folders(paths: list[Path] | None) -> list[Path] | None:
    from greylag.lucene.open_index import folders

    return paths and [*folders(paths, positions=True)]


_INDEX = (
    "Lucene index built by greylag, Anserini or Pyserini, or a prebuilt name. Given several times: the shards of one "
    "collection."
)
SEARCHED = typer.Option("--index", help=_INDEX)  # searching needs no positions
INDEX = typer.Option("--index", callback=_index_folders, help=_INDEX)
TOPICS = typer.Option("--topics", help="Topics: TSV (qid, tab, text), TREC format, a name of Pyserini, or irds:NAME.")
VECTORS = typer.Option(
    "--vectors",
    help="Embeddings of documents (.npz or JSON lines), for stages that compare documents, in place of their words.",
)
Index = Annotated[list[Path], INDEX]
Topics = Annotated[Path, TOPICS]
InputRun = Annotated[Path, typer.Option("--run", help="TREC run.")]
OutputRun = Annotated[Path, typer.Option("--out", help="Run to write.")]
Tag = Annotated[str | None, typer.Option("--tag", help="Tag of the run written.")]
Features = Annotated[
    str | None,
    typer.Option(
        "--features", help="Features, comma-separated, besides a pool's: SD/ordered/LM-O-4,score@z,run:FILE,prior:FILE."
    ),
]


RelevanceLevel = Annotated[
    int | None,
    typer.Option(
        "--relevance-level",
        min=1,
        help="Lowest grade of a relevant document, for measures without one, as AP(rel=2) has.",
    ),
]
TREC_DL = re.compile(r"dl\d\d-passage|irds:msmarco-passage(-v2)?/trec-dl-.*")
"""Judgements of TREC's deep learning tracks whose grade 1 means "related": that of passages, unlike documents."""


def measures_at(names: Iterable[str], level: int | None, qrels: Path) -> list[Measure]:
    """The measures of these names, at a level where they give none; proposes one that judgements of a name need."""
    measures = [parse_measure(name, rel=level or 1) for name in names]
    levelled = [measure for measure in measures if not (measure.family.by_grade or measure.family.from_ir_measures)]
    if level is not None and not levelled:
        raise ParameterError(f"--relevance-level changes nothing: {', '.join(map(str, measures))} use all grades")
    lowest = ", ".join(str(measure) for measure in levelled if measure.rel == 1)
    if level is None and lowest and TREC_DL.fullmatch(str(qrels)) and not qrels.exists():
        _log.warning(f"{lowest} count grade 1 of {qrels} as relevant; published figures do not: --relevance-level 2")
    return measures


def settings_option(text: str) -> Any:
    """The option ``--set``, whose help ends with a list of the parameters."""
    return typer.Option("--set", metavar="NAME=VALUE", help=f"Set a parameter; can be repeated. {text}")


def parameters(kind: type, *without: str) -> dict[str, Any]:
    """The types of the parameters of a dataclass that can be set: numbers, words and whether."""
    hints = get_type_hints(kind)
    return {
        field.name: hints[field.name]
        for field in fields(kind)
        if field.init and field.name not in without and isinstance(field.default, int | float | str)
    }


def listed(kind: type, *without: str) -> str:
    """The parameters of a dataclass with their defaults, as the help of ``--set`` lists them."""
    defaults = {field.name: field.default for field in fields(kind)}
    return ", ".join(f"{name}={_spelt(defaults[name], hint)}" for name, hint in parameters(kind, *without).items())


def _spelt(value: Any, hint: Any) -> str:
    """A default as ``--set`` takes it, before the other words that it takes."""
    if isinstance(value, str):
        words = get_args(hint) if get_origin(hint) is Literal else ()
        return "|".join([value, *(word for word in words if word != value)])
    return str(value).lower() if isinstance(value, bool) else f"{value:g}"


def read_settings(texts: Iterable[str], known: Mapping[str, Any], *, of: str, many: bool = False) -> dict[str, Any]:
    """The values of ``NAME=VALUE`` by name, for parameters of known types; with `many`, tuples of ``VALUE,VALUE``."""
    settings: dict[str, Any] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        place = f"--set {text!r:.60}"
        if name not in known:
            raise ParameterError(f"{place}: {of} has no {name!r:.60}, but {', '.join(known) or 'no parameters'}")
        if not equals or name in settings:
            problem = f"{name} is given twice" if equals else "it is not of the form NAME=VALUE"
            raise ParameterError(f"{place}: {problem}")
        values = tuple(_value(name, part, known[name]) for part in (value.split(",") if many else [value]))
        settings[name] = values if many else values[0]
    return settings


def _value(name: str, text: str, hint: Any) -> Any:
    value = read_option(text)
    if not accepts(hint, value):
        raise ParameterError(f"{name} is {text!r:.60}: it must be {domain(hint)}")
    return float(value) if hint is float else value
