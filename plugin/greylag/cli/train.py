"""``greylag train``."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal, cast, get_args

import numpy as np
import typer

from greylag.cli.features import PoolOption, chosen_features
from greylag.cli.options import (
    TOPICS,
    Features,
    Index,
    RelevanceLevel,
    Shared,
    listed,
    measures_at,
    parameters,
    read_settings,
    settings_option,
)
from greylag.cli.rerank import OF_RANKS, seen_topics
from greylag.cli.running import input_files
from greylag.cli.search import search_first
from greylag.cli.terminal import tell
from greylag.diversity import training as diversity
from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import PRESETS, CoverageFeatures, CoverageModel, Criterion
from greylag.diversity.mmr import MMR
from greylag.diversity.model import DiversityModel
from greylag.diversity.random_order import RandomOrder
from greylag.diversity.svmdiv import CSSVM, SVMDiv
from greylag.errors import ParameterError
from greylag.evaluation import Scores, compare, table
from greylag.evaluation.folds import split_folds
from greylag.evaluation.scores import evaluate_by_subtopic
from greylag.features.feature import Feature
from greylag.features.spec import Pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from greylag.index.analysis import QueryForm, read_stop_words
from greylag.index.positional import PositionalIndex
from greylag.ltr.automatic import AutomaticRecipe, choice_table, conclusion, held_out_baselines
from greylag.ltr.baselines import BASELINES, GRID, BaselineRecipe, TunedMRFRecipe
from greylag.ltr.coordinate_ascent import CoordinateAscent
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.lambdamart import LambdaMARTRecipe
from greylag.ltr.linear import LinearModel
from greylag.ltr.objectives import Objective
from greylag.ltr.preselect import MMRPreselection
from greylag.ltr.stack import StackRecipe
from greylag.ltr.training import MRFRecipe, Recipe, training_line
from greylag.ltr.training import train as train_by
from greylag.ranking import Ranking, Run, marked
from greylag.structured.coulomb import Coulomb
from greylag.structured.cutting_plane import CuttingPlane
from greylag.tables import as_text
from greylag.trec import Qrels, SubtopicQrels, write_run
from greylag.trec.texts import read_fields

Model = Literal[
    "automatic", "mrf", "bm25", "ql", "sdm", "mrf-lm", "mrf-bm25", "rm3", "stack", "lambdamart", "svmdiv", "cssvm"
]
DIVERSE = ("svmdiv", "cssvm")
RANKERS = tuple(model for model in get_args(Model) if model not in DIVERSE)
LEARNERS: dict[str, Any] = {"greedy": GreedySelection, "coordinate-ascent": CoordinateAscent}
SEARCHED: dict[str, type[Recipe]] = {"automatic": AutomaticRecipe, "stack": StackRecipe, "lambdamart": LambdaMARTRecipe}
"""The models whose candidates, without a run, are those of BM25 and BM25+RM3."""
ONLY_FOR: dict[str, Sequence[str]] = {
    "--learner": ("mrf",),
    "--preselect": ("mrf",),
    "--pool": ("mrf", *SEARCHED),
    "--features": ("mrf", *SEARCHED, *DIVERSE),
    "--time": ("automatic",),
    "--titles": DIVERSE,
}
"""The models that an option is for, if they are neither all that rank nor all."""


ORDERS = 20  # whose scores are averaged, as what chance gives
PRESET = "preset"  # the criteria or thresholds of the preset


@dataclass(frozen=True)
class DiversitySettings:
    """How svmdiv and cssvm learn, besides the parameters of the learner."""

    depth: int = 100
    k: int = 5
    preset: Literal["svmdiv", "svmdiv2", "svmdiv-all-levels"] = "svmdiv"
    validate: bool = False
    retrain: bool = False
    candidates: Literal["all", "relevant"] = "all"
    loss: Literal["weighted", "unweighted"] = "weighted"
    criteria: str = PRESET
    thresholds: str | float = PRESET

    @property
    def features(self) -> CoverageFeatures:
        """The preset, with other criteria or thresholds if there are any."""
        changed: dict[str, Any] = {}
        if self.criteria != PRESET:
            changed["criteria"] = tuple(map(Criterion.parse, self.criteria.split(",")))
        if self.thresholds != PRESET:
            try:
                changed["thresholds"] = tuple(map(float, str(self.thresholds).split(",")))
            except ValueError:
                raise ParameterError(f"thresholds are {self.thresholds!r:.60}: use numbers, as in 0.1,0.5") from None
        return replace(PRESETS[self.preset], **changed)


@dataclass(frozen=True)
class QuerySettings:
    """How the queries of a model are shortened, whose candidates were found before."""

    first_sentence: bool = False
    stop_words: str = "none"

    @property
    def form(self) -> QueryForm:
        """The form that the model keeps, so that whatever uses it has the same queries."""
        return QueryForm(
            self.first_sentence, *([] if self.stop_words == "none" else [read_stop_words(self.stop_words)])
        )


_OF_QUERIES = parameters(QuerySettings)
_SETTINGS = (
    f"mrf: {listed(GreedySelection)}, or with coordinate-ascent {listed(CoordinateAscent)}; and of features "
    f"{listed(FeatureParameters)}, tune=false: whether k1, b and mu are those of tuned BM25 and LM. Baselines: values "
    "to try, as in k1=0.6,0.9: bm25, mrf-bm25: k1, b; "
    "ql, sdm, mrf-lm: mu; rm3: k1, b, "
    f"fb_docs, fb_terms. mrf and baselines: {listed(QuerySettings)}, a list (lucene, scikit-learn) or file of words "
    f"that are removed from queries, once the candidates are found. stack: {listed(StackRecipe, 'objective', 'pool')}; "
    f"automatic: {listed(AutomaticRecipe, 'objective', 'pool')}. "
    f"lambdamart: {listed(LambdaMARTRecipe, 'objective', 'pool')}. svmdiv: {listed(CuttingPlane)}; "
    f"cssvm: {listed(Coulomb)}; both: {listed(DiversitySettings)}, where k of the top documents are learned to "
    "be picked, by words that are frequent or in titles (svmdiv2: by TF-IDF, too; svmdiv-all-levels: by all criteria), "
    "and validate chooses C from 1e-5 to 1e3 on every fourth query, which is held out, or trained on in the end with "
    "retrain. candidates=relevant learns from documents with a subtopic alone; criteria=count>=1,anchor>=1 and "
    "thresholds=0.1,0.5 replace those of the preset, where anchor is a field of the --titles."
)


def train(
    context: typer.Context,
    index: Index,
    qrels: Annotated[
        Path,
        typer.Option(
            "--qrels",
            help="Judgements to learn from: a file, a name of Pyserini, or irds:NAME; of subtopics for svmdiv, cssvm.",
        ),
    ],
    out: Annotated[Path, typer.Option("--out", help="Model to write (JSON), for `greylag rerank`.")],
    topics: Annotated[Path | None, TOPICS] = None,
    model: Annotated[
        Model,
        typer.Option(
            "--model",
            help="automatic: try tuned baselines, listwise regression, greedy selection and the stack, each in "
            "cross-validation on the topics, and learn the best or an average. mrf: features with learned "
            "weights. bm25, ql, sdm, mrf-lm, mrf-bm25, rm3: a baseline with tuned parameters. stack: tune RM3, "
            "and select from it, MRF features, manifold ranking and --features. lambdamart: trees of the same, by "
            "LightGBM. svmdiv, cssvm: a model that diversifies, or an ensemble of them that repel each other, so that "
            "one may serve a query on which others fail.",
        ),
    ] = "automatic",
    run: Annotated[
        Path | None,
        typer.Option("--run", help="TREC run to learn to rerank; by default BM25 (automatic, stack: and BM25+RM3)."),
    ] = None,
    measure: Annotated[
        str | None, typer.Option("--measure", help="Measure to maximise: map (the default), nDCG@10, RR, P@5, ...")
    ] = None,
    level: RelevanceLevel = None,
    settings: Annotated[list[str] | None, settings_option(_SETTINGS)] = None,
    features: Features = None,
    pool: PoolOption = None,
    learner: Annotated[
        Literal["greedy", "coordinate-ascent"] | None,
        typer.Option(
            "--learner", help="mrf: select features greedily (the default), or weight all by coordinate ascent."
        ),
    ] = None,
    preselect: Annotated[
        str | None,
        typer.Option(
            "--preselect", help="mrf: preselect features by MMR: mmr:16, or mmr:16:0.7 with a relevance weight."
        ),
    ] = None,
    titles: Annotated[
        Path | None,
        typer.Option(
            "--titles",
            metavar="FILE",
            help="svmdiv, cssvm: titles, JSON lines with id and title, and other fields of criteria, such as the "
            "documents.",
        ),
    ] = None,
    folds: Annotated[
        int | None, typer.Option("--folds", min=2, help="Cross-validate over topics, too, with this number of folds.")
    ] = None,
    out_run: Annotated[
        Path | None,
        typer.Option(
            "--out-run", help="Run to write: each topic ranked by the model of its fold, of cssvm as fused by rerank."
        ),
    ] = None,
    limit: Annotated[
        str | None,
        typer.Option(
            "--time", metavar="10m", help="automatic: try no more learners after this time: 90s, 10m or 2h, in all."
        ),
    ] = None,
) -> None:
    """Learn a model from judged topics, and write it as JSON.

    Without --model, the best that the topics allow is chosen, and a table says what was tried.

    The scores on training topics say nothing about other topics. With --folds, each topic is also ranked by a model
    that was trained on the other folds, and those rankings are scored against the run that they rerank. The folds are
    the same for all models, so that their rankings can be compared.
    """
    shared: Shared = context.obj
    given = {"--measure": measure, "--relevance-level": level, "--learner": learner, "--preselect": preselect}
    more = {"--features": features, "--titles": titles, "--time": limit}
    for flag, value in {**given, "--pool": pool, **more}.items():
        models = ONLY_FOR.get(flag, RANKERS)
        if value is not None and model not in models:
            raise ParameterError(f"{flag} is for --model {' or '.join(models)}, not for {model}")
    if (folds is None) != (out_run is None):
        raise ParameterError("--folds and --out-run go together: one number of folds, one run of held-out rankings")
    if model in DIVERSE:
        train_diversity(shared, model, settings or [], index, topics, run, qrels, out, features, titles, folds, out_run)
        return
    if topics is None:
        raise ParameterError(f"give --topics: --model {model} needs the queries' texts")
    of_queries = [text for text in settings or [] if model not in SEARCHED and text.partition("=")[0] in _OF_QUERIES]
    form = QuerySettings(**read_settings(of_queries, _OF_QUERIES, of=model)).form
    others = [text for text in settings or [] if text not in of_queries]
    [maximised] = map(Objective.parse, measures_at([measure or "AP"], level, qrels))
    recipe = make_recipe(model, maximised, others, features, pool, learner or "greedy", preselect)
    if limit is not None:
        recipe = replace(cast(AutomaticRecipe, recipe), seconds=read_time(limit) / (1 + (folds or 0)))
    first = None if run is None else shared.run(run, topics)
    judged, positions = shared.qrels(qrels, first, topics), PositionalIndex.from_lucene(index)
    if first is None:  # without folds, nothing is ranked but what is learned from
        searched = {qid: text for qid, text in shared.topics(topics).items() if folds or qid in judged}
        first = search_first(index, searched, shared.jobs, stack=model in SEARCHED)
    rankings = Run(tuple(map(form.apply, first.rankings)), first.tag)
    if (model, measure, level) == ("automatic", None, None):
        propose_measure(judged)
    learned, held_out, scores = train_by(
        recipe,
        rankings,
        judged,
        positions,
        folds=folds,
        n_jobs=shared.jobs,
        tag=marked(
            f"{rankings.tag}-{f'tuned-{model}' if model in BASELINES else 'held-out'}",
            seen_topics(input_files({"features": features}), rankings, positions.fingerprint),
        ),
        progress=tell,
    )
    if held_out is not None and out_run is not None:
        step = {"name": held_out.run.tag, "method": model, "folds": folds, "reranks": rankings.tag}
        write_run(held_out.run, out_run, metadata=shared.metadata(step, before=[(rankings.tag, run)]))
        if model == "automatic":
            scores = {**scores, **held_out_baselines(held_out, rankings, judged, positions, n_jobs=shared.jobs)}
        tell(f"\n{table(scores, compare(scores, 'first stage'))}")
    if model in SEARCHED:  # so that rerank knows whether to search in the same way
        learned = replace(learned, provenance={**learned.provenance, "searched": run is None})
    learned = replace(learned, query_form=form)
    learned.save(out)
    tell(_learned(recipe, learned, scores))


def make_recipe(
    model: str,
    measure: Objective,
    texts: Sequence[str],
    features: str | None,
    pool: Pool | None,
    learner: str,
    preselect: str | None,
) -> Recipe:
    """The recipe of a model that ranks."""
    weighting = parameters(FeatureParameters)
    if model in BASELINES:
        *before, baseline = BASELINES[model]
        tuned = {name: weighting[name] for step in BASELINES[model] for name in step.tuned}
        grid = {**GRID, **read_settings(texts, tuned, of=model, many=True)}
        return BaselineRecipe(baseline, objective=measure, grid=grid, before=tuple(before))
    if model in SEARCHED:
        kind: Any = SEARCHED[model]
        values = read_settings(texts, parameters(kind, "objective", "pool"), of=model)
        more: tuple[Feature, ...] = () if features is None else parse_features(features)
        made: Recipe = kind(measure, pool=pool or "sd", more=more, **values)
        return made
    of_learner = parameters(LEARNERS[learner])
    values = read_settings(texts, {**of_learner, **weighting, "tune": bool}, of=f"mrf, learned by {learner},")
    tune = values.pop("tune", False)
    if tune and (chosen := [name for name in ("mu", "k1", "b") if name in values]):
        raise ParameterError(f"{chosen[0]} and tune=true cannot be combined: tune chooses mu, k1 and b")
    recipe = MRFRecipe(
        chosen_features(features, pool),
        LEARNERS[learner](measure, **{name: values.pop(name) for name in of_learner if name in values}),
        parameters=FeatureParameters(**values),
        preselection=None if preselect is None else MMRPreselection.parse(preselect),
    )
    return TunedMRFRecipe(recipe) if tune else recipe


def _learned(recipe: Recipe, model: LinearModel, scores: Mapping[str, Scores]) -> str:
    """What was learned: features with weights, a baseline's parameters and whether to try others, or what was tried."""
    if isinstance(recipe, BaselineRecipe):
        ends = (
            f"{name} is at an end of its values, {min(recipe.grid[name])} to {max(recipe.grid[name])}: try more "
            "with --set"
            for name in recipe.at_ends(model)
        )
        return "\n".join([training_line(model), *ends])
    if isinstance(recipe, AutomaticRecipe):
        left_out = model.provenance["choice"]["left_out"].items()
        reasons = [f"left out: {name}: {reason}" for name, reason in left_out]
        return "\n".join([as_text(choice_table(model)), *reasons, conclusion(model, scores)])
    rows = zip(model.features, model.weights, model.training_scores, strict=True)
    if len(model.features) > 1 and len(set(model.training_scores)) == 1:  # features that were not added one by one
        whole = f"{model.objective} {model.training_scores[0]:.4f} on training topics with"
        return "\n".join([whole, *(f"{weight:+.6g}  {spec}" for spec, weight, _ in rows)])
    return "\n".join(f"{model.objective} {score:.4f}  {weight:+.6g}  {spec}" for spec, weight, score in rows)


def read_time(text: str) -> float:
    """The seconds of a time such as 90s, 10m or 2h."""
    match = re.fullmatch(r"(\d{1,6}(?:\.\d{1,3})?)([smh])", text)
    if match is None or float(match[1]) == 0:
        raise ParameterError(f"--time {text!r:.60} is not a time above 0 such as 90s, 10m or 2h")
    return float(match[1]) * {"s": 1, "m": 60, "h": 3600}[match[2]]


def propose_measure(qrels: Qrels) -> None:
    """Tell of another measure than AP, if one suits the judgements."""
    relevant = [[grade for grade in of_one.values() if grade > 0] for of_one in qrels.values()]
    if any(grade > 1 for grades in relevant for grade in grades):
        tell("AP is maximised, which takes all grades above 0 as equal: --measure nDCG@10 distinguishes them")
    elif sum(map(len, relevant)) <= 2 * sum(map(bool, relevant)):
        tell("AP is maximised; with one or two relevant documents a topic, --measure RR or nDCG@10 is usual")


def train_diversity(
    shared: Shared,
    name: str,
    texts: Sequence[str],
    index: Sequence[Path],
    topics: Path | None,
    run: Path | None,
    qrels: Path,
    out: Path,
    features: str | None,
    titles: Path | None,
    folds: int | None,
    out_run: Path | None,
) -> None:
    """Learn to diversify, write the model, and say what was learned."""
    if run is None:
        raise ParameterError(f"--model {name} needs a --run, whose top documents it learns to pick from")
    kind: Any = CuttingPlane if name == "svmdiv" else Coulomb
    known = parameters(kind)
    values = read_settings(texts, {**known, **parameters(DiversitySettings)}, of=name)
    of_learner = {key: values.pop(key) for key in known if key in values}
    learner, settings = kind(**of_learner), DiversitySettings(**values)
    if settings.validate and "C" in of_learner:
        raise ParameterError("C and validate=true cannot be combined: validate chooses C")
    if settings.retrain and not settings.validate:
        raise ParameterError("retrain=true needs validate=true: without it, all queries are trained on")
    CoverageModel(settings.k)  # checks it before the examples are made
    named = () if features is None else tuple(map(str, parse_features(features)))
    if topics is None and (asking := [feature for feature in named if feature not in OF_RANKS]):
        raise ParameterError(f"give --topics: the feature {asking[0]} needs the queries' texts")
    make = CandidateMaker(
        PositionalIndex.from_lucene(index),
        replace(settings.features, document_features=named),
        titles=None if titles is None else read_fields(titles, lenient=shared.lenient),
        depth=settings.depth,
    )
    first = shared.run(run, topics)
    seen = seen_topics(input_files({"features": features}), first, make.index.fingerprint)
    judgements = shared.subtopic_qrels(qrels)
    examples = diversity.training_examples(
        first,
        judgements,
        make,
        relevant_only=settings.candidates == "relevant",
        weighted=settings.loss == "weighted",
        n_jobs=shared.jobs,
    )

    def learn(chosen: Mapping[str, diversity.Example]) -> DiversityModel:
        training, held_out = diversity.split_validation(chosen) if settings.validate else (chosen, {})
        if settings.validate and not held_out:
            needed = diversity.VALIDATE_EVERY
            raise ParameterError(f"validate needs at least {needed} queries with subtopics, not {len(chosen)}")
        return diversity.train(
            training, make, learner, k=settings.k, validation=held_out, retrain=settings.retrain,
            provenance={"method": name}, n_jobs=shared.jobs,
        )  # fmt: skip

    def diversified(model: DiversityModel, qids: Sequence[str]) -> dict[str, Ranking]:
        stage = (SVMDiv if name == "svmdiv" else CSSVM)(model, make.index, titles=make.titles, k=settings.k)
        return {qid: stage(first[qid]) for qid in qids}

    held_out: dict[str, Ranking] = {}
    if folds is not None and out_run is not None:
        for test in split_folds(list(examples), folds, 0):
            held_out |= diversified(learn({qid: one for qid, one in examples.items() if qid not in test}), test)
        write_run(Run(tuple(held_out[qid] for qid in examples), marked(f"{first.tag}-held-out", seen)), out_run)
    model = learn(examples)
    model.save(out)
    if not (held_out or settings.retrain):
        held_out = diversified(model, model.provenance["validation"])
    tell(f"{settings.preset} on {_outcome(model)}")
    if held_out:
        scores = _beside_others(held_out, first, judgements, make, settings.k)
        tell(f"\n{table(scores, compare(scores, 'first stage'))}")


def _beside_others(
    held_out: Mapping[str, Ranking], first: Run, judgements: SubtopicQrels, make: CandidateMaker, k: int
) -> dict[str, Scores]:
    """The scores of held-out rankings beside those of the first stage, MMR, and chance: the mean of random orders."""
    before = Run(tuple(first[qid] for qid in held_out))
    options: dict[str, Any] = {"depth": make.depth, "k": k}
    judged = {qid: judgements[qid] for qid in held_out}
    score = partial(evaluate_by_subtopic, qrels=judged, measures=[f"subtopic-loss@{k}", f"alpha-nDCG@{k}"])
    orders = [score(RandomOrder(seed=seed, **options).run(before)) for seed in range(ORDERS)]
    return {
        "first stage": score(before),
        "chance": replace(orders[0], values=np.mean([one.values for one in orders], axis=0)),
        "MMR": score(MMR(make.index, **options).run(before)),
        "held out": score(Run(tuple(held_out.values()))),
    }


def _outcome(model: DiversityModel) -> str:
    """What a model was trained on, with which parameters and result."""
    made = model.provenance
    validated = f", C chosen on {len(made['validation'])} more" if made["validation"] else ""
    queries = f"{len(made['queries'])} queries{validated}"
    if made["method"] == "cssvm":
        spread = f"{made['repulsion']} with alpha {made['alpha']:g}, mean angle {made['mean_angle']:.1f} degrees"
        return f"{queries}: C {made['C']:g}, {len(model.weights)} models, {spread}"
    return f"{queries}: C {made['C']:g}, objective {made['objective']:.6g}, duality gap {made['gap']:.2g}"
