"""The main study: first stage, MRF features, a greedily selected linear model, MMR; cross-validated and scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, model_validator

from greylag.diversity.mmr import MMR
from greylag.errors import FormatError
from greylag.evaluation import Scores, Significance, compare, evaluate, evaluate_by_subtopic, table, to_dict
from greylag.evaluation.folds import split_folds
from greylag.evaluation.scores import highest_grades
from greylag.experiments import config
from greylag.experiments.charts import result, rounds_chart
from greylag.experiments.collection import CollectionSettings, OpenCollection, open_collection
from greylag.experiments.excerpts import excerpts
from greylag.experiments.figures import Figure
from greylag.experiments.queries import QueryChanges, query_changes, reasons
from greylag.experiments.report import Section
from greylag.experiments.study import Context, Outcome, Study, load
from greylag.experiments.tables import Table, comparison_table, means, means_table, merge_scores, models_table
from greylag.features.spec import candidate_pool
from greylag.features.weighting import FeatureParameters, Profile
from greylag.ltr import training
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.preselect import MMRPreselection
from greylag.ltr.training import CrossValidation, MRFRecipe
from greylag.lucene.lucene_index import SearchModel
from greylag.ranking import Run
from greylag.runtime.progress import each
from greylag.trec import SubtopicQrels, read_subtopic_qrels


class Features(config.Settings):
    """The candidate features and their parameters."""

    pool: Literal["sd", "fd", "full"] = "full"
    """The dependence models of the pool."""
    mu: float = 1000.0
    """Dirichlet prior of LM."""
    k1: float = 0.9
    """Saturation of term frequency by BM25."""
    b: float = 0.4
    """Length normalisation of BM25."""
    idf: Literal["lucene", "robertson"] = "lucene"
    """ln(1 + (N - df + 0.5) / (df + 0.5)), or the same without the 1."""
    profile: Profile = "indri"
    """How windows are counted: without overlaps, every match, or within N tokens in all."""
    max_clique: int = 3
    """The largest clique, in query terms."""

    @model_validator(mode="after")
    def check(self) -> Self:
        """Check the parameters before any work."""
        self.parameters()
        return self

    def parameters(self) -> FeatureParameters:
        """The parameters of the features."""
        return FeatureParameters(**self.model_dump(exclude={"pool"}))

    def recipe(self, learner: GreedySelection, preselection: MMRPreselection | None = None) -> MRFRecipe:
        """The recipe of a model of these features."""
        return MRFRecipe(candidate_pool(self.pool), learner, parameters=self.parameters(), preselection=preselection)


class Training(config.Settings):
    """Cross-validated training of the linear model."""

    objective: config.ObjectiveName = "AP"
    """The measure that is maximised, as `Objective.parse` reads it."""
    max_features: config.Positive = 5
    """The largest number of features."""
    epsilon: Annotated[float, Field(ge=0)] = 0.0
    """Selection stops if the measure rises by no more than this."""
    retrain: bool = False
    """Whether to retrain all weights after each round."""
    folds: config.Folds = 5
    """The number of folds of cross-validation over topics."""
    seed: config.Seed = 0
    """Seed of the split into folds."""

    @property
    def learner(self) -> GreedySelection:
        """The learner with these options."""
        return GreedySelection(
            self.objective, max_features=self.max_features, epsilon=self.epsilon, retrain=self.retrain
        )


class Diversify(config.Settings):
    """MMR after the model, and measures on judgements by subtopic."""

    relevance_weight: Annotated[float, Field(ge=0, le=1)] = 0.7
    """1 for relevance only, 0 for novelty only."""
    depth: config.Positive = 100
    """The candidates: the top documents."""
    k: config.Positive = 20
    """The number of candidates to pick."""
    subtopic_qrels: str
    """Path of the judgements."""
    measures: tuple[config.MeasureName, ...] = ("alpha-nDCG@10", "S-recall@10")
    """Measures of diversity."""


class Settings(CollectionSettings):
    """A whole pipeline."""

    features: Features = Features()
    training: Training = Training()
    diversify: Diversify | None = None
    measures: tuple[config.MeasureName, ...] = ("AP", "P@10", "nDCG@10")
    """Measures of relevance."""

    def check(self, topics: Sequence[str]) -> None:
        """Check the number of folds and the judgements by subtopic."""
        split_folds(topics, self.training.folds, self.training.seed)
        self.subtopics()

    def subtopics(self) -> SubtopicQrels:
        """The judgements by subtopic; empty without a diversity stage."""
        if self.diversify is None:
            return {}
        return read_subtopic_qrels(self.path(self.diversify.subtopic_qrels), lenient=self.lenient)


def run(settings: Settings, opened: OpenCollection, context: Context) -> Outcome:
    """Rank by each step, and score each step against the one before."""
    stage = settings.first_stage
    models: tuple[SearchModel, ...] = ("bm25", "ql", stage.model)
    runs: dict[str, Run] = {
        model: opened.first
        if model == stage.model
        else stage.source(opened.lucene, model).run(opened.topics, n_jobs=context.n_jobs, tag=model)
        for model in each(list(dict.fromkeys(models)), "models")
    }
    validated = cross_validate(settings, opened, context)
    runs["mrf"] = validated.run
    if (option := settings.diversify) is not None:
        mmr = MMR(opened.index, relevance_weight=option.relevance_weight, depth=option.depth, k=option.k)
        runs["mmr"] = mmr.run(runs["mrf"], n_jobs=context.n_jobs, tag="mmr")
        context.progress(
            f"diversify: MMR, relevance weight {option.relevance_weight}, {option.k} of the top {option.depth}"
        )
    scores = score(settings, opened, runs)
    order = [stage.model, "mrf", *(["mmr"] if settings.diversify else [])]
    return Outcome(
        scores=merge_scores(map(means, scores.values())),
        results={kind: to_dict(part) for kind, part in scores.items()},
        tables=[*map(table, scores.values()), "Each step against the one before:\n", *steps(order, scores)],
        title=f"{settings.name}: BM25 reranked by selected features",
        sections=_sections(scores, runs, order, opened, validated, settings.subtopics()),
        runs=runs,
        models={
            f"fold-{number}": replace(model, query_form=opened.query_form)
            for number, model in enumerate(validated.models, 1)
        },
        provenance={"fingerprint": opened.index.fingerprint},
    )


def score(settings: Settings, opened: OpenCollection, runs: Mapping[str, Run]) -> dict[str, dict[str, Scores]]:
    """Scores by kind (relevance, diversity) and system."""
    scores = {"relevance": {name: evaluate(run, opened.qrels, settings.measures) for name, run in runs.items()}}
    if (option := settings.diversify) is not None:
        subtopics = settings.subtopics()
        scores["diversity"] = {
            name: evaluate_by_subtopic(run, subtopics, option.measures) for name, run in runs.items()
        }
    return scores


def steps(order: Sequence[str], scores: Mapping[str, Mapping[str, Scores]]) -> Iterator[str]:
    """Each step of the pipeline compared with the step before."""
    for before, after in pairwise(order):
        for part in scores.values():
            pair = {before: part[before], after: part[after]}
            yield table(pair, compare(pair, before))


def cross_validate(settings: Settings, opened: OpenCollection, context: Context) -> CrossValidation:
    """Train a model for each fold on the queries of the other folds, and rerank the first stage."""
    option = settings.training
    return training.cross_validate(
        settings.features.recipe(option.learner),
        opened.first,
        opened.qrels,
        opened.index,
        folds=option.folds,
        seed=option.seed,
        n_jobs=context.n_jobs,
        tag="mrf",
        provenance={"experiment": settings.name},
        progress=context.progress,
    )


def read_pipeline(path: Path) -> Settings:
    """The settings of a main experiment file, for studies that build on its pipeline."""
    _, settings = load(path)
    if not isinstance(settings, Settings):
        raise FormatError(path, None, f"study {settings.study!r}: use an experiment file of the study 'pipeline'")
    return settings


SHOWN = 10  # documents of a ranking

_EFFECTIVENESS = """\
Every query was ranked by a model that was trained on the other folds. p is that of the two-sided paired t-test over
queries, after Holm's correction over each comparison with the step before."""
_MODELS = """\
The features of each fold's model with their places in the order of selection and their shares: weight times the
feature's standard deviation within a query, in per cent of the sum over features. The weights are in the models.

SD/unordered/BM25-U-4 means: BM25 counts neighbouring terms of the query (SD; FD: any terms of it; FI: single ones)
where they stand in any order (U; O: in the query's) within 4 tokens for each term. LM is query likelihood."""
_QUERIES = f"""\
Open a query to see the top {SHOWN} documents of both rankings. Relevant documents are highlighted, and words of the
query are underlined. Below a text stands why a document is where it is: the features by which its score differs most
from the average of the first stage's top {SHOWN}, and in brackets the cliques of the document that contribute most to
them. Of a diversified ranking, a subtopic is bold at the first document that has it."""


def _sections(
    scores: Mapping[str, Mapping[str, Scores]],
    runs: Mapping[str, Run],
    steps: Sequence[str],
    collection: OpenCollection,
    validated: CrossValidation,
    subtopics: SubtopicQrels,
) -> list[Section]:
    """The sections of the report."""
    tables: list[Table] = []
    compared = [(systems, test) for systems in scores.values() for test in _each_step(systems, steps)]
    for kind, systems in scores.items():
        queries = len(next(iter(systems.values())).qids)
        tables.append(means_table(f"{kind.capitalize()}: means over {queries} judged queries", means(systems)))
        tables.append(
            comparison_table(f"{kind.capitalize()}: each step against the one before", *_each_step(systems, steps))
        )
    learned = models_table("Order and share of features", validated.models)
    return [
        result(compared, _summary(collection, validated)),
        Section("Effectiveness", _EFFECTIVENESS, tables),
        Section("What was learned", _MODELS, [*_rounds(validated), learned]),
        Section("Queries", _QUERIES, _changes(scores, runs, steps, collection, validated, subtopics)),
    ]


def _each_step(scores: Mapping[str, Scores], steps: Sequence[str]) -> list[Significance]:
    """Each step compared with the step before."""
    return [compare({before: scores[before], after: scores[after]}, before) for before, after in pairwise(steps)]


def _rounds(validated: CrossValidation) -> list[Figure]:
    """The scores after each feature, if the models have them."""
    caption = f"{validated.models[0].objective} on the training queries after each feature, a line for each fold"
    scores = {f"fold {fold}": model.training_scores for fold, model in enumerate(validated.models, 1)}
    return [rounds_chart(caption, scores)] if all(scores.values()) else []


def _summary(collection: OpenCollection, validated: CrossValidation) -> str:
    """What was searched and learned, in a sentence."""
    model = validated.models[0]
    return (
        f"{len(collection.topics)} topics over {collection.index.n_documents} documents. {collection.first.tag} "
        f"retrieves, {validated.run.tag} reranks by features that were selected to maximise {model.objective}, in "
        f"{len(validated.folds)}-fold cross-validation over queries."
    )


def _changes(
    scores: Mapping[str, Mapping[str, Scores]],
    runs: Mapping[str, Run],
    steps: Sequence[str],
    collection: OpenCollection,
    validated: CrossValidation,
    subtopics: SubtopicQrels,
) -> list[QueryChanges]:
    """Each step, query by query: the reranked run by relevance, the diversified run by subtopics."""
    tops = {docid for name in steps for ranking in runs[name].rankings for docid in ranking.docids[:SHOWN]}
    show = excerpts(collection.texts(tops), collection.lucene.analyze)
    models = {qid: model for model, fold in zip(validated.models, validated.folds, strict=True) for qid in fold}
    why = reasons(collection.first, models, collection.index)
    changes = partial(query_changes, top=SHOWN, show=show)
    found = []
    for before, after in pairwise(steps):
        caption = f"Queries before ({before}) and after ({after})"
        pair = runs[before], runs[after]
        if after == validated.run.tag:
            found.append(changes(caption, *pair, scores["relevance"], collection.qrels, why=why))
        else:
            grades = highest_grades(subtopics)
            found.append(changes(caption, *pair, scores["diversity"], grades, subtopics=subtopics))
    return found


STUDY = Study(Settings, open_collection, run, figures=False)
