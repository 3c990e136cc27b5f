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

from pydantic import model_validator

from greylag.core.checks import naming
from greylag.core.spelling import parameters, read_call, read_options
from greylag.errors import FormatError, ParameterError
from greylag.evaluation import Significance
from greylag.evaluation.folds import split_folds
from greylag.evaluation.scores import score_documents, score_subtopics
from greylag.evaluation.significance import compare_collections
from greylag.features.named_files import FeatureText, stage_files
from greylag.features.spec import Pool
from greylag.features.spelling import parse_features
from greylag.index.analysis import QueryForm
from greylag.index.lucene.lucene_index import LuceneIndex
from greylag.index.searches import MODELS
from greylag.learning.extraction import judged_topics
from greylag.pipeline import Pipeline, Stage
from greylag.ranking import Ranking, Run
from greylag.recipes import recipe as training
from greylag.recipes.fused import FusionRecipe
from greylag.recipes.recipe import CrossValidation, Recipe
from greylag.recipes.spelling import TUNED, described, model_files, parse_model
from greylag.recipes.training import sample_topics
from greylag.recipes.union import FusionWeights, named_runs
from greylag.reports import to_dict
from greylag.runtime.inputs import Names
from greylag.runtime.progress import each
from greylag.stages import StageStep
from greylag.studies import config
from greylag.studies.collection import RUN, CollectionSettings, FirstStage, OpenCollection, by_name, open_collection
from greylag.studies.pipeline_report import Ranked, sections
from greylag.studies.study import Context, Outcome, Study
from greylag.studies.tables import means
from greylag.trec import Qrels, SubtopicQrels, read_subtopic_qrels

V = TypeVar("V")
LINE_WIDTH = 100  # of a line of progress
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
    else:
        parse_model(text)


ModelText = Annotated[str, config.readable_by(read_model), Names(model_files)]
StageText = Annotated[
    str,
    config.readable_by(stages_of),
    Names(lambda text: [file for part in text.split(">>") for file in stage_files(part)]),
]


class Training(config.Settings):
    """Learning of models, in cross-validation over topics or on the training part of a split."""

    objective: config.ObjectiveName = "AP"
    """The measure that is maximised, such as AP, nDCG@10 or RR."""
    topics: config.Positive | None = None
    """At most this many judged training topics of a split are used, drawn by the seed; all by default."""
    folds: config.Folds = 5
    """The number of folds of cross-validation over topics."""
    seed: config.Seed = 0
    """Seed of the split into folds."""


class Settings(CollectionSettings):
    """From topics to scores: a first stage, tuned baselines, a learned ranker, and stages after it."""

    model: ModelText = "automatic"
    """The ranker, as for greylag train --model: automatic, which chooses among all, or one with options, such as
    mrf(max_features=3), rm3 or lambdamart. Or fusion, which learns to weigh the rankings of the first stage.
    """
    features: Annotated[FeatureText, config.readable_by(parse_features)] | None = None
    """Features besides those of the model, or for mrf instead of its pool, as for greylag train --features."""
    pool: Pool | None = None
    """The dependence models of the features; full for mrf and sd for others by default."""
    training: Training = Training()
    baselines: tuple[ModelText, ...] = ("bm25",)
    """Other models that are learned in the same folds, to compare with: bm25, ql, rm3, sdm, or any other."""
    stages: tuple[StageText, ...] = ()
    """Stages to apply after the model, each on its own; spelt as for greylag rerank --stage: mmr(relevance_weight=0.7,
    k=20), xquad(aspects=FILE). Your own stages are MODULE:CLASS, from a file MODULE.py beside this one or an installed
    package. Join stages to apply them in turn, where the command line repeats --stage: rm3 >> mmr.
    """
    measures: tuple[config.MeasureName, ...] = ("AP", "P@10", "nDCG@10")
    """Measures of relevance; topics are compared by the first."""
    subtopic_qrels: config.InputFile | None = None
    """Judgements by subtopic, by which everything is scored, too."""
    subtopic_measures: tuple[config.MeasureName, ...] = ("alpha-nDCG@10", "S-recall@10")
    """Measures of diversity."""
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
        for name, text in self.systems:
            if read_call(text)[0] == FUSION and len(self.first_stage.sources) < 2:
                raise ValueError(f"{name}: fusion needs at least two rankings in first_stage.model")
            self.recipe(text)
        # Rankings of the first stage may be named as the searches that are scored beside it; other systems may not.
        before = dict.fromkeys(
            [self.first_stage.name, *(name for name, _ in self.first_stage.sources), *SCORED_SEARCHES]
        )
        names = [*before, *(name for name, _ in [*self.systems, *self.after])]
        if twice := next((name for name in names if names.count(name) > 1), None):
            raise ValueError(f"{twice!r} is the name of two systems: rename the run, or leave one out")
        return self

    @property
    def systems(self) -> list[tuple[str, str]]:
        """The names and spellings of the baselines and, last, of the model."""
        names = {name: f"tuned-{name}" for name in TUNED}
        return by_name([*self.baselines, self.model], lambda text: names.get(name := read_call(text)[0], name))

    @property
    def after(self) -> list[tuple[str, str]]:
        """The names and spellings of the stages; names are without modules."""
        return by_name(self.stages, lambda text: "-".join(step.name.rpartition(":")[2] for step in stages_of(text)))

    def recipe(self, text: str, sources: Sequence[Run] = ()) -> Recipe:
        """Make the recipe of a model, also of one that fuses the sources; features and pool are the main model's."""
        name, options = read_call(text)
        if name == FUSION:
            chosen, seed, k = read_options(name, options, FUSION_OPTIONS), self.training.seed, self.first_stage.hits
            weights, runs = (
                FusionWeights(self.training.objective, seed=seed, **chosen),
                named_runs(sources) if sources else {},
            )
            return FusionRecipe(runs, weights, k=k)
        given: dict[str, Any] = {}
        if text == self.model:
            features = () if self.features is None else parse_features(self.features)
            placed = tuple(feature.place_files(lambda file: str(self.path(file))) for feature in features)
            given = {"features": placed, "pool": self.pool}
        recipe, form = parse_model(text, self.training.objective, **given)
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
        return topics | texts, _of(qrels, topics) | _of(judged, texts), tuple(texts)

    def read_subtopics(self, tested: Sequence[str]) -> SubtopicQrels:
        """Read the judgements by subtopic; empty if there are none."""
        if self.subtopic_qrels is None:
            return {}
        judgements = read_subtopic_qrels(self.path(self.subtopic_qrels), lenient=self.lenient)
        return judgements if self.test_topics is None else _of(judgements, tested)


def _check_sources(stages: Iterable[str], folder: Path) -> None:
    """Check that a stage of a module that is in the folder comes from there."""
    for step in (step for text in stages for step in stages_of(text)):
        beside = folder / f"{step.name.partition(':')[0].replace('.', '/')}.py"
        # Python imports a module once: an installed one of this name would hide the file without a word.
        source = getsourcefile(step.stage)
        if ":" in step.name and beside.exists() and not (source and beside.samefile(source)):
            raise ParameterError(f"stage {step.name} comes from {source}, not from {beside}: rename the file")


def _of(judgements: Mapping[str, V], qids: Iterable[str]) -> dict[str, V]:
    """Return the judgements of these topics."""
    return {qid: judgements[qid] for qid in qids if qid in judgements}


SCORED_SEARCHES = ("bm25", "ql")
"""The searches that are scored beside a first stage that is a search."""


def run(settings: Settings, opened: OpenCollection, context: Context) -> Outcome:
    """Rank by each system; score all; compare the model with first stage and baselines, and stages with the model."""
    ranked = rank(settings, opened, context)
    return outcome(settings, replace(ranked, tests=compare_steps({"": ranked})[""]))


def rank(settings: Settings, opened: OpenCollection, context: Context) -> Ranked:
    """Rank by each system, and score all."""
    first = opened.first.select_queries(opened.tested)
    name = read_call(settings.model)[0]
    ranks_by = "the fused rankings of the first stage" if name == FUSION else described(name)
    # Wrong options of stages are refused before any work.
    stages = {name: _pipeline(text, settings.path, opened) for name, text in settings.after}
    before = [first, *_beside(settings.first_stage, opened, context)]
    tuned = [cross_validate(settings, opened, context, system).run for system in range(len(settings.baselines))]
    validated = cross_validate(settings, opened, context)
    after = []
    for name, stage in stages.items():
        after.append(stage.run(validated.run, n_jobs=context.n_jobs, tag=name))
        context.progress(f"{name}, after {validated.run.tag}")
    runs = {run.tag: run for run in (*before, *tuned, validated.run, *after)}
    compared = [(one.tag, validated.run.tag) for one in (first, *tuned)]
    compared += [(validated.run.tag, run.tag) for run in after]
    # Without a split, judged topics that are not searched count as 0.
    qrels = opened.qrels if settings.test_topics is None else _of(opened.qrels, opened.tested)
    scores = {"relevance": {name: score_documents(run, qrels, settings.measures) for name, run in runs.items()}}
    if settings.subtopic_qrels is not None:
        subtopics, measures = opened.subtopics, settings.subtopic_measures
        scores["diversity"] = {name: score_subtopics(run, subtopics, measures) for name, run in runs.items()}
    return Ranked(runs, compared, scores, opened, validated.fitted, validated.folds, validated.run.tag, {}, ranks_by)


def compare_steps(ranked: Mapping[str, Ranked]) -> dict[str, dict[str, Significance]]:
    """Compare each step with the one before, by collection and kind, with one correction for each kind."""
    tests: dict[str, dict[str, Significance]] = {name: {} for name in ranked}
    for kind in next(iter(ranked.values())).scores:
        scores = {name: of_one.scores[kind] for name, of_one in ranked.items()}
        found = compare_collections(scores, next(iter(ranked.values())).steps)
        for name, test in found.items():
            tests[name][kind] = test
    return tests


def outcome(settings: Settings, ranked: Ranked) -> Outcome:
    """Report the rankings."""
    opened, by_kind = ranked.collection, [means(scores) for scores in ranked.scores.values()]
    # A saved model that reranks shortens queries as the study did.
    models = [
        model if model.runs else replace(model, query_form=opened.query_form)
        for model in (fitted.model for fitted in ranked.fitted)
    ]
    return Outcome(
        scores={
            system: {measure: mean for part in by_kind for measure, mean in part[system].items()}
            for system in by_kind[0]
        },
        results={kind: to_dict(part, ranked.tests[kind]) for kind, part in ranked.scores.items()},
        evaluation=ranked.evaluation,
        title=f"{settings.name}: {opened.first.tag} reranked by {settings.model}",
        sections=sections(ranked),
        runs=ranked.runs,
        models={
            f"fold-{number}" if settings.test_topics is None else settings.systems[-1][0]: model
            for number, model in enumerate(models, 1)
        },
        provenance={"fingerprint": opened.index.fingerprint},
    )


def cross_validate(settings: Settings, opened: OpenCollection, context: Context, system: int = -1) -> CrossValidation:
    """Cross-validate one of `Settings.systems`, by default the main model; the test topics of a split are one fold."""
    tag, text = settings.systems[system]
    recipe, option = settings.recipe(text, opened.sources), settings.training
    # A split is one fold whose training topics are all others, so that both forms take one road.
    folds = option.folds if settings.test_topics is None else [opened.tested]
    return training.cross_validate(
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
