"""Options that several commands share, and what they are turned into."""

from __future__ import annotations

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
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


class CollectionForm(StrEnum):
    """Anserini's collection classes."""

    JsonCollection = "JsonCollection"
    TrecCollection = "TrecCollection"
    HtmlCollection = "HtmlCollection"


class Method(StrEnum):
    """Diversity stages."""

    mmr = "mmr"


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
PoolOption = Annotated[Pool, typer.Option("--pool", help="The pool of candidate features.")]
Profile = Annotated[
    str, typer.Option("--profile", help="Window counting: indri (no overlaps) or galago (every match).")
]
MaxClique = Annotated[int, typer.Option("--max-clique", help="Largest clique of query terms.")]


def open_positional(index: Path) -> PositionalIndex:
    """The positional index of a Lucene index."""
    from greylag.index.positional import PositionalIndex

    return PositionalIndex.from_lucene(index)


def feature_parameters(mu: float, k1: float, b: float, profile: str, max_clique: int) -> FeatureParameters:
    """The features' parameters."""
    from greylag.features.weighting import FeatureParameters

    return FeatureParameters(mu=mu, k1=k1, b=b, profile=profile, max_clique=max_clique)  # type: ignore[arg-type]


def read_ranked(run: Path, topics: Path | None, field: str, lenient: bool) -> Run:
    """A run with the text of its topics."""
    from greylag.trec import read_run, read_topics

    return read_run(run, None if topics is None else read_topics(topics, field=field, lenient=lenient), lenient=lenient)
