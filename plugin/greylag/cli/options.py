"""Options that several commands share, and what they are turned into."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

import typer

from greylag.errors import ParameterError

if TYPE_CHECKING:
    from greylag.features.spec import Feature
    from greylag.features.weighting import FeatureParameters
    from greylag.index.positional import PositionalIndex
    from greylag.ranking import Run


class FirstStage(StrEnum):
    """First-stage models."""

    bm25 = "bm25"
    ql = "ql"


class Pool(StrEnum):
    """Candidate pools: sequential, full, or both dependence models."""

    sd = "sd"
    fd = "fd"
    full = "full"


class Learner(StrEnum):
    """What learns a linear model."""

    greedy = "greedy"
    coordinate_ascent = "coordinate-ascent"


class CollectionForm(StrEnum):
    """Anserini's collection classes."""

    JsonCollection = "JsonCollection"
    TrecCollection = "TrecCollection"
    HtmlCollection = "HtmlCollection"


class Method(StrEnum):
    """Diversity stages."""

    svmdiv = "svmdiv"
    cssvm = "cssvm"
    essential_pages = "essential-pages"
    coverage = "coverage"
    mmr = "mmr"
    random = "random"


class DiversityLearner(StrEnum):
    """What learns to diversify."""

    svmdiv = "svmdiv"
    cssvm = "cssvm"


class Assignment(StrEnum):
    """Which members of an ensemble learn from which query."""

    all = "all"
    best = "best"
    sampled = "sampled"
    stochastic = "stochastic"


class Preset(StrEnum):
    """SVM-div's feature spaces."""

    svmdiv = "svmdiv"
    svmdiv2 = "svmdiv2"


class Reranker(StrEnum):
    """Stages that rerank by relevance."""

    mrf = "mrf"
    manifold = "manifold"


class Test(StrEnum):
    """Paired significance tests."""

    t = "t"
    wilcoxon = "wilcoxon"
    randomization = "randomization"


Index = Annotated[Path, typer.Option("--index", help="A Lucene index made by `greylag index`, Anserini or Pyserini.")]
Topics = Annotated[Path, typer.Option("--topics", help="Topics: TSV (qid, tab, text) or TREC; .gz too.")]
InputRun = Annotated[Path, typer.Option("--run", help="A TREC run.")]
Out = Annotated[Path, typer.Option("--out", help="The file to write.")]
Lenient = Annotated[bool, typer.Option("--lenient", help="Repair what can be repaired in input files, and say so.")]
Jobs = Annotated[int, typer.Option("--jobs", help="Threads; -1 for one a core. The result does not depend on it.")]
Field = Annotated[str, typer.Option("--field", help="Which part of TREC topics to search for: title or desc.")]
Tag = Annotated[Optional[str], typer.Option("--tag", help="The run's name.")]  # noqa: UP045
Mu = Annotated[float, typer.Option("--mu", help="Dirichlet prior of LM.")]
K1 = Annotated[float, typer.Option("--k1", help="BM25's term-frequency saturation.")]
B = Annotated[float, typer.Option("--b", help="BM25's length normalisation.")]
PoolOption = Annotated[Optional[Pool], typer.Option("--pool", help="A pool of features: SD, FD or both.")]  # noqa: UP045
Features = Annotated[
    Optional[str],  # noqa: UP045
    typer.Option("--features", help="Features, with commas, beside a pool's: SD/ordered/LM-O-4,prior:FILE:log,…"),
]
Profile = Annotated[
    str, typer.Option("--profile", help="Window counting: indri (no overlaps) or galago (every match).")
]
MaxClique = Annotated[int, typer.Option("--max-clique", help="Largest clique of query terms.")]
FbDocs = Annotated[int, typer.Option("--fb-docs", help="Expansion: the run's first so many documents.")]
FbTerms = Annotated[int, typer.Option("--fb-terms", help="Expansion: so many terms from them.")]


def given_options(**options: Any) -> dict[str, Any]:
    """The options that the user gave."""
    return {name: value for name, value in options.items() if value is not None}


def check_options(
    given: Iterable[str], owners: Mapping[str, Collection[StrEnum]], chosen: StrEnum, by: str = "method"
) -> None:
    """Raise `ParameterError` where an option is for other choices of ``--method`` (or `by`) than the one made."""
    for name in given:
        if chosen not in owners[name]:
            wanted = " or ".join(owner.value for owner in owners[name])
            raise ParameterError(f"--{name.replace('_', '-')} is for --{by} {wanted}")


def open_positional(index: Path) -> PositionalIndex:
    """The positional index of a Lucene index."""
    from greylag.index.positional import PositionalIndex

    return PositionalIndex.from_lucene(index)


def feature_parameters(
    mu: float, k1: float, b: float, profile: str, max_clique: int, fb_docs: int, fb_terms: int
) -> FeatureParameters:
    """The features' parameters."""
    from greylag.features.weighting import FeatureParameters

    return FeatureParameters(
        mu=mu, k1=k1, b=b, profile=profile, max_clique=max_clique, fb_docs=fb_docs, fb_terms=fb_terms  # type: ignore[arg-type]
    )  # fmt: skip


def chosen_features(features: str | None, pool: Pool | None) -> tuple[Feature, ...]:
    """A pool's features and, after them, those that are named."""
    from greylag.features.spec import named_pool, parse_features, unique_features

    named = () if features is None else parse_features(features)
    return unique_features([*(() if pool is None else named_pool(pool.value)), *named])


def read_ranked(run: Path, topics: Path | None, field: str, lenient: bool) -> Run:
    """A run with the text of its topics."""
    from greylag.trec import read_run, read_topics

    return read_run(run, None if topics is None else read_topics(topics, field=field, lenient=lenient), lenient=lenient)
