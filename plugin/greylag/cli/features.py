"""``greylag features``."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer
from tqdm import tqdm

from greylag.cli.options import FeatureOptions, Index, InputRun, Reading, Topics, check_features, read_judgements
from greylag.errors import ParameterError
from greylag.features.extract import FeatureExtractor
from greylag.index.positional import PositionalIndex
from greylag.ltr.letor import write_features


def features(
    index: Index,
    topics: Topics,
    run: InputRun,
    out: Annotated[Path, typer.Option("--out", help="File to write: LETOR text, or NumPy if it ends in .npz.")],
    options: FeatureOptions,
    reading: Reading,
    qrels: Annotated[
        Path | None, typer.Option("--qrels", help="Relevance judgements (a file or name), for the grades.")
    ] = None,
) -> None:
    """Write the features of a run's documents as LETOR text or NumPy arrays."""
    if options.features is None and options.pool is None:
        raise ParameterError("give --features, --pool or both")
    check_features(out, options.specs)
    extractor = FeatureExtractor(PositionalIndex.from_lucene(index), options.specs, options.parameters)
    rankings = reading.run(run, topics).rankings
    judgements = None if qrels is None else read_judgements(qrels, lenient=reading.lenient)
    shown = tqdm(rankings, desc="features", unit="query", disable=None)
    names = [str(spec) for spec in extractor.specs]
    write_features(out, names, ((ranking, extractor(ranking)) for ranking in shown), judgements)
