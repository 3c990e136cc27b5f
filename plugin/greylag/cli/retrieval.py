"""Commands that make indexes, runs, features and models."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from greylag.cli.options import (
    K1,
    B,
    CollectionForm,
    FbDocs,
    FbTerms,
    Features,
    Field,
    FirstStage,
    Index,
    InputRun,
    Jobs,
    Learner,
    Lenient,
    MaxClique,
    Mu,
    Out,
    Pool,
    PoolOption,
    Profile,
    Reranker,
    Tag,
    Topics,
    check_options,
    chosen_features,
    feature_parameters,
    given_options,
    open_positional,
    read_ranked,
)
from greylag.errors import FormatError, ParameterError

if TYPE_CHECKING:
    from greylag.ranking import Run
    from greylag.trec import Qrels

_LEARNER_OPTIONS = dict.fromkeys(("max_features", "epsilon", "retrain"), (Learner.greedy,)) | dict.fromkeys(
    ("restarts", "seed"), (Learner.coordinate_ascent,)
)
_RERANKER_OPTIONS = dict.fromkeys(("model", "transfer"), (Reranker.mrf,)) | dict.fromkeys(
    ("depth", "alpha", "graph", "neighbours", "confidence", "feedback"), (Reranker.manifold,)
)


def index(
    docs: Annotated[Path, typer.Argument(help="A file or folder of documents; .gz and .tar.gz too.")],
    out: Annotated[Path, typer.Option("--out", help="The index's folder, which must not exist yet.")],
    collection: Annotated[
        CollectionForm | None, typer.Option(help="The documents' form; told from them by default.")
    ] = None,
    threads: Annotated[int, typer.Option("--threads", help="Indexing threads.")] = 1,
) -> None:
    """Index documents with positions, and export the positions."""
    from greylag.index.positional import PositionalIndex
    from greylag.lucene.build import build_index

    n = build_index(docs, out, collection=None if collection is None else collection.value, threads=threads)
    positional = PositionalIndex.from_lucene(out)
    typer.echo(f"{out}: {n} documents, {positional.n_tokens} tokens, {positional.n_terms} terms")


def search(
    index: Index,
    topics: Topics,
    out: Out,
    model: Annotated[FirstStage, typer.Option("--model", help="BM25 or query likelihood.")] = FirstStage.bm25,
    k1: K1 = 0.9,
    b: B = 0.4,
    mu: Mu = 1000.0,
    hits: Annotated[int, typer.Option("--hits", help="Documents a query.")] = 1000,
    field: Field = "title",
    tag: Tag = None,
    jobs: Jobs = 1,
    lenient: Lenient = False,
) -> None:
    """Search with BM25 or query likelihood, and write a run."""
    from greylag.lucene.lucene_index import LuceneIndex
    from greylag.ranking import run_step
    from greylag.trec import read_topics, write_run

    queries = read_topics(topics, field=field, lenient=lenient)
    lucene = LuceneIndex(index)
    source = lucene.bm25(hits, k1=k1, b=b) if model is FirstStage.bm25 else lucene.ql(hits, mu=mu)
    write_run(run_step(source, queries, n_jobs=jobs, tag=tag or model.value), out)


def features(
    index: Index,
    topics: Topics,
    run: InputRun,
    out: Annotated[Path, typer.Option("--out", help="The file to write: LETOR text, or NumPy where it ends in .npz.")],
    features: Features = None,
    pool: PoolOption = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", help="Judgements, for the grades.")] = None,
    mu: Mu = 1000.0,
    k1: K1 = 0.9,
    b: B = 0.4,
    profile: Profile = "indri",
    max_clique: MaxClique = 3,
    fb_docs: FbDocs = 10,
    fb_terms: FbTerms = 30,
    field: Field = "title",
    lenient: Lenient = False,
) -> None:
    """Write the features of a run's documents as LETOR text or .npz."""
    from tqdm import tqdm

    from greylag.features.extract import FeatureExtractor
    from greylag.ltr.letor import write_features
    from greylag.trec import read_qrels

    if features is None and pool is None:
        raise ParameterError("give either --features or --pool, or both")
    specs = chosen_features(features, pool)
    parameters = feature_parameters(mu, k1, b, profile, max_clique, fb_docs, fb_terms)
    extractor = FeatureExtractor(open_positional(index), specs, parameters)
    rankings = read_ranked(run, topics, field, lenient)
    judgements = None if qrels is None else read_qrels(qrels, lenient=lenient)
    shown = tqdm(rankings.rankings, desc="features", unit="query", disable=None)
    write_features(out, [str(spec) for spec in specs], ((ranking, extractor(ranking)) for ranking in shown), judgements)


def train(
    index: Index,
    topics: Topics,
    qrels: Annotated[Path, typer.Option("--qrels", help="Judgements to learn from.")],
    out: Out,
    run: Annotated[Path | None, typer.Option("--run", help="The run to learn to rerank; BM25's by default.")] = None,
    measure: Annotated[
        str, typer.Option("--measure", help="What to maximise: map, nDCG@10, RR, P@5, ERR@20, …")
    ] = "map",
    pool: PoolOption = None,
    features: Features = None,
    preselect: Annotated[
        str | None, typer.Option("--preselect", help="Narrow the pool first: mmr:16, or mmr:16:0.7 with a weight.")
    ] = None,
    learner: Annotated[
        Learner, typer.Option("--learner", help="Select features greedily, or weigh all of them.")
    ] = Learner.greedy,
    max_features: Annotated[
        int | None, typer.Option("--max-features", help="greedy: select at most so many; 5.")
    ] = None,
    epsilon: Annotated[
        float | None, typer.Option("--epsilon", help="greedy: stop at a rise no larger than this; 0.")
    ] = None,
    retrain: Annotated[bool, typer.Option("--retrain", help="greedy: retrain all weights after each round.")] = False,
    restarts: Annotated[
        int | None, typer.Option("--restarts", help="coordinate-ascent: from so many starts; 3.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="coordinate-ascent: of the starts; 0.")] = None,
    mu: Mu = 1000.0,
    k1: K1 = 0.9,
    b: B = 0.4,
    profile: Profile = "indri",
    max_clique: MaxClique = 3,
    fb_docs: FbDocs = 10,
    fb_terms: FbTerms = 30,
    field: Field = "title",
    jobs: Jobs = 1,
    lenient: Lenient = False,
) -> None:
    """Learn a linear model of a pool's features (the full one, where none are named), and write it as JSON."""
    from greylag.features.extract import FeatureExtractor
    from greylag.ltr import training
    from greylag.ltr.coordinate_ascent import CoordinateAscent
    from greylag.ltr.greedy import GreedySelection
    from greylag.ltr.objectives import Objective
    from greylag.ltr.preselect import MMRPreselection
    from greylag.lucene.lucene_index import LuceneIndex
    from greylag.ranking import run_step
    from greylag.trec import read_qrels, read_topics

    preselection = None if preselect is None else MMRPreselection.parse(preselect)
    objective = Objective.parse(measure)
    given = given_options(
        max_features=max_features, epsilon=epsilon, retrain=retrain or None, restarts=restarts, seed=seed
    )
    check_options(given, _LEARNER_OPTIONS, learner, "learner")
    learners: dict[Learner, type[GreedySelection | CoordinateAscent]] = {
        Learner.greedy: GreedySelection,
        Learner.coordinate_ascent: CoordinateAscent,
    }
    method = learners[learner](objective, **given)
    specs = chosen_features(features, Pool.full if features is None and pool is None else pool)
    parameters = feature_parameters(mu, k1, b, profile, max_clique, fb_docs, fb_terms)
    judgements = read_qrels(qrels, lenient=lenient)
    if run is None:
        queries = read_topics(topics, field=field, lenient=lenient)
        rankings = run_step(LuceneIndex(index).bm25(), queries, n_jobs=jobs, tag="bm25")
    else:
        rankings = read_ranked(run, topics, field, lenient)
    _check_common(rankings, judgements, qrels)
    extractor = FeatureExtractor(open_positional(index), specs, parameters)
    data = training.training_data(rankings.rankings, judgements, extractor)
    provenance = {}
    if preselection is not None:
        provenance = {"pool": len(data.names), "preselect": str(preselection)}
        data = preselection.select(data)
    model = training.train(data, method, n_jobs=jobs, provenance=provenance)
    model.save(out)
    for spec, weight, score in zip(model.features, model.weights, model.training_scores, strict=True):
        typer.echo(f"{objective} {score:.4f}  {weight:+.6g}  {spec}")


def rerank(
    index: Index,
    topics: Topics,
    run: InputRun,
    out: Out,
    method: Annotated[
        Reranker, typer.Option("--method", help="By a model of features, or by manifold ranking.")
    ] = Reranker.mrf,
    model: Annotated[Path | None, typer.Option("--model", help="mrf: a model from `greylag train`.")] = None,
    transfer: Annotated[bool, typer.Option("--transfer", help="mrf: allow a model of another collection.")] = False,
    depth: Annotated[int | None, typer.Option("--depth", help="manifold: rerank the first so many; 100.")] = None,
    alpha: Annotated[float | None, typer.Option("--alpha", help="manifold: how far scores spread; 0.6.")] = None,
    graph: Annotated[
        str | None, typer.Option("--graph", help="manifold: connecting, knn (the default), mutual_knn or full.")
    ] = None,
    neighbours: Annotated[
        int | None, typer.Option("--neighbours", help="manifold: neighbours in a kNN graph; 10.")
    ] = None,
    confidence: Annotated[
        str | None, typer.Option("--confidence", help="manifold: start from query, or from scores too (the default).")
    ] = None,
    feedback: Annotated[
        Path | None, typer.Option("--feedback", metavar="QRELS", help="manifold: start from judged documents too.")
    ] = None,
    field: Field = "title",
    tag: Tag = None,
    jobs: Jobs = 1,
    lenient: Lenient = False,
) -> None:
    """Rerank a run by a model, or by manifold ranking."""
    from greylag.ltr.linear import LinearModel
    from greylag.ltr.rankers import MRFRanker
    from greylag.manifold.stage import ManifoldRanker
    from greylag.ranking import run_step
    from greylag.trec import read_qrels, write_run

    given = given_options(
        model=model,
        transfer=transfer or None,
        depth=depth,
        alpha=alpha,
        graph=graph,
        neighbours=neighbours,
        confidence=confidence,
        feedback=feedback,
    )
    check_options(given, _RERANKER_OPTIONS, method)
    rankings = read_ranked(run, topics, field, lenient)
    ranker: MRFRanker | ManifoldRanker
    if method is Reranker.mrf:
        if model is None:
            raise ParameterError("give the --model to rerank by, or --method manifold")
        ranker = MRFRanker(LinearModel.load(model), open_positional(index), transfer=transfer)
    else:
        if feedback is not None:
            given["feedback"] = read_qrels(feedback, lenient=lenient)
            _check_common(rankings, given["feedback"], feedback)
        ranker = ManifoldRanker(open_positional(index), **given)
    write_run(run_step(ranker, rankings, n_jobs=jobs, tag=tag or f"{rankings.tag}-{method.value}"), out)


def _check_common(rankings: Run, judgements: Qrels, path: Path) -> None:
    if not any(qid in judgements for qid in rankings):
        raise FormatError(path, None, f"no query in common with the run, whose first is {next(iter(rankings), None)!r}")
