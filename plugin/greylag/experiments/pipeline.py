"""The main study: first stage, MRF features, a greedily selected linear model, MMR; cross-validated and scored."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from typing import Annotated, Literal, Self, TypeVar

from pydantic import Field, model_validator

from greylag.diversity.mmr import MMR
from greylag.errors import FormatError, ParameterError
from greylag.evaluation import Scores, Significance, compare, evaluate, evaluate_by_subtopic, table, to_dict
from greylag.evaluation.folds import split_folds
from greylag.evaluation.scores import highest_grades
from greylag.evaluation.significance import FIGURES, narrow_table
from greylag.experiments import collection, config
from greylag.experiments.charts import result, rounds_chart, verdicts
from greylag.experiments.collection import CollectionSettings, OpenCollection, open_collection
from greylag.experiments.excerpts import excerpts
from greylag.experiments.figures import Figure
from greylag.experiments.queries import QueryChanges, query_changes, reasons
from greylag.experiments.report import Section
from greylag.experiments.study import Context, Outcome, Study, load
from greylag.experiments.tables import Table, comparison_table, means, means_table, merge_scores, models_table
from greylag.features.spec import candidate_pool
from greylag.features.weighting import FeatureParameters, Profile
from greylag.index.positional import PositionalIndex
from greylag.learning.greedy import GreedySelection
from greylag.learning.preselect import MMRPreselection
from greylag.lucene.lucene_index import LuceneIndex, SearchModel
from greylag.models import recipes as training
from greylag.models.baselines import BASELINES, BaselineRecipe
from greylag.models.recipes import CrossValidation, MRFRecipe, Recipe
from greylag.ranking import Run, marked
from greylag.runtime.progress import each
from greylag.trec import Qrels, SubtopicQrels, read_run, read_subtopic_qrels

V = TypeVar("V")
Pair = tuple[str, str]
"""The names of a step and of the one after it."""


class FirstStage(collection.FirstStage):
    """The rankings that are reranked: a search, or a run."""

    run: config.InputFile | None = None
    """Path of a TREC run, which is then reranked, and nothing is searched."""

    @property
    def name(self) -> str:
        """What the first stage is called: the model, or the run's file without its suffixes."""
        return self.model if self.run is None else Path(self.run).name.split(".")[0]

    @model_validator(mode="after")
    def check(self) -> Self:
        """Check that there is a search or a run."""
        if self.run is not None and (others := self.model_fields_set - {"run"}):
            raise ValueError(f"run and {', '.join(sorted(others))} cannot be combined: a run is not searched")
        return self


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
    """The measure that is maximised, such as AP, nDCG@10 or RR."""
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
    subtopic_qrels: config.InputFile
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
    first_stage: FirstStage = FirstStage()
    baselines: tuple[Literal["bm25", "ql", "sdm", "mrf-lm", "mrf-bm25", "rm3"], ...] = ("bm25",)
    """Baselines that rerank the first stage with parameters tuned on the topics that the model is trained on."""
    test_topics: config.InputFile | None = None
    """Path of the test topics of a split. All of `topics` are then trained on, without folds."""
    test_qrels: config.InputFile | None = None
    """Path of their judgements; by default `qrels`."""

    @model_validator(mode="after")
    def check_split(self) -> Self:
        """Check that there is a split or folds."""
        if self.test_topics is None and self.test_qrels is not None:
            raise ValueError("test_qrels needs test_topics")
        if self.test_topics is not None and (folds := self.training.model_fields_set & {"folds", "seed"}):
            raise ValueError(f"test_topics and training.{min(folds)} cannot be combined: a split has no folds")
        if (name := self.first_stage.name) in ("mrf", "mmr", *map(tuned_name, self.baselines)):
            raise ValueError(f"first_stage.run: {name!r} is the name of a step of the study: rename the file")
        return self

    def read(self) -> tuple[dict[str, str], Qrels, tuple[str, ...]]:
        """Topics, judgements, and which of the topics the results are of: the test topics of a split."""
        topics, qrels, tested = super().read()
        if self.test_topics is None:
            return topics, qrels, tested
        texts, judged = self.judged(self.test_topics, self.test_qrels or self.qrels)
        if both := [qid for qid in texts if qid in topics]:
            reason = f"{len(both)} topics, such as {both[0]!r}, are in {self.path(self.topics)}, too"
            raise FormatError(self.path(self.test_topics), None, f"{reason}: leave them out of one of the files")
        of_each = ((topics, qrels), (texts, judged))
        split = {qid: grades[qid] for among, grades in of_each for qid in among if qid in grades}
        return topics | texts, split, tuple(texts)

    def search(self, lucene: LuceneIndex | PositionalIndex, topics: Mapping[str, str], context: Context) -> Run:
        """The rankings of the first stage, tagged by the name of its file if it is a run."""
        if self.first_stage.run is None:
            return super().search(lucene, topics, context)
        path = self.path(self.first_stage.run)
        given = read_run(path, topics, lenient=self.lenient)
        first = Run(given.rankings, marked(self.first_stage.name, given.tag))
        context.progress(f"first stage: {len(first)} of {len(topics)} topics, {path}")
        return first

    def check(self, topics: Sequence[str]) -> None:
        """Check the number of folds and the judgements by subtopic."""
        if self.test_topics is None:
            try:
                split_folds(topics, self.training.folds, self.training.seed)
            except ParameterError as error:
                raise ParameterError(f"training.folds: {error}") from None
        self.subtopics(topics)

    def of_test(self, judgements: dict[str, V], tested: Sequence[str]) -> dict[str, V]:
        """The judgements of the test topics of a split; all of them without a split."""
        if self.test_topics is None:
            return judgements
        return {qid: judgements[qid] for qid in tested if qid in judgements}

    def subtopics(self, tested: Sequence[str]) -> SubtopicQrels:
        """The judgements by subtopic; empty without a diversity stage."""
        if self.diversify is None:
            return {}
        judgements = read_subtopic_qrels(self.path(self.diversify.subtopic_qrels), lenient=self.lenient)
        return self.of_test(judgements, tested)


def run(settings: Settings, opened: OpenCollection, context: Context) -> Outcome:
    """Rank by each step, and score each step against the one before, and the model against tuned baselines."""
    n_jobs, first = context.n_jobs, _tested(opened)
    searched = [first]
    if settings.first_stage.run is None:
        topics = {qid: opened.topics[qid] for qid in opened.tested}
        models: tuple[SearchModel, ...] = ("bm25", "ql", settings.first_stage.model)
        searched = [
            first
            if model == first.tag
            else settings.first_stage.source(opened.lucene, model).run(topics, n_jobs=n_jobs, tag=model)
            for model in each(list(dict.fromkeys(models)), "models")
            if model == "bm25" or isinstance(opened.lucene, LuceneIndex)
        ]
    tuned = [
        _validate(_baseline(settings, name), settings, opened, context, tuned_name(name)).run
        for name in settings.baselines
    ]
    validated = cross_validate(settings, opened, context)
    after = []
    if (option := settings.diversify) is not None:
        mmr = MMR(opened.index, relevance_weight=option.relevance_weight, depth=option.depth, k=option.k)
        after.append(mmr.run(validated.run, n_jobs=n_jobs, tag="mmr"))
        context.progress(
            f"diversify: MMR, relevance weight {option.relevance_weight}, {option.k} of the top {option.depth}"
        )
    runs = {run.tag: run for run in (*searched, *tuned, validated.run, *after)}
    compared = [(before.tag, validated.run.tag) for before in (first, *tuned)]
    compared += [(validated.run.tag, run.tag) for run in after]
    subtopics = settings.subtopics(opened.tested)
    scores = score(settings, opened, runs, subtopics)
    return Outcome(
        scores=merge_scores(map(means, scores.values())),
        results={kind: to_dict(part) for kind, part in scores.items()},
        tables=[*map(table, scores.values()), *_comparisons(compared, scores)],
        title=f"{settings.name}: {first.tag} reranked by selected features",
        sections=_sections(scores, runs, compared, opened, validated, subtopics),
        runs=runs,
        models={
            f"fold-{number}" if settings.test_topics is None else "mrf": replace(model, query_form=opened.query_form)
            for number, model in enumerate(validated.models, 1)
        },
        provenance={"fingerprint": opened.index.fingerprint},
    )


def score(
    settings: Settings, opened: OpenCollection, runs: Mapping[str, Run], subtopics: SubtopicQrels
) -> dict[str, dict[str, Scores]]:
    """Scores by kind (relevance, diversity) and system."""
    qrels = settings.of_test(opened.qrels, opened.tested)
    scores = {"relevance": {name: evaluate(run, qrels, settings.measures) for name, run in runs.items()}}
    if (option := settings.diversify) is not None:
        scores["diversity"] = {
            name: evaluate_by_subtopic(run, subtopics, option.measures) for name, run in runs.items()
        }
    return scores


def _comparisons(compared: Sequence[Pair], scores: Mapping[str, Mapping[str, Scores]]) -> Iterator[Table | str]:
    """Each step of the pipeline compared with the step before, in tables and in sentences."""
    tests = [(part, test) for part in scores.values() for test in _each_step(part, compared)]
    for part in scores.values():
        yield narrow_table(*(test for among, test in tests if among is part))
    yield f"p: paired t-test, two-sided, after Holm's correction within each pair of runs; * below 0.05.\n{FIGURES}.\n"
    yield "".join(f"{sentence}\n" for sentence in verdicts(tests))


def cross_validate(settings: Settings, opened: OpenCollection, context: Context) -> CrossValidation:
    """Train a model for each fold on the queries of the other folds, or on those of a split, and rerank the others."""
    return _validate(settings.features.recipe(settings.training.learner), settings, opened, context, "mrf")


def _validate(
    recipe: Recipe, settings: Settings, opened: OpenCollection, context: Context, tag: str
) -> CrossValidation:
    option = settings.training
    return training.cross_validate(
        recipe,
        opened.first,
        opened.qrels,
        opened.index,
        folds=option.folds if settings.test_topics is None else [opened.tested],
        seed=option.seed,
        n_jobs=context.n_jobs,
        tag=tag,
        provenance={"experiment": settings.name},
        progress=context.progress,
    )


def tuned_name(baseline: str) -> str:
    """The name of a tuned baseline's run."""
    return f"tuned-{baseline}"


def _baseline(settings: Settings, name: str) -> BaselineRecipe:
    *before, last = BASELINES[name]
    base, objective = settings.features.parameters(), settings.training.objective
    return BaselineRecipe(last, objective=objective, base=base, before=tuple(before))


def _tested(opened: OpenCollection) -> Run:
    """The first stage's rankings of the topics that the results are of."""
    tested = set(opened.tested)
    return Run(tuple(ranking for ranking in opened.first.rankings if ranking.qid in tested), opened.first.tag)


def read_pipeline(path: Path) -> Settings:
    """The settings of a main experiment file, for studies that build on its pipeline."""
    _, settings = load(path)
    if not isinstance(settings, Settings):
        raise FormatError(path, None, f"study {settings.study!r}: use an experiment file of the study 'pipeline'")
    if settings.test_topics is not None:
        raise FormatError(path, None, "test_topics: a study of this pipeline has folds, and takes no split")
    return settings


SHOWN = 10  # documents of a ranking

_EFFECTIVENESS = """\
So were the parameters of tuned baselines. p is that of the two-sided paired t-test over queries, after Holm's
correction over each comparison with the step before."""
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
    steps: Sequence[Pair],
    collection: OpenCollection,
    validated: CrossValidation,
    subtopics: SubtopicQrels,
) -> list[Section]:
    """The sections of the report."""
    tables: list[Table] = []
    compared: list[tuple[Mapping[str, Scores], Significance]] = []
    for kind, systems in scores.items():
        tests = _each_step(systems, steps)
        compared += [(systems, test) for test in tests]
        queries = len(next(iter(systems.values())).qids)
        tables.append(means_table(f"{kind.capitalize()}: means over {queries} judged queries", means(systems)))
        tables.append(comparison_table(f"{kind.capitalize()}: each step against the one before", *tests))
    learned = models_table("Order and share of features", validated.models)
    return [
        result(compared, _summary(collection, validated)),
        Section("Effectiveness", f"{_held_out(validated)} {_EFFECTIVENESS}", tables),
        Section("What was learned", _MODELS, [*_rounds(validated), learned]),
        Section("Queries", _QUERIES, _changes(scores, runs, steps, collection, validated, subtopics)),
    ]


def _each_step(scores: Mapping[str, Scores], steps: Sequence[Pair]) -> list[Significance]:
    """Each step compared with the step before."""
    return [compare({before: scores[before], after: scores[after]}, before) for before, after in steps]


def _held_out(validated: CrossValidation) -> str:
    """What the models were trained on, in a sentence."""
    if len(validated.folds) == 1:
        return f"The model was trained on {len(validated.models[0].provenance['queries'])} other queries."
    return "Every query was ranked by a model that was trained on the other folds."


def _rounds(validated: CrossValidation) -> list[Figure]:
    """The scores after each feature, if the models have them."""
    caption = f"{validated.models[0].objective} on the training queries after each feature, a line for each fold"
    scores = {f"fold {fold}": model.training_scores for fold, model in enumerate(validated.models, 1)}
    return [rounds_chart(caption, scores)] if all(scores.values()) else []


def _summary(collection: OpenCollection, validated: CrossValidation) -> str:
    """What was searched and learned, in a sentence."""
    model = validated.models[0]
    folds, queries = len(validated.folds), len(model.provenance["queries"])
    how = f"in {folds}-fold cross-validation over queries" if folds > 1 else f"on {queries} training queries"
    return (
        f"{len(collection.tested)} topics over {collection.index.n_documents} documents. {collection.first.tag} "
        f"retrieves, {validated.run.tag} reranks by features that were selected to maximise {model.objective}, {how}."
    )


def _changes(
    scores: Mapping[str, Mapping[str, Scores]],
    runs: Mapping[str, Run],
    steps: Sequence[Pair],
    collection: OpenCollection,
    validated: CrossValidation,
    subtopics: SubtopicQrels,
) -> list[QueryChanges]:
    """Each step, query by query: the reranked run by relevance, the diversified run by subtopics."""
    tops = {
        docid
        for name in dict.fromkeys(chain.from_iterable(steps))
        for ranking in runs[name].rankings
        for docid in ranking.docids[:SHOWN]
    }
    show = excerpts(collection.texts(tops), collection.lucene.analyze)
    models = {qid: model for model, fold in zip(validated.models, validated.folds, strict=True) for qid in fold}
    why = reasons(collection.first, models, collection.index)
    changes = partial(query_changes, top=SHOWN, show=show)
    found = []
    for before, after in (step for step in steps if step[0] in (collection.first.tag, validated.run.tag)):
        caption = f"Queries before ({before}) and after ({after})"
        pair = runs[before], runs[after]
        if after == validated.run.tag:
            found.append(changes(caption, *pair, scores["relevance"], collection.qrels, why=why))
        else:
            grades = highest_grades(subtopics)
            found.append(changes(caption, *pair, scores["diversity"], grades, subtopics=subtopics))
    return found


STUDY = Study(Settings, open_collection, run)
