"""``greylag features``."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Annotated

import typer

from greylag.cli.options import FeatureOptions, Index, InputRun, Reading, Topics, check_features, read_judgements
from greylag.cli.running import Resumable
from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.index.positional import PositionalIndex
from greylag.ltr.letor import write_features
from greylag.ranking import FloatArray, Ranking
from greylag.runtime.parallel import parallel_map


def features(
    index: Index,
    topics: Topics,
    run: InputRun,
    out: Annotated[Path, typer.Option("--out", help="File to write: LETOR text, or NumPy if it ends in .npz.")],
    options: FeatureOptions,
    reading: Reading,
    running: Resumable,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", help="Relevance judgements (a file or name), for the grades.")
    ] = None,
) -> None:
    """Write the features of a run's documents as LETOR text or NumPy arrays."""
    if options.features is None and options.pool is None:
        raise ParameterError("give --features, --pool or both")
    check_features(out, options.specs)
    extractor = FeatureExtractor(PositionalIndex.from_lucene(index), options.specs, options.parameters)
    rankings = reading.open_run(run, topics)
    judgements = None if qrels is None else read_judgements(qrels, lenient=reading.lenient)
    rows = parallel_map(
        partial(_features, extractor), rankings.rankings, what="features", n_jobs=running.jobs, total=len(rankings)
    )
    write_features(out, [str(spec) for spec in extractor.specs], rows, judgements)


def _features(extractor: FeatureExtractor, ranking: Ranking) -> tuple[Ranking, FloatArray]:
    return ranking, extractor(ranking)
