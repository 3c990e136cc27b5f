"""Which ranker, and how many judged topics it needs: tuned baselines, learners, LightGBM, and the automatic choice.

All systems learn from the same topics, and rank topics that are held out: those of a test part, or each fold in turn.
More training topics include the fewer. `COLLECTION` computes features from an index; `FEATURES` has them from LETOR
files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated, Any

import numpy as np
from pydantic import Field

from greylag import ModelRanker, ParameterError, Run, read_qrels, read_topics
from greylag.base import FloatArray
from greylag.evaluation import (
    Figure,
    Panel,
    PooledSources,
    Scores,
    Section,
    Significance,
    compare_scores,
    evaluate,
    line_figure,
    parse_measure,
    to_dict,
)
from greylag.features import candidate_pool, parse_features
from greylag.learning import (
    CoordinateAscent,
    GreedySelection,
    Learner,
    ListwiseRegression,
    Objective,
    RankingData,
    judged_topics,
    linear_scores,
    read_letor,
    useful_features,
)
from greylag.rankers import RankingModel
from greylag.recipes import Automatic, AutomaticRecipe, LambdaMART, LambdaMARTRecipe, general_model, train_on_data
from greylag.studies import (
    CollectionSettings,
    Context,
    Experiment,
    FirstStage,
    Folds,
    InputFile,
    ObjectiveName,
    Outcome,
    Seed,
    Study,
    Table,
    comparison_table,
    means_table,
    open_collection,
)
from greylag.studies import Settings as Fields
from greylag_papers.beyond.general import difference
from greylag_papers.beyond.learning_curve import Learned, learn_points, pooled, splits
from greylag_papers.texts import read_texts

AUTOMATIC, LIGHTGBM = "automatic", "LightGBM"
BM25, RM3, SELECTED, GENERAL = "BM25", "RM3", "MRF-FS", "general"
GREEDY, LISTWISE, OF_TEN, ASCENT = "greedy", "listwise", "listwise of 10", "coordinate ascent"
BEST = "the best other"
SYSTEMS = (AUTOMATIC, GENERAL, BM25, RM3, SELECTED, GREEDY, LISTWISE, OF_TEN, ASCENT, LIGHTGBM)
_TEXTS = read_texts(__file__)


class Curve(Experiment):
    """Settings of both studies."""

    sizes: Annotated[tuple[Annotated[int, Field(ge=5)], ...], Field(min_length=1)] = (25, 50, 100, 200, 400, 800, 1600)
    """Numbers of training topics, at least five; one above the number that there are stands for all."""
    measure: ObjectiveName = "nDCG@10"
    """The measure that is maximised and compared."""
    folds: Folds = 5
    """The number of folds of cross-validation over topics, if there is no test part."""
    seed: Seed = 0
    """Seeds folds, the order of training topics, and learners."""
    lightgbm: bool = True
    """Whether LightGBM, an extra, takes part."""


class Judged(Fields):
    """Topics and judgements."""

    topics: InputFile
    """Path of the topics."""
    qrels: InputFile
    """Path of the relevance judgements."""


class Settings(CollectionSettings, Curve):
    """A collection. All systems rerank the union of the best documents by BM25 and by BM25+RM3."""

    first_stage: FirstStage = FirstStage(hits=100)
    """BM25, and the number of documents per topic."""
    test: Judged | None = None
    """The topics that are held out; by default, those of each fold in turn."""
    general_without: str | None = None
    """The collection's name among those that the general model was learned from, whose weights are left out."""


class FeatureSettings(Curve):
    """LETOR files. Topics without a relevant document are left out."""

    train: InputFile
    """Path of the training part."""
    test: InputFile | None = None
    """Path of the test part; by default, each fold is held out in turn."""


@dataclass(frozen=True)
class Opened:
    """A system to compare: `learn` ranks test topics by a model of the training topics."""

    training: Sequence[str]  # all topics with a relevant document
    test: Sequence[str] | None  # None if folds of the training topics are held out
    learn: Callable[[Sequence[str], Sequence[str]], Learned]
    baseline: str  # the system that others are compared with
    fingerprint: str = ""  # of the index, if there is one


def open_curve(settings: Settings, context: Context) -> Opened:
    """Open the collection, and search it for the topics that are held out or trained on."""
    if settings.first_stage.name != "bm25":
        raise ParameterError("the union is that of BM25 and BM25+RM3: first_stage.model must be bm25")
    if settings.lightgbm:
        LambdaMARTRecipe(LambdaMART(settings.measure))  # says so if LightGBM is missing
    opened = open_collection(settings, context)
    topics, qrels, held_out = dict(opened.topics), dict(opened.qrels), None
    if settings.test is not None:
        read = read_topics(settings.path(settings.test.topics), field=settings.queries.field, lenient=settings.lenient)
        if shared := topics.keys() & read.keys():
            raise ParameterError(f"topic {min(shared)!r} is both a training and a test topic: rename it")
        held_out = {qid: opened.query_form.shorten(text) for qid, text in read.items()}
        judged = read_qrels(settings.path(settings.test.qrels), lenient=settings.lenient)
        topics, qrels = {**topics, **held_out}, {**qrels, **{qid: judged.get(qid, {}) for qid in held_out}}
    stage = settings.first_stage
    searches = stage.search, replace(stage.search, expansion="rm3")
    sources = tuple(search.source(opened.lucene, stage.hits) for search in searches)
    # Topics without a relevant document teach nothing, and every ranking of them is as good.
    relevant = judged_topics(topics, qrels, Objective.parse(settings.measure).rel)
    training = [qid for qid in relevant if held_out is None or qid not in held_out]
    test = None if held_out is None else [qid for qid in relevant if qid in held_out]
    parts = splits(training, test, settings.folds, settings.seed)
    asked = {qid for part, order in parts for qid in (*part, *order[: max(settings.sizes)])}
    run = PooledSources(sources, k=stage.hits).run(
        {qid: text for qid, text in topics.items() if qid in asked}, n_jobs=context.n_jobs
    )

    def learn(training: Sequence[str], test: Sequence[str]) -> Learned:
        general = general_model(texts=opened.index.words is not None, without=settings.general_without)
        recipe = AutomaticRecipe(settings.measure, general=general, seed=settings.seed)
        features = recipe.features(Run(tuple(run[qid] for qid in training)), qrels, opened.index, n_jobs=context.n_jobs)
        models = rankers(recipe, features, training, context.n_jobs, lightgbm=settings.lightgbm)
        tested, judged = Run(tuple(run[qid] for qid in test)), {qid: dict(qrels[qid]) for qid in test}

        def score(model: RankingModel) -> list[float]:
            ranked = ModelRanker(model, opened.index).run(tested, n_jobs=context.n_jobs, tag="held-out")
            by_query = evaluate(ranked, judged, [settings.measure]).by_query
            return [by_query[qid] for qid in test]

        trained = dict(models)
        return Learned({name: score(model) for name, (model, _) in trained.items()}, trained[AUTOMATIC][1])

    return Opened(training, test, learn, BM25, opened.index.fingerprint)


def rankers(
    recipe: AutomaticRecipe, features: Any, qids: Sequence[str], n_jobs: int | None, *, lightgbm: bool
) -> Iterator[tuple[str, tuple[RankingModel, str]]]:
    """The models that each system learns from these topics; the automatic one says what it chose."""
    measure, index = recipe.measure, features.index
    # All systems use the same extracted features, so that they differ in learning alone.
    fitted = recipe.choose(features, qids, n_jobs=n_jobs)
    yield AUTOMATIC, (fitted.model, fitted.chosen[0])
    tuned = features.tune(qids)
    rows = features.training(tuned, qids)
    yield GENERAL, (recipe.unjudged(index).for_collection(index), "")
    # A stage alone, as a model of one feature, so that it is ranked and scored by the same code as the others.
    for name, stage in ((BM25, tuned.bm25), (RM3, tuned.rm3)):
        alone = RankingModel(parse_features(f"stage:{stage}"), (1.0,), tuned.parameters, str(measure))
        yield name, (alone.for_collection(index), "")
    pool = rows.select_features(rows.columns_of(map(str, candidate_pool(recipe.sources.pool))))
    yield SELECTED, (train_on_data(pool, GreedySelection(measure), n_jobs=n_jobs), "")
    if lightgbm:
        trees = LambdaMARTRecipe(LambdaMART(measure, seed=recipe.seed))
        yield LIGHTGBM, (trees.learn(features, qids, n_jobs=n_jobs).model, "")


def open_features(settings: FeatureSettings, context: Context) -> Opened:
    """Read the files."""
    if settings.lightgbm:
        LambdaMARTRecipe(LambdaMART(settings.measure))  # says so if LightGBM is missing
    measure, n_jobs = Objective.parse(settings.measure), context.n_jobs
    data = read_letor(settings.path(settings.train))
    tested = data if settings.test is None else read_letor(settings.path(settings.test))
    if len(tested.names) != len(data.names):
        raise ParameterError(
            f"the parts have {len(data.names)} and {len(tested.names)} features: they must be the same"
        )

    def learn(training: Sequence[str], test: Sequence[str]) -> Learned:
        rows, held_out = data.select_queries(training), replace(tested, specs=data.specs).select_queries(test)
        trained = dict(learners(settings, rows, held_out, n_jobs))
        values = {name: measure.evaluate(held_out, scores).tolist() for name, (scores, _) in trained.items()}
        return Learned(values, trained[AUTOMATIC][1])

    def relevant(part: RankingData) -> list[str]:
        return [
            qid for qid, grades in zip(part.qids, part.relevant_grades, strict=True) if (grades >= measure.rel).any()
        ]

    baseline = LIGHTGBM if settings.lightgbm else GREEDY
    return Opened(relevant(data), None if settings.test is None else relevant(tested), learn, baseline)


def learners(
    settings: Curve, rows: RankingData, held_out: RankingData, n_jobs: int | None
) -> Iterator[tuple[str, tuple[FloatArray, str]]]:
    """The scores of held-out documents by what each system learns from `rows`; the automatic one says what it chose."""
    measure, seed = settings.measure, settings.seed
    selection, choice = Automatic(measure, seed=seed).choose(rows, n_jobs=n_jobs)
    scores = linear_scores(held_out, selection.columns, np.array(selection.weights))
    yield AUTOMATIC, (scores, " + ".join(map(str, choice.chosen)))
    for name, learner in (
        (GREEDY, GreedySelection(measure)),
        (LISTWISE, ListwiseRegression(measure)),
        (OF_TEN, ListwiseRegression(measure, max_features=10)),
        (ASCENT, CoordinateAscent(measure, seed=seed)),
    ):
        yield name, (fitted(held_out, rows, rows.names, learner, n_jobs), "")
    if settings.lightgbm:
        yield LIGHTGBM, (LambdaMART(measure, seed=seed).grow(rows).scores(held_out.features), "")


def fitted(
    data: RankingData, rows: RankingData, features: Sequence[str], learner: Learner, n_jobs: int | None
) -> FloatArray:
    """Scores of all of `data` by a learner that sees only `rows`, and only these features."""
    useful, _ = useful_features(rows.select_features(rows.columns_of(features)))
    selection = learner.fit(useful, n_jobs=n_jobs)
    columns = data.columns_of(useful.names[column] for column in selection.columns)
    return linear_scores(data, columns, np.array(selection.weights))


def run(settings: Curve, opened: Opened, context: Context) -> Outcome:
    """Learn from each number of topics, and compare the systems at each."""
    parts = splits(opened.training, opened.test, settings.folds, settings.seed)
    learned = learn_points(parts, settings.sizes, opened.learn, context)
    measure, n_test = parse_measure(settings.measure), sum(len(test) for test, _ in parts)
    every_score = {size: pooled(measure, parts, [fold.values for fold in point]) for size, point in learned.items()}
    scores = {size: {name: own[name] for name in SYSTEMS if name in own} for size, own in every_score.items()}
    names = list(next(iter(scores.values())))
    every = [(size, fold) for size, point in learned.items() for fold in point]
    chosen: list[tuple[Any, ...]] = [(size, fold.chosen) for size, fold in every]
    base = opened.baseline if opened.baseline in names else GREEDY
    rows = point_rows(scores, base)
    choices = Table("What the automatic choice was, on the training topics alone", ("topics", "chosen"), chosen)
    figure = curve_figure(f"{measure} of {n_test} held-out topics", {settings.name: points(rows)})
    against = [
        comparison_table(f"{measure} less that of {name}, {n_test} held-out topics", *tests.values())
        for name, tests in ((base, compared(scores, base)), (BEST, compared(scores, BEST)))
    ]
    by_size = {f"{size} topics": row for size, row in points(rows).items()}
    means = means_table(f"{measure} by number of training topics, {n_test} held-out topics", by_size)
    return Outcome(
        scores=rows,
        results={
            "points": {str(size): to_dict(by_system) for size, by_system in scores.items()},
            "chosen": [fold.chosen for _, fold in every],
        },
        tables=[means, *against, choices],
        title=f"Which ranker, and how many topics: {settings.name}",
        sections=[
            Section("Learning curve", _TEXTS["ranker_curve: curve"], [figure]),
            Section("Differences", _TEXTS["ranker_curve: differences"], [*against, choices]),
        ],
        provenance={"fingerprint": opened.fingerprint} if opened.fingerprint else {},
    )


def points(expected: Mapping[str, Mapping[str, float]]) -> dict[int, dict[str, float]]:
    """Means by number of topics and system, among the expected scores of a learning curve."""
    return {int(name.split()[0]): dict(row) for name, row in expected.items() if name.endswith(" topics")}


def curve_figure(caption: str, collections: Mapping[str, Mapping[int, Mapping[str, float]]]) -> Figure:
    """A panel for each collection, with the means by number of topics and system."""
    panels: dict[str, Panel] = {}
    for collection, sizes in collections.items():
        systems = dict.fromkeys(name for row in sizes.values() for name in row)
        panels[collection] = {n: {size: row[n] for size, row in sizes.items() if n in row} for n in systems}, {}
    return line_figure(caption, "training topics", "", panels, log=True, alike=False, strong=AUTOMATIC)


def compared(scores: Mapping[int, Mapping[str, Scores]], baseline: str) -> dict[int, Significance]:
    """For each number of topics, all systems less the baseline; `BEST` is the best one but the automatic choice."""
    tests = {}
    for size, by_system in scores.items():
        best = max((name for name in by_system if name != AUTOMATIC), key=lambda name: by_system[name].rounded_means[0])
        other = best if baseline == BEST else baseline
        named = {name if name == other else f"{name}, {size} topics": values for name, values in by_system.items()}
        tests[size] = compare_scores(named, other)
    return tests


def point_rows(scores: Mapping[int, Mapping[str, Scores]], baseline: str) -> dict[str, dict[str, float]]:
    """The figures for experiment files: for each number of topics, the means and how the automatic choice compares."""
    tests = {baseline: compared(scores, baseline), BEST: compared(scores, BEST)}
    rows: dict[str, dict[str, float]] = {}
    for size, by_system in scores.items():
        rows[f"{size} topics"] = {name: float(values.means[0]) for name, values in by_system.items()}
        for name, by_size in tests.items():
            comparison = next(c for c in by_size[size].comparisons if c.run.startswith(AUTOMATIC))
            rows[f"{size} topics, {AUTOMATIC} less {name}"] = {**difference(comparison), "p": comparison.corrected_p}
    return rows


COLLECTION = Study(Settings, open_curve, run)
FEATURES = Study(FeatureSettings, open_features, run)
