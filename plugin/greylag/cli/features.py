"""``greylag features``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.options import (
    Features,
    Index,
    InputRun,
    Shared,
    Topics,
    listed,
    parameters,
    read_settings,
    settings_option,
)
from greylag.cli.rerank import seen_topics
from greylag.cli.running import input_files
from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.features.feature import Feature, unique_features
from greylag.features.spec import Pool, candidate_pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.letor import write_features
from greylag.ranking import FloatArray, Ranking
from greylag.runtime.parallel import parallel_map

PoolOption = Annotated[
    Pool | None,
    typer.Option("--pool", help="Pool of features: sequential dependence, full dependence, or both."),
]


def features(
    context: typer.Context,
    index: Index,
    topics: Topics,
    run: InputRun,
    out: Annotated[Path, typer.Option("--out", help="File to write: LETOR text, or NumPy if it ends in .npz.")],
    features: Features = None,
    pool: PoolOption = None,
    settings: Annotated[list[str] | None, settings_option(f"{listed(FeatureParameters)}.")] = None,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", help="Relevance judgements (a file or name), for the grades.")
    ] = None,
) -> None:
    """Write the features of a run's documents as LETOR text or NumPy arrays."""
    shared: Shared = context.obj
    if features is None and pool is None:
        raise ParameterError("give --features, --pool or both")
    values = read_settings(settings or [], parameters(FeatureParameters), of="features")
    extractor = FeatureExtractor(
        PositionalIndex.from_lucene(index), chosen_features(features, pool), FeatureParameters(**values)
    )
    rankings = shared.open_run(run, topics)
    seen_topics(input_files({"features": features}), rankings, extractor.index.fingerprint)
    judgements = None if qrels is None else shared.qrels(qrels)
    rows = parallel_map(
        partial(_features, extractor), rankings.rankings, what="features", n_jobs=shared.jobs, total=len(rankings)
    )
    write_features(out, [str(spec) for spec in extractor.specs], rows, judgements)


def chosen_features(named: str | None, pool: Pool | None) -> tuple[Feature, ...]:
    """The pool's features, then those named; the full pool if neither is given."""
    of_pool = () if pool is None and named is not None else candidate_pool(pool or "full")
    return unique_features([*of_pool, *(() if named is None else parse_features(named))])


def _features(extractor: FeatureExtractor, ranking: Ranking) -> tuple[Ranking, FloatArray]:
    return ranking, extractor(ranking)
