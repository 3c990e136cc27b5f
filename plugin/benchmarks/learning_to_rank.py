"""Learning to rank at the size of the web's collections: 30,000 queries x 120 documents x 136 features, five grades.

Without FULL, a hundredth of the queries. Reading and selection run in a process of their own, whose peak memory is
measured. LightGBM is measured where it is installed, on as many threads and the same data.

And MQ2008 in five folds, on one thread, compiled before: the 444 queries with a relevant document of the 627 in LETOR's
fold 1, train and test, divided anew, since the shared data have no more. Learners have their defaults and maximise
nDCG@10 with the grade as gain, as trec_eval does; LightGBM and XGBoost have theirs, 2^grade - 1. "As LambdaMART" are
200 trees of at most 15 leaves and a rate of .05. Nothing was tuned, and no query validates.
"""

import multiprocessing
import resource
import tempfile
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from benchmarks.harness import DATA, FULL, Row, installed
from benchmarks.learners import RESTARTS, fastrank_model
from greylag.base import FloatArray, IntArray
from greylag.evaluation import paired_test, split_folds
from greylag.learning import (
    CoordinateAscent,
    GreedySelection,
    Learner,
    ListwiseRegression,
    Objective,
    RankingData,
    concatenated,
    linear_scores,
    read_letor,
)
from greylag.recipes import Automatic, LambdaMART

QUERIES = 30_000 if FULL else 300
TESTED = 300  # queries
DOCUMENTS, FEATURES = 120, 136
GRADES = 0.06, 1.15, 2.0, 2.6  # thresholds on relevance with noise: 52, 31, 12, 3 and 2 per cent of the documents
BLOCK = 100  # queries written at once
THREADS = 2
TREES = 100


class Spent(NamedTuple):
    """CPU seconds and seconds of reading and of learning, peak memory in GB, and nDCG@10 on new queries."""

    reading: tuple[float, float]
    learning: tuple[float, float]
    memory: float
    score: float


def rows() -> Iterator[Row]:
    """Reading, selection, and LightGBM."""
    with tempfile.TemporaryDirectory() as folder:
        path, tested = Path(folder, "train.txt"), Path(folder, "test.txt")
        write(path, QUERIES, seed=0)
        write(tested, TESTED, seed=1)
        size = path.stat().st_size / 1e6
        name = f"{QUERIES} queries x {DOCUMENTS} documents x {FEATURES} features"
        ours = alone(select, path, tested)
        yield Row(f"{name}: reading {size:.0f} MB of LETOR text", size / ours.reading[0], "MB/CPU s", "at least 100")
        yield Row(f"{name}: selecting five features, CPU time of {THREADS} threads", ours.learning[0], "s")
        aim = "at most 600" if FULL else ""
        yield Row(f"{name}: selecting five features on {THREADS} threads", ours.learning[1], "s", aim)
        yield Row(f"{name}: peak memory", ours.memory, "GB", "at most 5" if FULL else "")
        yield Row(f"{name}: nDCG@10 of five features on new queries", ours.score, "nDCG@10")
        if installed("lightgbm"):
            theirs = alone(boost, path, tested)
            yield Row(f"LightGBM, {TREES} trees, {THREADS} threads", theirs.learning[1], "s")
            yield Row("LightGBM: CPU time", theirs.learning[0], "s")
            yield Row("LightGBM: peak memory", theirs.memory, "GB")
            yield Row("LightGBM: nDCG@10 on new queries", theirs.score, "nDCG@10")
            yield Row("selection's CPU time / LightGBM's", ours.learning[0] / theirs.learning[0], "x")
    yield from fold_rows()


def write(path: Path, queries: int, seed: int) -> None:
    """Write features that are a document's relevance with more or less noise, with six digits."""
    rng, numbers = np.random.default_rng(seed), range(1, FEATURES + 1)
    form = "%d qid:%d " + " ".join(f"{number}:%.6f" for number in numbers) + "\n"
    signal = np.linspace(0.0, 0.8, FEATURES)
    with path.open("w") as file:
        for first in range(0, queries, BLOCK):
            n = min(BLOCK, queries - first) * DOCUMENTS
            relevance = rng.standard_normal(n)
            grades = np.digitize(relevance + 0.7 * rng.standard_normal(n), GRADES)
            values = relevance[:, None] * signal + rng.standard_normal((n, FEATURES))
            qids = first + np.arange(n) // DOCUMENTS
            file.writelines(
                form % (grade, qid, *row) for grade, qid, row in zip(grades, qids, values.tolist(), strict=True)
            )


def alone(work: object, path: Path, tested: Path) -> Spent:
    """What `work` returns in a new process."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(work, path, tested).result()  # type: ignore[arg-type, no-any-return]


def clocks() -> FloatArray:
    """CPU time and time."""
    return np.array([time.process_time(), time.perf_counter()])


def memory() -> float:
    """The peak memory of this process in GB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e9


def select(path: Path, tested: Path) -> Spent:
    """Read and select, compiled before."""
    learner, test = GreedySelection("nDCG@10"), read_letor(tested)
    learner.fit(test.select_queries(test.qids[:30]).select_features(range(3)))
    start = clocks()
    data = read_letor(path)
    read = clocks()
    found = learner.fit(data, n_jobs=THREADS)
    end, peak = clocks(), memory()
    scores = test.features[:, list(found.columns)] @ np.array(found.weights)
    return Spent(tuple(read - start), tuple(end - read), peak, ndcg(test, scores))


def boost(path: Path, tested: Path) -> Spent:
    """Read, and learn with LightGBM."""
    import lightgbm

    data, test = read_letor(path), read_letor(tested)
    start = clocks()
    settings = {
        "objective": "lambdarank", "label_gain": list(range(5)), "num_threads": THREADS,
        "verbose": -1, "lambdarank_truncation_level": 13,
    }  # fmt: skip
    train = lightgbm.Dataset(data.features, label=data.grades, group=sizes(data), params=settings)
    model = lightgbm.train(settings, train, num_boost_round=TREES)
    spent, peak = clocks() - start, memory()
    return Spent((0.0, 0.0), tuple(spent), peak, ndcg(test, np.asarray(model.predict(test.features))))


def sizes(data: RankingData) -> IntArray:
    """The number of documents of each query."""
    return np.diff(data.offsets)


def ndcg(data: RankingData, scores: FloatArray) -> float:
    """The mean nDCG@10."""
    return float(np.mean(Objective.parse("nDCG@10").evaluate(data, scores)))


Score = Callable[[RankingData], FloatArray]
"""From data to a score for each of its documents."""


def fold_rows() -> Iterator[Row]:
    """Held-out quality and CPU time of learners on MQ2008, and greylag's automatic choice less each."""
    data = concatenated([read_letor(DATA / "letor_mq2008" / f"{part}.txt.gz") for part in ("train", "test")])
    answered = [qid for qid, grades in zip(data.qids, data.relevant_grades, strict=True) if len(grades)]
    data = data.select_queries(answered)
    folds = split_folds(data.qids, FOLDS, seed=1)
    found: dict[str, dict[str, FloatArray]] = {}
    for name, (learn, packages) in LEARNERS.items():
        if not installed(*packages):
            continue
        learn(data.select_queries(data.qids[:50]))  # loads, and compiles
        spent, scores = 0.0, dict[str, list[FloatArray]]()
        for test in folds:
            held_out = set(test)
            seconds, score = learn(data.select_queries([qid for qid in data.qids if qid not in held_out]))
            spent += seconds
            tested = data.select_queries(test)
            for measure in MEASURES:
                scores.setdefault(measure, []).append(Objective.parse(measure).evaluate(tested, score(tested)))
        found[name] = {measure: np.concatenate(values) for measure, values in scores.items()}
        label = f"MQ2008, {len(data.qids)} queries, {FOLDS} folds: {name}"
        for measure, values in found[name].items():
            yield Row(label, float(values.mean()), measure)
        yield Row(f"{label}: learning", spent, "CPU s")
    for name, values in found.items():
        if name != OWN:
            less = found[OWN][MEASURES[0]] - values[MEASURES[0]]
            yield Row(f"MQ2008: {OWN} less {name}, p {paired_test(less)[1]:.3f}", float(less.mean()), MEASURES[0])


def timed(work: Callable[[], Any]) -> tuple[float, Any]:
    """The CPU seconds of a call, of all threads, and what it returns."""
    begun = time.process_time()
    found = work()
    return time.process_time() - begun, found


def linear(learner: Learner) -> Callable[[RankingData], tuple[float, Score]]:
    """One of greylag's learners."""

    def learn(data: RankingData) -> tuple[float, Score]:
        spent, found = timed(lambda: learner.fit(data, n_jobs=1))
        return spent, lambda other: linear_scores(other, found.columns, found.weights)

    return learn


def lambdamart(data: RankingData) -> tuple[float, Score]:
    """Our LambdaMART, which LightGBM grows."""
    spent, trees = timed(lambda: LambdaMART(MEASURES[0]).grow(data))
    return spent, lambda other: trees.scores(other.features)


def lightgbm_defaults(data: RankingData) -> tuple[float, Score]:
    """LightGBM's lambdarank."""
    import lightgbm

    settings = {"objective": "lambdarank", "num_threads": 1, "verbose": -1}
    train = lightgbm.Dataset(data.features, label=data.grades, group=sizes(data), params=settings)
    spent, model = timed(lambda: lightgbm.train(settings, train))
    return spent, lambda other: np.asarray(model.predict(other.features))


def xgboost_trees(settings: dict[str, Any], trees: int) -> Callable[[RankingData], tuple[float, Score]]:
    """XGBoost's rank:ndcg."""

    def learn(data: RankingData) -> tuple[float, Score]:
        import xgboost

        train = xgboost.DMatrix(data.features, label=data.grades, group=sizes(data))
        options = {"objective": "rank:ndcg", "nthread": 1, **settings}
        spent, model = timed(lambda: xgboost.train(options, train, num_boost_round=trees))
        return spent, lambda other: np.asarray(model.predict(xgboost.DMatrix(other.features)), dtype=np.float64)

    return learn


FOLDS, MEASURES, OWN = 5, ("nDCG@10", "AP"), "automatic choice"
LEAVES = {"eta": 0.05, "max_leaves": 15, "max_depth": 0, "grow_policy": "lossguide"}
LEARNERS: dict[str, tuple[Callable[[RankingData], tuple[float, Score]], tuple[str, ...]]] = {
    OWN: (linear(Automatic(MEASURES[0])), ()),
    "listwise regression": (linear(ListwiseRegression(MEASURES[0])), ()),
    "greedy selection": (linear(GreedySelection(MEASURES[0])), ()),
    f"coordinate ascent, {RESTARTS} restarts": (linear(CoordinateAscent(MEASURES[0], restarts=RESTARTS)), ()),
    "LambdaMART (LightGBM, 200 trees)": (lambdamart, ("lightgbm",)),
    "LightGBM's lambdarank, 100 trees": (lightgbm_defaults, ("lightgbm",)),
    "XGBoost's rank:ndcg, 100 trees": (xgboost_trees({}, 100), ("xgboost",)),
    "XGBoost's rank:ndcg, as LambdaMART": (xgboost_trees(LEAVES, 200), ("xgboost",)),
    f"fastrank's coordinate ascent, {RESTARTS} restarts": (lambda data: fastrank_model(data, "ndcg@10"), ("fastrank",)),
}
"""By name, what learns, and the packages that it needs."""
