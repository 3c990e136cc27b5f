"""Training of models that diversify, by ``greylag train``."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from greylag.base import ParameterError, Value, marked
from greylag.cli.model_inputs import seen_topics
from greylag.cli.options import Shared
from greylag.cli.terminal import write_line
from greylag.diversity import spelt_diversity, train_to_diversify
from greylag.evaluation import Evaluation, compare_scores, read_fields, write_run
from greylag.features import Feature
from greylag.index import PositionalIndex


def train_diversifier(
    shared: Shared,
    name: str,
    options: Mapping[str, Value],
    index: list[Path] | None,
    topics: Path | None,
    qrels: Path | None,
    run: Path | None,
    features: tuple[Feature, ...],
    folds: int | None,
    out: Path,
    out_run: Path | None,
) -> None:
    """Train a model that diversifies, write it, and say what was learned."""
    recipe, titles = spelt_diversity(name, options, tuple(map(str, features))), options.get("titles")
    if index is None or qrels is None:
        raise ParameterError(f"--model {name} needs --index and --qrels")
    if run is None:
        raise ParameterError(f"--model {name} needs a --run, whose top documents it learns to pick from")
    if topics is None and (asking := [feature for feature in features if feature.reads_query]):
        raise ParameterError(f"give --topics: the feature {asking[0]} needs the queries' texts")
    positions, first = PositionalIndex.from_lucene(index), shared.run(run, topics)
    seen = seen_topics(shared.inputs, first, positions.fingerprint)
    learned, held_out, scores = train_to_diversify(
        recipe,
        first,
        shared.subtopic_qrels(qrels),
        positions,
        titles=None if titles is None else read_fields(str(titles)),
        folds=folds,
        tag=marked(f"{first.tag}-held-out", seen),
        n_jobs=shared.jobs,
    )
    if held_out is not None and out_run is not None:
        write_run(held_out, out_run)
    learned.model.save(out)
    write_line(f"{recipe.preset} on {learned}")
    if scores:
        # Without folds, C was chosen on these queries.
        tests = None if held_out is None else compare_scores(scores, "first stage")
        write_line(f"\n{Evaluation(scores, tests)}")
