"""``greylag features``."""

from __future__ import annotations

from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from greylag.base import ParameterError, parallel_map, parameters, read_call, read_options
from greylag.cli.feature_options import Features, PoolOption, named_features
from greylag.cli.model_inputs import seen_topics
from greylag.cli.options import INDEX, PartText, Shared, Topics
from greylag.evaluation import Part
from greylag.features import FeatureExtractor, FeatureParameters, candidate_pool, unique_features
from greylag.index import PositionalIndex
from greylag.learning import check_qids, write_features

FEATURE_PARAMETERS = parameters(FeatureParameters)


def features(
    context: typer.Context,
    index: Annotated[list[Path], INDEX],
    topics: Topics,
    run: Annotated[Path, typer.Option("--run", help="TREC run.")],
    out: Annotated[Path, typer.Option("--out", help="File to write: LETOR text, or NumPy if it ends in .npz.")],
    features: Features = None,
    pool: PoolOption = None,
    values: Annotated[
        str | None,
        typer.Option(
            "--parameters",
            metavar="OPTION=VALUE,...",
            help=f"Parameters of features, such as mu=500,profile=galago: {', '.join(FEATURE_PARAMETERS)}.",
        ),
    ] = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", help="Judgements (a file or name), for the grades.")] = None,
    part: PartText = None,
) -> None:
    """Write the features of a run's documents as LETOR text or NumPy arrays.

    With --part, only the LETOR text of the first part names the features, so that cat joins the parts. NumPy arrays
    cannot be joined by cat.
    """
    shared: Shared = context.obj
    asked = Part.parse(part)
    if features is None and pool is None:
        raise ParameterError("give --features, --pool or both")
    named = unique_features([*(() if pool is None else candidate_pool(pool)), *named_features(features)])
    chosen = read_options("features", read_call(f"features({values or ''})")[1], FEATURE_PARAMETERS)
    positions = PositionalIndex.from_lucene(index)
    extractor = FeatureExtractor(positions, named, FeatureParameters(**chosen))
    rankings = shared.open_run(run, topics)
    if out.suffix != ".npz":
        check_qids(rankings)  # before the work
    seen_topics(shared.inputs, rankings, positions.fingerprint)
    judgements = None if qrels is None else shared.qrels(qrels)
    places = asked.places(len(rankings))
    rows = parallel_map(
        lambda ranking: (ranking, extractor(ranking)),
        asked.among(rankings.rankings, rankings),
        what="features",
        n_jobs=shared.jobs,
        total=len(places),
    )
    names, before = map(str, extractor.specs), islice(rankings, places.start)
    write_features(out, names, rows, judgements, before=before)
