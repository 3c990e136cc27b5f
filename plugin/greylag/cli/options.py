"""Options that commands share, the files that they read, and the help of spellings."""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import MISSING, dataclass, replace
from dataclasses import field as entry
from functools import cached_property
from pathlib import Path
from typing import Annotated, Any, NamedTuple, TypeVar

import typer

from greylag.base import (
    GUESSES,
    Faults,
    FormatError,
    Names,
    Parameter,
    ParameterError,
    Run,
    close,
    is_file,
    read_text,
    spell,
)
from greylag.evaluation import (
    Measure,
    Naming,
    Qrels,
    RunFile,
    SubtopicQrels,
    join_qrels,
    named_file,
    open_run,
    read_run,
    read_subtopic_qrels,
)
from greylag.evaluation import parse_measures as measures_of

SPELLING = "NAME(OPTION=VALUE,...)"
"""The metavar of an option that takes a spelling."""
HELP = "greylag.help"
"""The key of a context's `meta` whose text takes the place of the command's help."""
_log = logging.getLogger("greylag")
V = TypeVar("V")


@dataclass(frozen=True)
class Shared:
    """The options of all commands."""

    jobs: int = -1
    scheduler: str | None = None
    field: str = "title"
    lenient: bool = False
    metadata_file: Path | None = None
    inputs: Mapping[Path, Any] = entry(default_factory=dict)  # all files that are read, with models' content

    @cached_property
    def described(self) -> Mapping[str, Any] | None:
        """The fields of the metadata file; None without one."""
        if self.metadata_file is None:
            return None
        from greylag.evaluation import read_given

        return read_given(self.metadata_file)

    def metadata(self, step: Mapping[str, Any], before: Iterable[str] = ()) -> dict[str, Any] | None:
        """Make ir_metadata for a run that a step makes of runs with the tags `before`; None without --metadata."""
        if self.described is None:
            return None
        from greylag.evaluation import run_metadata

        return run_metadata([*({"name": tag} for tag in before), step], self.described)

    def topics(self, path: Path) -> dict[str, str]:
        """Read query texts by qid, of a file or name."""
        from greylag.passages import named_topics

        return named_topics(path, field=self.field, lenient=self.lenient)

    def listed_topics(self, path: Path) -> dict[str, str]:
        """Read topics whose texts do not matter: as `topics`, or a file of qids, one per line, without texts."""
        if is_file(path):
            with suppress(FormatError):  # `topics` raises it, or repairs what is wrong
                lines = read_text(path, Faults(path, lenient=None)).splitlines()
                # The first of a line of CSV, XML or JSON may have no white space, either.
                if all(re.fullmatch(rb"\s*[^\s<{\[,;]*\s*", line) for line in lines):
                    return {qid.decode(): "" for qid in b" ".join(lines).split()} or self.topics(path)
        return self.topics(path)

    def run(self, path: Path, topics: Path | None = None) -> Run:
        """Read a run, with the texts of its queries if topics are given."""
        return read_run(path, None if topics is None else self.topics(topics), lenient=self.lenient)

    def open_run(self, path: Path, topics: Path | None) -> Run | RunFile:
        """Open a run that may be larger than memory, with the texts of its queries if topics are given."""
        return open_run(path, None if topics is None else self.topics(topics), lenient=self.lenient)

    def qrels(self, path: Path | Sequence[Path], run: Iterable[str] | None = None, topics: Path | None = None) -> Qrels:
        """Read judgements of files or names, of given topics alone, or of at least one of a run's queries."""
        from greylag.passages import named_qrels

        paths = [path] if isinstance(path, Path) else path
        path, every = paths[0], {str(file): named_qrels(file, lenient=self.lenient) for file in paths}
        qrels = self.of_topics(join_qrels(every), path, topics)
        if run is not None and not any(qid in qrels for qid in run):
            reason = f"no query in common with the run, whose first query is {next(iter(run), None)!r}"
            raise FormatError(path, None, reason)
        return qrels

    def subtopic_qrels(self, path: Path) -> SubtopicQrels:
        """Read judgements by subtopic, of a file or of ``irds:NAME``."""
        from greylag.passages import subtopic_qrels_from_ir_datasets

        if str(path).startswith("irds:") and not path.exists():
            return subtopic_qrels_from_ir_datasets(str(path))
        return read_subtopic_qrels(path, lenient=self.lenient)

    def of_topics(self, judgements: dict[str, V], path: Path, topics: Path | None) -> dict[str, V]:
        """Keep the judgements of the topics; log how many others were left out."""
        if topics is None:
            return judgements
        among = self.listed_topics(topics)
        left = {qid: judged for qid, judged in judgements.items() if qid in among}
        if not left:
            raise FormatError(path, None, f"no query in common with {topics}, whose first is {next(iter(among))!r}")
        if others := len(judgements) - len(left):
            _log.info("%s: left out are %d judged queries that are not among the topics", path, others)
        return left


def _index_folders(paths: list[Path] | None) -> list[Path] | None:
    # When the option is read, so that the folders of prebuilt names are inputs of the command, too.
    from greylag.index import folders

    return paths and [*folders(paths, positions=True)]


_INDEX = (
    "Lucene index built by greylag, Anserini or Pyserini, or a prebuilt name. Repeat it for the shards of one "
    "collection."
)
SEARCHED_INDEX = typer.Option("--index", help=_INDEX)  # searching needs no positions
INDEX = typer.Option("--index", callback=_index_folders, help=_INDEX)
TOPICS = typer.Option("--topics", help="Topics: TSV (qid, tab, text), TREC format, a name of Pyserini, or irds:NAME.")
TRANSFER = typer.Option("--transfer", help="Allow a model that was trained on another collection.")


def completed(names: Callable[[], Iterable[str]]) -> Callable[[str], list[str]]:
    """Make the completion of an option whose values begin with one of these names."""
    return lambda incomplete: [name for name in names() if name.startswith(incomplete)]


QUERY_VECTORS = "Embeddings of the topics by the encoder of --vectors, in such a file"
VECTORS = typer.Option(
    "--vectors",
    help="Document embeddings (.npz, .npy with ids beside it, or JSON lines), which stages that compare documents use "
    "instead of words.",
)
NAMED_FILES = Names(lambda text: [str(named_file(text)[1])])
"""Marks texts that `named_file` reads."""
Runs = Annotated[
    list[str], typer.Argument(metavar="RUN...", help="TREC runs; NAME=FILE gives one a name in tables."), NAMED_FILES
]
TheNames = Annotated[
    Naming, typer.Option("--names", help="Name runs by path or, where these differ, by file without .run, or by tag.")
]
Teams = Annotated[
    str | None,
    typer.Option(
        "--teams",
        help="Teams of runs: a file (run's name or tag, team), or a pattern for tags and names, as '^[^-]+'.",
    ),
    Names(lambda text: [text]),
]
Topics = Annotated[Path, TOPICS]
OutputRun = Annotated[Path, typer.Option("--out", help="Run to write.")]
MEASURE = "AP"
"""The measure that is maximised by default, and the first that is shown."""
MeasureName = Annotated[
    str, typer.Option("-m", "--measure", help="Measure to maximise, such as AP, nDCG@10, RR, P@5 or AP(rel=2).")
]
Tag = Annotated[str | None, typer.Option("--tag", help="Tag of the written run.")]
PartText = Annotated[
    str | None,
    typer.Option(
        "--part",
        metavar="NUMBER/PARTS",
        help="Only a part of the topics, such as 3/16. cat joins the outputs of all parts to the whole.",
    ),
]
LETOR = "LETOR text (topics, documents, features and grades), libsvm text with FILE.group, or Parquet"
"""Of the option ``--letor``, in several commands."""
MISSING_AS_ZERO = typer.Option(
    "--missing-as-zero",
    help="Take a feature that a line of text leaves out, or a field that a document of an engine lacks, as 0, and not "
    "as missing, for XGBoost's trees that were trained on arrays with 0 there. NaN in a file stays missing.",
)


TREC_DL = re.compile(r"dl\d\d-passage|irds:msmarco-passage(-v2)?/trec-dl-.*")
"""Judgements of TREC's deep learning tracks whose grade 1 means "related": of passages, unlike documents."""


def parse_measures(names: Iterable[str], qrels: Path) -> list[Measure]:
    """Parse names of measures; warn where published figures by these judgements have another relevance level."""
    measures = [(name, measure) for name in names for measure in measures_of([name])]
    unlevelled = (measure for name, measure in measures if measure.family.has_level and "rel=" not in name)
    if (lowest := next(unlevelled, None)) and TREC_DL.fullmatch(str(qrels)) and not qrels.exists():
        level = str(replace(lowest, rel=2))
        _log.warning(f"{lowest} counts grade 1 of {qrels} as relevant; published figures do not: give {level}")
    return [measure for _, measure in measures]


class Rule(NamedTuple):
    """Options that need one of others, or cannot be given with others, and the reason; each a text of their names."""

    options: str
    reason: str
    needed: str = ""
    excluded: str = ""


def given_options(context: typer.Context) -> set[str]:
    """Return the long names of the options on the command line."""
    given = set()
    for parameter in context.command.params:
        # By source: a default is no choice, and excludes nothing.
        source = context.get_parameter_source(parameter.name or "")
        if source is not None and source.name == "COMMANDLINE":
            given.add(parameter.opts[-1])  # the long name of -m is the last
    return given


def check_rules(context: typer.Context, rules: Iterable[Rule]) -> None:
    """Refuse options that need others which are not given, or exclude others which are."""
    given = given_options(context)
    for options, reason, needed, excluded in rules:
        for option in sorted(given & set(options.split())):
            if needed and not given & set(needed.split()):
                raise ParameterError(f"{option} needs {needed.replace(' ', ' or ')}: {reason}")
            if clash := sorted(given & set(excluded.split())):
                raise ParameterError(f"{option} excludes {clash[0]}: {reason}")


class Kind(NamedTuple):
    """Something with a name and options, such as a model: a line about it, its options, and what precedes its name."""

    summary: str
    options: Mapping[str, Parameter]
    prefix: str = ""


def help_of(kinds: Mapping[str, Any]) -> Callable[[typer.Context, typer.CallbackParam, str | None], str | None]:
    """Make the callback of an option with a spelling: ``help`` lists `kinds`, ``NAME(help)`` the options of one."""

    # If one of `kinds` is given, the command's --help shows its options.
    def show(context: typer.Context, option: typer.CallbackParam, text: str | None) -> str | None:
        name, asked = re.fullmatch(r"\s*([^()]*)(.*)", text or "", re.DOTALL).groups()  # type: ignore[union-attr]
        formatter: Any = context.make_formatter()
        if name == "help":
            with formatter.section(f'What {option.opts[0]} may name; "NAME(help)" shows its options'):
                formatter.write_dl([(known, kind.summary) for known, kind in kinds.items()])
        elif name in kinds:
            with formatter.section(f'{name}: {kinds[name].summary}. Options, as in "{name}(OPTION=VALUE,...)"'):
                formatter.write_dl(list(map(_option_line, kinds[name].options.values())))
            context.meta[HELP] = formatter.getvalue()
        if name == "help" or asked == "(help)":
            typer.echo(formatter.getvalue(), nl=False)
            raise typer.Exit
        return text

    vars(show)["kinds"] = kinds  # for the error of an option that does not exist
    return show


def nearest_spelling(option: str, parameters: Iterable[Any]) -> str | None:
    """Return what works in place of an option that a command lacks, such as --k1; None if nothing is alike."""
    from greylag.features import registered_stages  # as few calls are wrong

    name, known = option.strip("-").replace("-", "_"), list(parameters)
    for ours in (name, *GUESSES.get(name, ())):
        for parameter in known:  # the long name of -m is its last, and an argument has its name
            if parameter.opts[-1].lstrip("-").replace("-", "_") == ours:
                if parameter.param_type_name != "option":
                    return f"{parameter.metavar or ours.upper()} without an option"
                if ours != "format":
                    return str(parameter.opts[-1])
                if name in re.findall(r"\w+", parameter.metavar or ""):
                    return f"--format {name}"
        for parameter in known:
            kinds: Mapping[str, Any] = vars(parameter.callback or object).get("kinds", {})
            for kind, described in kinds.items():
                spelt = getattr(described, "prefix", "") + kind
                if kind == ours:
                    return f"{parameter.opts[-1]} {spelt}"
                if ours in described.options and ours not in (*kinds, "k"):  # which many have, for many things
                    return f'{parameter.opts[-1]} "{spelt}({ours}=VALUE)"'
    options = [parameter.opts[-1] for parameter in known if parameter.param_type_name == "option"]
    longest = {name.lstrip("-"): name for name in options}
    is_stage = option.strip("-") in registered_stages() and "stage" in longest
    like = [f"--stage {option.strip('-')}"] if is_stage else [longest[ours] for ours in close(option[2:], longest)]
    return " or ".join(like) or None


def _option_line(parameter: Parameter) -> tuple[str, str]:
    """Format an option with its default, and its type and meaning."""
    kind, meaning = parameter.documented
    default = parameter.default
    shown = "" if default in (MISSING, None, ()) else f"{default:g}" if type(default) is float else spell(default)
    return f"{parameter.name}={shown}", f"{kind}. {meaning}"
