"""Options that several commands share."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.outputs import check_output
from greylag.errors import FormatError
from greylag.features.feature import Feature, unique_features
from greylag.features.spec import Pool, named_pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters, Profile
from greylag.ranking import Run
from greylag.trec import Qrels, RunFile, open_run, read_qrels, read_run, read_topics

MAX_JOBS = 1024


def _check_jobs(jobs: int) -> int:
    if jobs != -1 and not 1 <= jobs <= MAX_JOBS:
        raise typer.BadParameter(f"{jobs} is neither -1 nor from 1 to {MAX_JOBS}")
    return jobs


def _index_folders(paths: list[Path]) -> list[Path]:
    from greylag.lucene import prebuilt_index

    return [prebuilt_index(path) for path in paths]


Index = Annotated[
    list[Path],
    typer.Option(
        "--index",
        callback=_index_folders,
        help="Lucene index built by greylag, Anserini or Pyserini, or a prebuilt name. Given several times: the shards "
        "of one collection.",
    ),
]
Topics = Annotated[
    Path,
    typer.Option("--topics", help="Topics: TSV (qid, tab, text), TREC format, a name of Pyserini, or irds:NAME."),
]
InputRun = Annotated[Path, typer.Option("--run", help="TREC run.")]
OutputRun = Annotated[Path, typer.Option("--out", help="Run to write.")]
Tag = Annotated[str | None, typer.Option("--tag", help="Tag of the run written.")]
Lenient = Annotated[bool, typer.Option("--lenient", help="Repair faulty lines of input files, with a warning.")]
Transfer = Annotated[bool, typer.Option("--transfer", help="Allow a model trained on another collection.")]
Jobs = Annotated[
    int,
    typer.Option("--jobs", callback=_check_jobs, help="Number of threads; -1 for one per core. Results do not change."),
]


def read_judgements(path: Path, *, lenient: bool) -> Qrels:
    """Relevance judgements of a file or name."""
    from greylag.interop import named_qrels

    named = None if path.exists() else named_qrels(path)
    return read_qrels(path, lenient=lenient) if named is None else named


@dataclass(frozen=True)
class Reading:
    """How topics and runs are read."""

    field: Annotated[str, typer.Option("--field", help="Field of TREC topics to search for: title or desc.")] = "title"
    lenient: Lenient = False

    def topics(self, path: Path) -> dict[str, str]:
        """Query texts by qid."""
        from greylag.interop import named_topics

        named = None if path.exists() else named_topics(path, field=self.field)
        return read_topics(path, field=self.field, lenient=self.lenient) if named is None else named

    def run(self, path: Path, topics: Path | None) -> Run:
        """A run, with the texts of its queries if topics are given."""
        return read_run(path, None if topics is None else self.topics(topics), lenient=self.lenient)

    def open_run(self, path: Path, topics: Path | None) -> Run | RunFile:
        """A run that may be larger than memory, with the texts of its queries if topics are given."""
        return open_run(path, None if topics is None else self.topics(topics), lenient=self.lenient)

    def qrels(self, path: Path, run: Run | RunFile) -> Qrels:
        """Relevance judgements, of at least one of a run's queries."""
        qrels = read_judgements(path, lenient=self.lenient)
        if not any(qid in qrels for qid in run):
            reason = f"no query in common with the run, whose first query is {next(iter(run), None)!r}"
            raise FormatError(path, None, reason)
        return qrels


def check_features(out: Path, features: Iterable[Feature]) -> None:
    """`check_output` for the files that features are read from."""
    check_output(out, [file for feature in features for file in feature.files()])


@dataclass(frozen=True)
class FeatureOptions:
    """Which features are computed, and with which parameters."""

    features: Annotated[
        str | None,
        typer.Option(
            "--features",
            help="Features, comma-separated, besides a pool's: SD/ordered/LM-O-4,score@z,run:FILE,prior:FILE.",
        ),
    ] = None
    pool: Annotated[
        Pool | None,
        typer.Option("--pool", help="Pool of features: sequential dependence, full dependence, or both."),
    ] = None
    mu: Annotated[float, typer.Option("--mu", help="Dirichlet prior of LM.")] = FeatureParameters.mu
    k1: Annotated[float, typer.Option("--k1", help="Term frequency saturation of BM25.")] = FeatureParameters.k1
    b: Annotated[float, typer.Option("--b", help="Length normalisation of BM25.")] = FeatureParameters.b
    profile: Annotated[
        Profile,
        typer.Option(
            "--profile", help="Window counts: indri (no overlaps), galago (every match) or inquery (N tokens in all)."
        ),
    ] = FeatureParameters.profile
    max_clique: Annotated[int, typer.Option("--max-clique", help="Largest clique, in query terms.")] = (
        FeatureParameters.max_clique
    )
    fb_docs: Annotated[int, typer.Option("--fb-docs", help="Expansion: number of feedback documents.")] = (
        FeatureParameters.fb_docs
    )
    fb_terms: Annotated[int, typer.Option("--fb-terms", help="Expansion: number of feedback terms.")] = (
        FeatureParameters.fb_terms
    )

    @property
    def specs(self) -> tuple[Feature, ...]:
        """The pool's features, then those named; the full pool if neither is given."""
        pool = "full" if self.features is None and self.pool is None else self.pool
        named = () if self.features is None else parse_features(self.features)
        return unique_features([*(() if pool is None else named_pool(pool)), *named])

    @property
    def parameters(self) -> FeatureParameters:
        """The features' parameters."""
        return FeatureParameters(
            mu=self.mu,
            k1=self.k1,
            b=self.b,
            profile=self.profile,
            max_clique=self.max_clique,
            fb_docs=self.fb_docs,
            fb_terms=self.fb_terms,
        )
