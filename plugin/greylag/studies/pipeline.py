"""The main study: a first stage, tuned baselines, a learned ranker and stages after it, cross-validated and scored.

Rankers, searches, features and stages are spelt as on the command line.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from inspect import getsourcefile
from pathlib import Path
from textwrap import shorten
from typing import Annotated, Any, Self, TypeVar

from pydantic import model_serializer, model_validator

from greylag.base import (
    FormatError,
    Names,
    ParameterError,
    Pipeline,
    Ranking,
    Row,
    Run,
    Stage,
    Table,
    each,
    naming,
    parameters,
    read_call,
    read_options,
)
from greylag.evaluation import (
    Qrels,
    SubtopicQrels,
    compare_collections,
    read_subtopic_qrels,
    score_documents,
    score_subtopics,
    split_folds,
    to_dict,
)
from greylag.features import FeatureText, Pool, StageStep, parse_features, stage_files
from greylag.index import MODELS, LuceneIndex, QueryForm
from greylag.learning import judged_topics
from greylag.rankers import RankingModel
from greylag.recipes import (
    MODEL_KINDS,
    TUNED,
    CrossValidation,
    FusionRecipe,
    FusionWeights,
    Recipe,
    cross_validate,
    described,
    model_files,
    named_runs,
    parse_model,
    sample_topics,
)
from greylag.studies import config
from greylag.studies.collection import (
    RUN,
    CollectionSettings,
    FirstStage,
    OpenCollection,
    names_of,
    open_collection,
)
from greylag.studies.pipeline_report import Ranked, sections
from greylag.studies.study import Context, Outcome, Study
from greylag.studies.tables import means

V = TypeVar("V")
LINE_WIDTH = 100  # of a line of progress
COLUMNS_WIDTH = 60  # of the features of a system in a table
FUSION = "fusion"
"""The model that weighs the rankings of the first stage, which no index and no features are needed for."""


FUSION_OPTIONS = parameters(FusionWeights, "objective", "seed")


def stages_of(text: str) -> list[StageStep]:
    """Parse the stages of ``STAGE`` or ``STAGE>>STAGE``, each with its class."""
    steps = [StageStep.parse(part) for part in text.split(">>")]
    for step in steps:
        step.stage  # noqa: B018 - imports it
    return steps


def read_model(text: str) -> None:
    """Check the spelling of a model."""
    name, options = read_call(text)
    if name == FUSION:
        read_options(name, options, FUSION_OPTIONS)
    elif parse_model(text).recipe.diversifies:
        raise ParameterError(f"{name} diversifies: name a model that ranks")


NAMED = {name: f"tuned-{name}" for name in TUNED}
"""The names of systems that differ from their models'."""


ModelText = Annotated[str, config.readable_by(read_model), Names(model_files)]
StageText = Annotated[
    str,
    config.readable_by(stages_of),
    Names(lambda text: [file for part in text.split(">>") for file in stage_files(part)]),
]


class System(config.Settings):
    """A ranker of a study: the text of a model or, with features that are not the study's, a mapping."""

    model: ModelText
    """The ranker."""
    features: Annotated[FeatureText, config.readable_by(parse_features)] | None = None
    """Features of its own, instead of the study's features and pool."""
    pool: Pool | None = None
    """A pool of its own, instead of the study's features and pool."""

    @model_validator(mode="before")
    @classmethod
    def read(cls, given: Any) -> Any:
        """Read the text of a model without features of its own."""
        if isinstance(given, str):
            read_model(given)
            return {"model": given}
        if not isinstance(given, Mapping):
            raise ValueError("it must be text, or have the fields model, features and pool")
        return given

    @model_validator(mode="after")
    def check_features(self) -> Self:
        """Check that a model which takes no features is given none."""
        if self.is_given and not self.takes_features:
            raise ValueError(f"{self.name} takes no {'features' if self.features else 'pool'}: leave it out")
        return self

    @model_serializer(mode="wrap")
    def write(self, fields: Callable[[System], Mapping[str, Any]]) -> Any:
        """Return what `read` reads."""
        return {key: value for key, value in fields(self).items() if value is not None} if self.is_given else self.model

    @property
    def name(self) -> str:
        """The name of the model."""
        return read_call(self.model)[0]

    @property
    def spelling(self) -> str:
        """The model with what it is given beside its options."""
        given = [f"{key}={value}" for key in ("features", "pool") if (value := getattr(self, key)) is not None]
        return f"{self.model}[{','.join(given)}]" if given else self.model

    @property
    def is_given(self) -> bool:
        """Whether there are features or a pool."""
        return self.features is not None or self.pool is not None

    @property
    def takes_features(self) -> bool:
        """Whether the model can rank by features that are named."""
        return self.name != FUSION and MODEL_KINDS[self.name].pool is not None

    def columns(self) -> str:
        """Describe in a few words what the model ranks by."""
        if not self.takes_features:
            return "rankings of the first stage" if self.name == FUSION else "its own"
        ranker, features = MODEL_KINDS[self.name], parse_features(self.features) if self.features else ()
        pool = ranker.pool_for(features, self.pool)
        parts = [*(["its own"] if ranker.own else []), *([f"pool {pool}"] if pool else []), *map(str, features)]
        return shorten(", ".join(parts), COLUMNS_WIDTH, placeholder=" ...")


class Training(config.Settings):
    """Learning of all models, in cross-validation over topics or on the training part of a split."""

    objective: config.ObjectiveName = "AP"
    """The measure that all models maximise, baselines too, such as AP, nDCG@10 or RR."""
    topics: config.Positive | None = None
    """At most this many judged training topics of a split are used, drawn by the seed; all by default."""
    folds: config.Folds = 5
    """The number of folds of cross-validation over topics, the same for all models."""
    seed: config.Seed = 0
    """Seed of the split into folds, of drawn topics, and of fusion; other models have an option seed of their own."""


class Settings(CollectionSettings):
    """From topics to scores: a first stage, tuned baselines, a learned ranker, and stages after it."""

    model: System = System(model="automatic")
    """The ranker, as for greylag train --model: automatic, which chooses among all, or one with options, such as
    mrf(max_features=3), rm3 or lambdamart. Or fusion, which learns to weigh the rankings of the first stage.
    """
    features: Annotated[FeatureText, config.readable_by(parse_features)] | None = None
    """Features of the model and of all baselines that take any, as for greylag train --features: besides their own for
    automatic and lambdamart, and instead of the default pool for others, such as mrf and listwise.
    """
    pool: Pool | None = None
    """The dependence models of the features, likewise; full by default, and sd for automatic and lambdamart."""
    training: Training = Training()
    baselines: tuple[System, ...] = (System(model="bm25"),)
    """Other models that are learned in the same folds, to compare with: bm25, ql, rm3, sdm, or any other. A baseline,
    or the model, may name features and a pool of its own, instead of the study's: {model: listwise, pool: full}.
    """
    stages: tuple[StageText, ...] = ()
    """Stages to apply after the model, each on its own; spelt as for greylag rerank --stage: mmr(relevance_weight=0.7,
    k=20), xquad(aspects=FILE). Your own stages are MODULE:CLASS, from a file MODULE.py beside this one or an installed
    package. Join stages to apply them in turn, where the command line repeats --stage: rm3 >> mmr.
    """
    measures: tuple[config.MeasureName, ...] = ("AP", "P@10", "nDCG@10")
    """Measures of relevance, of all systems; topics are compared by the first."""
    subtopic_qrels: config.InputFile | None = None
    """Judgements by subtopic, by which everything is scored, too."""
    subtopic_measures: tuple[config.MeasureName, ...] = ("alpha-nDCG@10", "S-recall@10")
    """Measures of diversity, of all systems."""
    test_topics: config.InputFile | None = None
    """The test topics of a split, as `topics`. All of `topics` are then trained on, without folds. If both are the same
    file, judgements are the split, as in BEIR's form.
    """
    test_qrels: config.InputFile | None = None
    """Their judgements; by default `qrels`."""

    @model_validator(mode="after")
    def check_fields(self) -> Self:
        """Check that there is a split or folds, and that models and names can be understood."""
        if self.test_topics is None and self.test_qrels is not None:
            raise ValueError("test_qrels needs test_topics")
        if self.test_topics is None and self.training.topics is not None:
            raise ValueError("training.topics needs test_topics: it limits the training part of a split")
        if self.test_topics is not None and "folds" in self.training.model_fields_set:
            raise ValueError("test_topics and training.folds cannot be combined: a split has no folds")
        for name, system in self.systems:
            if system.name == FUSION and len(self.first_stage.sources) < 2:
                raise ValueError(f"{name}: fusion needs at least two rankings in first_stage.model")
            self.recipe(system)
        shared = [key for key in ("features", "pool") if getattr(self, key) is not None]
        if shared and all(system.is_given or not system.takes_features for system in (*self.baselines, self.model)):
            raise ValueError(f"{shared[0]}: no system ranks by it, as all have their own: leave it out")
        # Rankings of the first stage may be named as the searches that are scored beside it; other systems may not.
        before = dict.fromkeys(
            [self.first_stage.name, *(name for name, _ in self.first_stage.sources), *SCORED_SEARCHES]
        )
        names = [*before, *(name for name, _ in [*self.systems, *self.after])]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice!r} is the name of two systems: rename the run, or leave one out")
        for name in names:
            config.check_file_name(name)  # of its run
        return self

    @property
    def systems(self) -> list[tuple[str, System]]:
        """The names of the baselines and, last, of the model, each with the features that it ranks by."""
        given = [*self.baselines, self.model]
        short = [NAMED.get(system.name, system.name) for system in given]
        shared = {"features": self.features, "pool": self.pool}
        own = [system.is_given or not system.takes_features for system in given]
        systems = [system if its else system.model_copy(update=shared) for system, its in zip(given, own, strict=True)]
        return list(zip(names_of([system.spelling for system in given], short), systems, strict=True))

    @property
    def after(self) -> list[tuple[str, str]]:
        """The names and spellings of the stages; names are without modules."""
        short = ["-".join(step.name.rpartition(":")[2] for step in stages_of(text)) for text in self.stages]
        return list(zip(names_of(self.stages, short), self.stages, strict=True))

    def recipe(self, system: System, sources: Sequence[Run] = ()) -> Recipe:
        """Make the recipe of one of `systems`, also of one that fuses the sources."""
        name, options = read_call(system.model)
        if name == FUSION:
            chosen = read_options(name, options, FUSION_OPTIONS)
            weights = FusionWeights(self.training.objective, seed=self.training.seed, **chosen)
            return FusionRecipe(named_runs(sources) if sources else {}, weights, k=self.first_stage.hits)
        features = () if system.features is None else parse_features(system.features)
        placed = tuple(feature.place_files(lambda file: str(self.path(file))) for feature in features)
        recipe, form = parse_model(system.model, self.training.objective, features=placed, pool=system.pool)
        if form != QueryForm():
            raise ParameterError(f"{name}: queries are shortened by the field queries, for all systems alike")
        return recipe

    def read(self) -> tuple[dict[str, str], Qrels, tuple[str, ...]]:
        """Read topics, judgements, and which of the topics the results are of: the test topics of a split."""
        topics, qrels = self.judged(self.topics, self.qrels)
        _check_sources(self.stages, self.file_folder)
        if self.test_topics is None:
            with naming("training.folds"):  # before indexing, which may take hours
                split_folds(list(topics), self.training.folds, self.training.seed)
            return topics, qrels, tuple(topics)
        texts, judged = self.judged(self.test_topics, self.test_qrels or self.qrels)
        if self.test_topics == self.topics:  # as in BEIR's form, judgements are the split
            topics = {qid: text for qid, text in topics.items() if qid in qrels}
            texts = {qid: text for qid, text in texts.items() if qid in judged}
        if both := [qid for qid in texts if qid in topics]:
            reason = f"{len(both)} topics, such as {both[0]!r}, are in {self.topics}, too"
            raise FormatError(self.test_topics, None, f"{reason}: leave them out of one of the files")
        if (most := self.training.topics) is not None:
            drawn = sample_topics(judged_topics(topics, qrels), most, seed=self.training.seed)
            topics = {qid: topics[qid] for qid in drawn}
        return topics | texts, _select(qrels, topics) | _select(judged, texts), tuple(texts)

    def read_subtopics(self, tested: Sequence[str]) -> SubtopicQrels:
        """Read the judgements by subtopic; empty if there are none."""
        if self.subtopic_qrels is None:
            return {}
        judgements = read_subtopic_qrels(self.path(self.subtopic_qrels), lenient=self.lenient)
        return judgements if self.test_topics is None else _select(judgements, tested)


def _check_sources(stages: Iterable[str], folder: Path) -> None:
    """Check that a stage of a module that is in the folder comes from there."""
    for step in (step for text in stages for step in stages_of(text)):
        beside = folder / f"{step.name.partition(':')[0].replace('.', '/')}.py"
        # Python imports a module once: an installed one of this name would hide the file without a word.
        source = getsourcefile(step.stage)
        if ":" in step.name and beside.exists() and not (source and beside.samefile(source)):
            raise ParameterError(f"stage {step.name} comes from {source}, not from {beside}: rename the file")


def _select(judgements: Mapping[str, V], qids: Iterable[str]) -> dict[str, V]:
    """Return the judgements of these topics."""
    return {qid: judgements[qid] for qid in qids if qid in judgements}


SCORED_SEARCHES = ("bm25", "ql")
"""The searches that are scored beside a first stage that is a search."""


def run(settings: Settings, opened: OpenCollection, context: Context) -> Outcome:
    """Rank by each system; score all; compare the model with first stage and baselines, and stages with the model."""
    first = opened.first.select_queries(opened.tested)
    model = settings.model.name
    ranks_by = "the fused rankings of the first stage" if model == FUSION else described(model)
    # Wrong options of stages are refused before any work.
    stages = {name: _pipeline(text, settings.path, opened) for name, text in settings.after}
    before = [first, *_beside(settings.first_stage, opened, context)]
    trained = [validate_system(settings, opened, context, place) for place in range(len(settings.systems))]
    validated = trained[-1]
    after = []
    for name, stage in stages.items():
        after.append(stage.run(validated.run, n_jobs=context.n_jobs, tag=name))
        context.progress(f"{name}, after {validated.run.tag}")
    learned = [validation.run for validation in trained]
    runs = {run.tag: run for run in (*before, *learned, *after)}
    compared = [(run.tag, validated.run.tag) for run in (first, *learned[:-1])]
    compared += [(validated.run.tag, run.tag) for run in after]
    # Without a split, judged topics that are not searched count as 0.
    qrels = opened.qrels if settings.test_topics is None else _select(opened.qrels, opened.tested)
    scores = {"relevance": {name: score_documents(run, qrels, settings.measures) for name, run in runs.items()}}
    if settings.subtopic_qrels is not None:
        subtopics, measures = opened.subtopics, settings.subtopic_measures
        scores["diversity"] = {name: score_subtopics(run, subtopics, measures) for name, run in runs.items()}
    columns = columns_table([system for _, system in settings.systems], trained)
    # Each step with the one before, with a correction for each kind.
    tests = {kind: compare_collections({"": by_run}, compared)[""] for kind, by_run in scores.items()}
    return _outcome(settings, Ranked(runs, compared, scores, opened, trained, columns, tests, ranks_by))


def columns_table(systems: Sequence[System], trained: Sequence[CrossValidation]) -> Table:
    """Tabulate what each system was learned from: the numbers of columns, over folds, and the columns."""
    rows: list[Row] = []
    for system, validated in zip(systems, trained, strict=True):
        numbers = [model.n_candidates for model in validated.models]
        span = " to ".join(map(str, sorted({min(numbers), max(numbers)})))
        rows.append((validated.run.tag, span, system.columns()))
    return Table("Features that each system is learned from", ("run", "features", "of"), rows)


def _outcome(settings: Settings, ranked: Ranked) -> Outcome:
    """Report the rankings."""
    opened, by_kind = ranked.collection, [means(scores) for scores in ranked.scores.values()]
    return Outcome(
        scores={
            system: {measure: mean for part in by_kind for measure, mean in part[system].items()}
            for system in by_kind[0]
        },
        results={kind: to_dict(part, ranked.tests[kind]) for kind, part in ranked.scores.items()},
        evaluation=ranked.evaluation,
        tables=[ranked.evaluation.format(), ranked.columns],
        title=f"{settings.name}: {opened.first.tag} reranked by {settings.model.model}",
        sections=sections(ranked),
        runs=ranked.runs,
        models=_models(settings, ranked),
        provenance={"fingerprint": opened.index.fingerprint},
    )


def _models(settings: Settings, ranked: Ranked) -> dict[str, RankingModel]:
    """Name the models: of folds, those of the main model by number, others in a folder; of a split, by system."""
    models = dict[str, RankingModel]()
    for (name, _), validated in zip(settings.systems, ranked.trained, strict=True):
        folder = "" if validated is ranked.trained[-1] else f"{name}/"
        for number, model in enumerate(validated.models, 1):
            # A saved model that reranks shortens queries as the study did.
            kept = model if model.runs else replace(model, query_form=ranked.collection.query_form)
            models[f"{folder}fold-{number}" if settings.test_topics is None else name] = kept
    return models


def validate_system(settings: Settings, opened: OpenCollection, context: Context, system: int = -1) -> CrossValidation:
    """Cross-validate one of `Settings.systems`, by default the main model; the test topics of a split are one fold."""
    tag, chosen = settings.systems[system]
    recipe, option = settings.recipe(chosen, opened.sources), settings.training
    # A split is one fold whose training topics are all others, so that both forms take one road.
    folds = option.folds if settings.test_topics is None else [opened.tested]
    return cross_validate(
        recipe,
        opened.first,
        opened.qrels,
        opened.index,
        folds=folds,
        seed=option.seed,
        n_jobs=context.n_jobs,
        tag=tag,
        provenance={"experiment": settings.name},
        progress=lambda line: context.progress(shorten(f"{tag}: {line}", LINE_WIDTH, placeholder=" ...")),
    )


def _pipeline(text: str, place: Callable[[str], Path], opened: OpenCollection) -> Pipeline[Ranking]:
    """Make the stages of a spelling, over the index."""
    steps = [step.place_files(lambda file: str(place(file))) for step in stages_of(text)]
    stages: list[Stage] = [step.make(opened.index) for step in steps]
    for stage in stages:
        stage.check_topics(opened.tested)
    return Pipeline(tuple(stages))


def _beside(stage: FirstStage, opened: OpenCollection, context: Context) -> list[Run]:
    """Return the rankings that are scored beside the first stage: its own inputs, or other searches."""
    if len(opened.sources) > 1:
        return [run.select_queries(opened.tested) for run in opened.sources]
    if stage.model[0].startswith(RUN) or not isinstance(opened.lucene, LuceneIndex):
        return []
    topics = {qid: opened.topics[qid] for qid in opened.tested}
    others = [name for name in SCORED_SEARCHES if name != opened.first.tag]
    return [
        MODELS[name](opened.lucene, k=stage.hits).run(topics, n_jobs=context.n_jobs, tag=name)
        for name in each(others, "models")
    ]


STUDY = Study(Settings, open_collection, run, evaluates=True)
