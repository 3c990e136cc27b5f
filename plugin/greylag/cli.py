"""The command line: one function for each command, which reads files, calls the package, and writes files.

Everything heavy is imported by the command that needs it.
"""

from __future__ import annotations

import json
import logging
import sys
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

from greylag.errors import FormatError, GreylagError, ParameterError

if TYPE_CHECKING:
    from greylag.config import Experiment
    from greylag.experiments.pipeline import Outcome
    from greylag.features.weighting import FeatureParameters
    from greylag.index.positional import PositionalIndex
    from greylag.ranking import Run

app = typer.Typer(
    help="Dependence features, feature selection and learned diversity on top of a Pyserini BM25 first stage.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


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


@app.command()
def index(
    docs: Annotated[Path, typer.Argument(help="A file or folder of documents; .gz and .tar.gz too.")],
    out: Annotated[Path, typer.Option("--out", help="The index's folder, which must not exist yet.")],
    collection: Annotated[
        CollectionForm | None, typer.Option(help="The documents' form; told from them by default.")
    ] = None,
    threads: Annotated[int, typer.Option("--threads", help="Indexing threads.")] = 1,
) -> None:
    """Index documents with positions, and export the positions."""
    from greylag.index.build import build_index
    from greylag.index.positional import PositionalIndex

    n = build_index(docs, out, collection=None if collection is None else collection.value, threads=threads)
    positional = PositionalIndex.from_lucene(out)
    typer.echo(f"{out}: {n} documents, {positional.n_tokens} tokens, {positional.n_terms} terms")


@app.command()
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
    from greylag.index.lucene import LuceneIndex
    from greylag.ranking import run_step
    from greylag.trec import read_topics, write_run

    queries = read_topics(topics, field=field, lenient=lenient)
    lucene = LuceneIndex(index)
    source = lucene.bm25(hits, k1, b) if model is FirstStage.bm25 else lucene.ql(hits, mu)
    write_run(run_step(source, queries, n_jobs=jobs, tag=tag or model.value), out)


@app.command()
def features(
    index: Index,
    topics: Topics,
    run: InputRun,
    out: Annotated[Path, typer.Option("--out", help="The file to write: LETOR text, or NumPy where it ends in .npz.")],
    features: Annotated[
        str | None, typer.Option("--features", help="Features, with commas: SD/ordered/LM-O-4,…")
    ] = None,
    pool: Annotated[Pool | None, typer.Option("--pool", help="A pool of features instead.")] = None,
    qrels: Annotated[Path | None, typer.Option("--qrels", help="Judgements, for the grades.")] = None,
    mu: Mu = 1000.0,
    k1: K1 = 0.9,
    b: B = 0.4,
    profile: Profile = "indri",
    max_clique: MaxClique = 3,
    field: Field = "title",
    lenient: Lenient = False,
) -> None:
    """Write the features of a run's documents as LETOR text or .npz."""
    from tqdm import tqdm

    from greylag.features.extract import FeatureExtractor
    from greylag.features.spec import named_pool, parse_features
    from greylag.ltr.letor import write_features
    from greylag.trec import read_qrels

    if (features is None) == (pool is None):
        raise ParameterError("give either --features or --pool")
    specs = parse_features(features) if features is not None else named_pool(pool.value)  # type: ignore[union-attr]
    extractor = FeatureExtractor(_positional(index), specs, _parameters(mu, k1, b, profile, max_clique))
    rankings = _read_run(run, topics, field, lenient)
    judgements = None if qrels is None else read_qrels(qrels, lenient=lenient)
    shown = tqdm(rankings.rankings, desc="features", unit="query", disable=None)
    write_features(out, [str(spec) for spec in specs], ((ranking, extractor(ranking)) for ranking in shown), judgements)


@app.command()
def train(
    index: Index,
    topics: Topics,
    qrels: Annotated[Path, typer.Option("--qrels", help="Judgements to learn from.")],
    out: Out,
    run: Annotated[Path | None, typer.Option("--run", help="The run to learn to rerank; BM25's by default.")] = None,
    measure: Annotated[
        str, typer.Option("--measure", help="What to maximise: map, nDCG@10, RR, P@5, ERR@20, …")
    ] = "map",
    pool: PoolOption = Pool.full,
    max_features: Annotated[int, typer.Option("--max-features", help="Select at most so many.")] = 5,
    epsilon: Annotated[float, typer.Option("--epsilon", help="Stop at a rise no larger than this.")] = 0.0,
    retrain: Annotated[bool, typer.Option("--retrain", help="Retrain all weights after each round.")] = False,
    mu: Mu = 1000.0,
    k1: K1 = 0.9,
    b: B = 0.4,
    profile: Profile = "indri",
    max_clique: MaxClique = 3,
    field: Field = "title",
    jobs: Jobs = 1,
    lenient: Lenient = False,
) -> None:
    """Learn a linear model by greedy feature selection, and write it as JSON."""
    from greylag.features.extract import FeatureExtractor
    from greylag.features.spec import named_pool
    from greylag.index.lucene import LuceneIndex
    from greylag.ltr import training
    from greylag.ltr.greedy import GreedySelection
    from greylag.ltr.objectives import Objective
    from greylag.ranking import run_step
    from greylag.trec import read_qrels, read_topics

    learner = GreedySelection(Objective.parse(measure), max_features, epsilon, retrain)
    parameters = _parameters(mu, k1, b, profile, max_clique)
    judgements = read_qrels(qrels, lenient=lenient)
    if run is None:
        queries = read_topics(topics, field=field, lenient=lenient)
        rankings = run_step(LuceneIndex(index).bm25(), queries, n_jobs=jobs, tag="bm25")
    else:
        rankings = _read_run(run, topics, field, lenient)
    if not any(qid in judgements for qid in rankings):
        raise FormatError(
            qrels, None, f"no query in common with the run, whose first is {next(iter(rankings), None)!r}"
        )
    extractor = FeatureExtractor(_positional(index), named_pool(pool.value), parameters)
    data = training.training_data(rankings.rankings, judgements, extractor)
    model = training.train(data, extractor, learner, n_jobs=jobs)
    model.save(out)
    for spec, weight, score in zip(model.features, model.weights, model.training_scores, strict=True):
        typer.echo(f"{learner.objective} {score:.4f}  {weight:+.6g}  {spec}")


@app.command()
def rerank(
    index: Index,
    topics: Topics,
    run: InputRun,
    model: Annotated[Path, typer.Option("--model", help="A model from `greylag train`.")],
    out: Out,
    transfer: Annotated[bool, typer.Option("--transfer", help="Allow a model of another collection.")] = False,
    field: Field = "title",
    tag: Tag = None,
    jobs: Jobs = 1,
    lenient: Lenient = False,
) -> None:
    """Rerank a run by a model."""
    from greylag.ltr.linear import LinearModel, MRFRanker
    from greylag.ranking import run_step
    from greylag.trec import write_run

    ranker = MRFRanker(LinearModel.load(model), _positional(index), transfer)
    rankings = _read_run(run, topics, field, lenient)
    write_run(run_step(ranker, rankings, n_jobs=jobs, tag=tag or f"{rankings.tag}-mrf"), out)


@app.command()
def diversify(
    index: Index,
    run: InputRun,
    out: Out,
    topics: Annotated[Path | None, typer.Option("--topics", help="Topics; checked against the run's queries.")] = None,
    method: Annotated[Method, typer.Option("--method", help="How to diversify.")] = Method.mmr,
    relevance_weight: Annotated[float, typer.Option(help="MMR: 1 for relevance only, 0 for novelty only.")] = 0.7,
    depth: Annotated[int, typer.Option("--depth", help="Candidates: the first so many documents.")] = 100,
    k: Annotated[int, typer.Option("--k", help="How many of them to pick.")] = 20,
    field: Field = "title",
    tag: Tag = None,
    jobs: Jobs = 1,
    lenient: Lenient = False,
) -> None:
    """Reorder the top of a run so that it covers more."""
    from greylag.diversity.mmr import MMR
    from greylag.ranking import run_step
    from greylag.trec import write_run

    stage = MMR(_positional(index), relevance_weight, depth, k)
    rankings = _read_run(run, topics, field, lenient)
    write_run(run_step(stage, rankings, n_jobs=jobs, tag=tag or f"{rankings.tag}-{method.value}"), out)


@app.command()
def evaluate(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN...", help="TREC runs.")],
    qrels: Annotated[Path, typer.Option("--qrels", help="Judgements of documents, or by subtopic.")],
    measures: Annotated[
        Optional[list[str]],  # noqa: UP045
        typer.Option("-m", "--measure", help="AP, nDCG@10, P@30, RR, R@1000, …, or trec_eval's names; repeat for more."),
    ] = None,
    baseline: Annotated[Path | None, typer.Option("--baseline", help="Compare with this run.")] = None,
    test: Annotated[Test, typer.Option("--test", help="The paired test of the differences.")] = Test.t,
    per_query: Annotated[bool, typer.Option("--per-query", help="Scores of every query.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Everything, as JSON.")] = False,
    lenient: Lenient = False,
) -> None:
    """Score runs with pytrec_eval; with --baseline, test their differences from it."""
    from greylag import evaluation, trec

    by_subtopic = trec.has_subtopics(qrels)
    names = measures or (["alpha-nDCG@10", "ERR-IA@10", "S-recall@10"] if by_subtopic else ["AP", "P@10", "nDCG@10"])
    parsed = [evaluation.parse_measure(name) for name in names]
    paths = list(dict.fromkeys([*([] if baseline is None else [baseline]), *runs]))
    scores = {}
    for path in paths:
        run = trec.read_run(path, lenient=lenient)
        if by_subtopic:
            scores[str(path)] = evaluation.evaluate_by_subtopic(run, trec.read_subtopic_qrels(qrels, lenient=lenient), parsed)
        else:
            scores[str(path)] = evaluation.evaluate(run, trec.read_qrels(qrels, lenient=lenient), parsed)
    significance = None if baseline is None else evaluation.compare(scores, str(baseline), test=test.value)
    if as_json:
        typer.echo(json.dumps(evaluation.to_dict(scores, significance), indent=1))
    else:
        typer.echo(evaluation.per_query(scores) if per_query else evaluation.table(scores, significance), nl=False)


@app.command()
def experiment(
    config: Annotated[Path, typer.Argument(help="An experiment file (YAML); see configs/.")],
    out: Annotated[Path | None, typer.Option("--out", help="Where to write; runs/NAME by default.")] = None,
    check: Annotated[bool, typer.Option("--check", help="Exit with 1 unless the expected scores come out.")] = False,
    jobs: Jobs = -1,
) -> None:
    """Run a whole pipeline from a file: index, search, cross-validated training, diversity, scores."""
    from greylag.config import read_experiment

    settings = read_experiment(config)
    outcome = _run_experiment(settings, out or Path("runs") / settings.name, jobs)
    if check:
        if not settings.expected:
            raise FormatError(config, None, "--check needs expected scores in the file")
        deviations = outcome.deviations(settings.expected)
        for line in deviations:
            typer.echo(line, err=True)
        if deviations:
            raise typer.Exit(1)
        typer.echo("the expected scores came out")


@app.command()
def doctor(index: Annotated[Path | None, typer.Option("--index", help="An index to look at.")] = None) -> None:
    """Check Java, Pyserini and an index; say what to do where something is missing."""
    from greylag.index.doctor import diagnose

    checks = diagnose(index)
    for check in checks:
        typer.echo(f"{'ok     ' if check.ok else 'missing'} {check.name}: {check.detail}{'' if check.ok else f'; {check.remedy}'}")
    if not all(check.ok for check in checks):
        raise typer.Exit(1)


@app.command()
def demo(
    out: Annotated[Path, typer.Option("--out", help="Where to write.")] = Path("runs/demo"), jobs: Jobs = -1
) -> None:
    """Run the whole pipeline on a small collection that comes with greylag."""
    from importlib.resources import as_file, files

    from greylag.config import read_experiment

    with as_file(files("greylag") / "demo") as folder:
        _run_experiment(read_experiment(folder / "demo.yaml"), out, jobs)
    typer.echo(
        f"\nRuns, models and all scores are in {out}. Look next at {out / 'models' / 'fold-1.json'} for what was learnt, and try\n"
        f"  greylag evaluate --qrels QRELS {out / 'mrf.run'} --baseline {out / 'bm25.run'}\n"
        "on a collection of your own: greylag index, search, train, rerank, diversify, evaluate."
    )


def _run_experiment(settings: Experiment, out: Path, jobs: int) -> Outcome:
    from greylag.evaluation import table
    from greylag.experiments.pipeline import run_pipeline

    outcome = run_pipeline(settings, out, n_jobs=jobs, say=typer.echo)
    for scores in (outcome.scores, outcome.diversity):
        if scores:
            typer.echo(f"\n{table(scores)}", nl=False)
    return outcome


def _positional(index: Path) -> PositionalIndex:
    from greylag.index.positional import PositionalIndex

    return PositionalIndex.from_lucene(index)


def _parameters(mu: float, k1: float, b: float, profile: str, max_clique: int) -> FeatureParameters:
    from greylag.features.weighting import FeatureParameters

    return FeatureParameters(mu=mu, k1=k1, b=b, profile=profile, max_clique=max_clique)  # type: ignore[arg-type]


def _read_run(run: Path, topics: Path | None, field: str, lenient: bool) -> Run:
    from greylag.trec import read_run, read_topics

    return read_run(run, None if topics is None else read_topics(topics, field=field, lenient=lenient), lenient=lenient)


class _OneLine(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        return f"greylag: {record.levelname.lower()}: {record.getMessage()}"


def main() -> None:
    """Run the command line: exit code 0, 2 with one line for what the user got wrong, 1 for anything else."""
    import click

    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine())
    logging.getLogger("greylag").addHandler(handler)
    logging.getLogger("greylag").setLevel(logging.INFO)
    try:
        code = app(standalone_mode=False)
    except click.UsageError as error:
        context = error.ctx.command_path if error.ctx else "greylag"
        code = _fail(f"{error.format_message()} (see {context} --help)")
    except (GreylagError, FileNotFoundError, NotADirectoryError, IsADirectoryError, PermissionError) as error:
        code = _fail(str(error))
    except (KeyboardInterrupt, click.Abort):
        print("greylag: interrupted", file=sys.stderr)
        code = 1
    sys.exit(code)


def _fail(message: str) -> int:
    print(f"greylag: error: {message}", file=sys.stderr)
    return 2
