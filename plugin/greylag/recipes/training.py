"""`train`: a model by a recipe, the automatic choice by default, and how good it is on topics that it has not seen."""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from textwrap import fill
from typing import Any, Generic, cast

import numpy as np

from greylag.base import (
    FormatError,
    ParameterError,
    QrelsLike,
    Run,
    RunLike,
    SubtopicQrelsLike,
    as_run,
    as_text,
    check_counts,
    gather_missing,
    guided,
    html_text,
    run_step,
    shown,
    visible,
)
from greylag.evaluation import (
    Scores,
    Significance,
    compare_scores,
    fold_folders,
    rerank_by_fold,
    score_documents,
    split_folds,
)
from greylag.index import PositionalIndex, QueryForm
from greylag.learning import (
    concatenated,
    listed_grades,
    listed_run,
    read_letor,
    warn_of_order,
)
from greylag.rankers import ModelRanker, RankingModel
from greylag.recipes.automatic import BASELINE_SYSTEMS, AutomaticRecipe
from greylag.recipes.choice import Choice
from greylag.recipes.fitted import Fitted, M
from greylag.recipes.index_free import ColumnRecipe
from greylag.recipes.recipe import FIRST, CrossValidation, FoldMeans, Recipe, cross_validate
from greylag.recipes.source_gains import sources_table
from greylag.recipes.spelling import parse_model

HELD_OUT, UNJUDGED, VALIDATION = "held out", "general model", "validation (chose C)"
FOLD_MEASURES = "AP", "nDCG@10", "nDCG(dcg='exp-log2')@10"
"""Besides the recipe's measure, of given folds."""
MAX_TOPICS = 5_000
"""The most judged topics to train on, by default: 57 features of 200 documents per topic take 456 MB."""
LINE_WIDTH = 110  # of the sentence when it is printed
MORE_TOPICS_BELOW = 25
MORE_TOPICS_ADVICE = (
    "So few topics adapt weights that were learned elsewhere. On eighteen collections, they changed the nDCG@10 of "
    "these weights by -.001 on average with 5 topics, by +.002 with 10 and by +.008 with 25: judging more pays, but "
    "slowly."
)
"""Advice shown below `MORE_TOPICS_BELOW` judged topics (see the page on rankers)."""
_log = logging.getLogger("greylag")


@dataclass(frozen=True, repr=False)
class TrainingResult(Generic[M]):
    """A model, and what cross-validation says of the recipe that made it; ``str`` is a summary to read.

    Parameters
    ----------
    fitted : Fitted
        The model that was trained on all queries, and what was chosen on them. With folds, the model's provenance has
        the held-out score.
    held_out : CrossValidation or None
        None without folds.
    scores : mapping of str to Scores
        The recipe's measure of the "first stage", of the "held out" rankings, of `baselines`, and of the "general
        model", which needs no judgements, if the recipe begins with one. Of a model that diversifies, subtopic loss and
        alpha-nDCG of the "first stage", "chance", "MMR" and the "held out" rankings. Empty without folds, but for
        "validation (chose C)", the rankings of queries that a model was not trained on.
    baselines : mapping of str to Run
        With folds, the rankings by baselines that each fold tuned or picked on its training queries: "tuned BM25",
        "tuned RM3" and others of the automatic choice; without an index, each run, or the "best column".
    depth : int or None
        The number of documents of each query that were learned from; None for all.
    by_fold : FoldMeans or None
        With given folds, their means by the recipe's measure, AP, and nDCG@10 with both gains.
    """

    fitted: Fitted[M]
    held_out: CrossValidation[M] | None = field(default=None, compare=False)
    scores: Mapping[str, Scores] = field(default_factory=dict, compare=False)
    baselines: Mapping[str, Run] = field(default_factory=dict, compare=False)
    depth: int | None = None
    by_fold: FoldMeans | None = field(default=None, compare=False)

    @property
    def model(self) -> M:
        """The model that was trained on all queries."""
        return self.fitted.model

    @property
    def choice(self) -> Choice | None:
        """The systems that the automatic choice tried; None for other recipes, and for a single training query."""
        return self.fitted.choice

    @property
    def baseline(self) -> str:
        """The baseline with the best held-out mean, or the first stage of a model that diversifies."""
        if not isinstance(self.model, RankingModel):
            return FIRST
        others = [name for name in self.scores if name not in (HELD_OUT, UNJUDGED)]
        return max(others or [HELD_OUT], key=lambda name: float(self.scores[name].rounded_means[0]))

    @property
    def significance(self) -> Significance:
        """With folds, the tests of all scores against `baseline`, and of "held out" against "general model"."""
        pairs = [(self.baseline, name) for name in self.scores if name != self.baseline]
        pairs += [(UNJUDGED, HELD_OUT)] if UNJUDGED in self.scores else []
        return compare_scores(self.scores, self.baseline, pairs=pairs)

    @property
    def verdict(self) -> str:
        """The gain by held-out scores over the best baseline and the general model; without folds, of the choice."""
        choice = "The automatic choice"
        if self.held_out is not None and len(self.scores) > 1:  # not if every column, as a baseline, has missing values
            name = choice if self.choice else "The held-out model"
            against = {UNJUDGED: f"the {UNJUDGED}, without judgements"}
            sentences = [
                replace(c, run=name, baseline=against.get(c.baseline, c.baseline)).verdict
                for c in self.significance.comparisons
                if c.run == HELD_OUT
            ]
            return " ".join([*sentences, "Each topic was held out."])
        if self.choice is None:
            return ""
        best, chosen = self.choice.best, self.choice.baseline
        tuned = f"tuned {chosen}" if chosen in BASELINE_SYSTEMS else str(chosen)
        if best.comparison is None:
            return f"The choice is {tuned}: on {len(self.choice.qids)} topics, nothing else was better."
        sentence = replace(best.comparison, run=choice, baseline=tuned).verdict
        return f"{sentence} Interval and p allow for the ranker having been chosen on these topics."

    @property
    def advice(self) -> str:
        """Advise to judge more topics when the general model was adapted on few."""
        return MORE_TOPICS_ADVICE if self.fitted.adapted and len(self.fitted.queries) < MORE_TOPICS_BELOW else ""

    def __repr__(self) -> str:
        return visible(f"<{type(self).__name__}: {self.fitted}>")

    def __str__(self) -> str:
        fitted, model = self.fitted, self.model
        if not isinstance(model, RankingModel):
            return visible(str(fitted))
        scores, lines, advice = model.training_scores, [], self.advice
        if self.depth is not None:
            lines.append(f"Training scores cover the top {self.depth} documents, which are learned from.")
        if self.choice is not None:
            lines.append(as_text(self.choice.table()))
            if fitted.gains:
                lines.append(as_text(sources_table(fitted.gains, model.objective)))
            lines += [f"left out: {system}: {reason}" for system, reason in self.choice.left_out.items()]
        elif fitted.adapted or not scores:  # features that were named beforehand
            lines.append(str(fitted))
            for name, (low, high) in fitted.ends.items():
                lines.append(
                    f"{name} is at an end of its values, {low} to {high}: try more, as in {name}=[VALUE,VALUE]"
                )
        else:
            weights = [f"{w:+.6g}  {spec}" for spec, w in zip(model.features, model.weights, strict=True)]
            if len(scores) > 1 and len(set(scores)) == 1:  # features that were not added one by one
                lines += [f"{model.objective} {scores[0]:.4f} on training topics with", *weights]
            else:
                lines += [f"{model.objective} {s:.4f}  {w}" for s, w in zip(scores, weights, strict=True)]
            if not self.scores and fitted.validation is None:
                advice = "These are training scores; folds (--folds 5) add held-out ones."
        if fitted.validation is not None:
            mean, topics = fitted.validation.means[0], len(fitted.validation.qids)
            lines.append(f"{model.objective} {mean:.4f} on {topics} topics for validation")
        return visible("\n".join([*lines, *(fill(text, LINE_WIDTH) for text in (self.verdict, advice) if text)]))

    def _repr_html_(self) -> str:
        return html_text(str(self))


@guided
def train(
    rankings: RunLike,
    qrels: QrelsLike | SubtopicQrelsLike,
    index: PositionalIndex | None,
    recipe: Recipe[M] | str | None = None,
    *,
    folds: int | Sequence[Sequence[str]] | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    tag: str = "held-out",
    progress: Callable[[str], None] | None = None,
    query_form: QueryForm | None = None,
    most_topics: int = MAX_TOPICS,
) -> TrainingResult[M]:
    """Make the best model that the judged queries allow, or one by a recipe.

    With `folds`, each query is also ranked by a model of the other folds, and these rankings are scored.

    Parameters
    ----------
    rankings : RunLike
        The first stage, which the model reranks.
    qrels : QrelsLike, or SubtopicQrelsLike for a model that diversifies
        Only queries with a relevant document, by the objective's level, are trained on; a model that diversifies is
        trained and tested on queries with a candidate for a subtopic.
    index : PositionalIndex or None
        None for an `IndexFreeRecipe` or `ColumnRecipe`.
    recipe : Recipe or str, default ``AutomaticRecipe()``
        How the model is made, for AP by default; a text is parsed by `greylag.recipes.parse_model`.
    folds : int >= 2 or sequence of sequences of str, optional
        The number of folds of cross-validation, or the queries of each, as `greylag.evaluation.read_folds` reads; none
        by default.
    seed : int, default 0
        Of the split into folds.
    n_jobs : int, optional
        Number of workers; results do not depend on it.
    tag : str, default "held-out"
        Of the held-out run.
    progress : callable, optional
        Called with a message after each fold.
    query_form : QueryForm, optional
        How queries are shortened before features are computed, wherever the model is used, too.
    most_topics : int >= 1, default 5,000
        Of more topics with a relevant document, this number is drawn at random by `seed`; all others are left out.

    Examples
    --------
    >>> train(bm25_run, qrels, index).model.save("model.json")  # doctest: +SKIP
    """
    if isinstance(recipe, str):
        recipe, spelt_form = parse_model(recipe)
        query_form = query_form or spelt_form
    if recipe is not None and not hasattr(recipe, "prepare"):
        raise ParameterError(
            f"recipe is {shown(recipe)}: give a name as greylag train --model takes it, such as 'lambdamart', "
            "or a recipe of greylag.recipes"
        )
    recipe = cast("Recipe[M]", AutomaticRecipe()) if recipe is None else recipe
    form, incoming = query_form or QueryForm(), as_run(rankings)
    judgements = recipe.judgements(qrels)
    if not (index is None or isinstance(index, PositionalIndex)):
        raise ParameterError(
            f"index is {shown(index)}: give a PositionalIndex, by PositionalIndex.from_lucene(folder), or None"
        )
    if index is None and recipe.needs_index:
        raise ParameterError(f"{type(recipe).__name__} needs an index: give one, or an IndexFreeRecipe")
    if recipe.diversifies and form != QueryForm():
        raise ParameterError("query_form is for models that rank: give rankings with shorter queries")
    relevant = recipe.topics(incoming, judgements, index)
    drawn = sample_topics(relevant, most_topics, seed=seed)
    # Topics without a relevant document teach nothing, but folds rank them. A sample, which is for speed, omits them.
    every = len(drawn) == len(relevant) and not recipe.diversifies
    ranked = frozenset(incoming if every else drawn)
    first = Run(tuple(form.apply(ranking) for ranking in incoming.rankings if ranking.qid in ranked), incoming.tag)
    if isinstance(folds, int):
        split_folds(list(first), folds, seed)  # refuses too many folds before features are computed
    elif folds is not None:
        folds = [kept for fold in folds if (kept := [qid for qid in fold if qid in ranked])]
    # Features are computed once, for the folds and for the model of all queries.
    prepared = recipe.prepare(first, judgements, index, n_jobs=n_jobs)
    # Topics that were not drawn have no ranking to score; topics that the run lacks are empty rankings.
    judged = {qid: dict(judgements[qid]) for qid in judgements if qid in ranked or qid not in incoming}
    held_out, by_fold = None, None
    scores, baseline_runs = dict[str, Scores](), dict[str, Run]()
    if folds is not None:
        held_out = cross_validate(
            recipe, first, judgements, index, folds=folds, seed=seed, n_jobs=n_jobs, tag=tag, progress=progress,
            prepared=prepared,
        )  # fmt: skip
        baseline_runs = held_out_baselines(held_out, first, index, n_jobs=n_jobs)
        runs = {**({FIRST: first} if recipe.has_first_stage else {}), HELD_OUT: held_out.run, **baseline_runs}
        if (unjudged := recipe.unjudged(index)) is not None:
            stages = [ModelRanker(unjudged, index, transfer=True)] * len(held_out.folds)
            runs[UNJUDGED] = rerank_by_fold(stages, held_out.folds, first, n_jobs=n_jobs, tag=UNJUDGED)
        scores = recipe.score(runs, judged, index)
    fitted = recipe.bound(prepared(list(first), n_jobs=n_jobs))
    if held_out is None and fitted.chosen_on:
        # The nearest to held-out rankings that there are without folds
        before = first.select_queries(fitted.chosen_on)
        chosen = run_step(recipe.stage(fitted, index), before, n_jobs=n_jobs)
        scores = recipe.score({FIRST: before, VALIDATION: chosen}, judged, index)
    if isinstance(fitted.model, RankingModel):
        if held_out is not None:
            by_fold = None if isinstance(folds, int) else held_out.by_fold(judged, [recipe.measure, *FOLD_MEASURES])
            fitted = fitted.noted({"held_out": {"folds": len(held_out.folds), **scores[HELD_OUT].by_measure}})
        fitted = replace(fitted, model=replace(cast(Any, fitted.model), query_form=form))
    depth = recipe.depth if any(len(ranking) > (recipe.depth or len(ranking)) for ranking in first.rankings) else None
    return TrainingResult(fitted, held_out, scores, baseline_runs, depth, by_fold)


def train_on_letor(
    folder: str | Path,
    recipe: Callable[..., ColumnRecipe],
    *,
    n_jobs: int | None = None,
    tag: str = "held-out",
    progress: Callable[[str], None] | None = None,
) -> TrainingResult:
    """Train and test on LETOR's folds: each learns from its train.txt, chooses by its vali.txt and ranks its test.txt.

    The model of the result is trained on the topics of all test files, without validation; `TrainingResult.by_fold` has
    the means over folds that papers print.

    Parameters
    ----------
    folder : str or Path
        With folders Fold1, Fold2, ..., without a gap; vali.txt may be missing, in all of them.
    recipe : callable
        From training data and ``validation=`` data or None, such as
        ``partial(ColumnRecipe.of, learner=LambdaMART("nDCG@10"))``.
    n_jobs, tag, progress
        As in `train`.
    """
    parts = fold_folders(folder)
    if len(parts) < 2:
        raise FormatError(folder, None, "has no folders Fold1, Fold2, ..., each with train.txt, vali.txt and test.txt")
    lacking = [part / "vali.txt" for part in parts if not (part / "vali.txt").exists()]
    if 0 < len(lacking) < len(parts):
        raise FormatError(lacking[0], None, "is missing, but other folds have one: add it, or remove them all")
    tests = [read_letor(part / "test.txt", absent=0.0) for part in parts]
    if any(test.names != tests[0].names for test in tests):
        raise FormatError(folder, None, "test.txt have different columns; write the last in a line of each, at least")
    data = concatenated(tests)
    if len(set(data.qids)) < len(data.qids):
        raise FormatError(folder, None, f"topic {Counter(data.qids).most_common(1)[0][0]!r} is in two test.txt")
    warn_of_order(folder, data)
    others = ["train.txt"] if lacking else ["train.txt", "vali.txt"]
    # All folds before the first learns, and one by one, as all their data may not fit in memory: they are read again.
    for part, test in zip(parts, tests, strict=True):
        for name in others:
            if both := {*test.qids} & {*read_letor(part / name, absent=0.0).qids}:
                raise FormatError(part / "test.txt", None, f"topic {min(both)!r} is in {name}, too")
    first, grades, whole = listed_run(data, ""), listed_grades(data), recipe(data, validation=None)
    every = list[Fitted]()
    for part in parts:
        training = read_letor(part / "train.txt", absent=0.0)
        validation = None if lacking else read_letor(part / "vali.txt", absent=0.0)
        fold_recipe = recipe(training, validation=validation)
        fitted = fold_recipe.fit(listed_run(training, ""), listed_grades(training), None, n_jobs=n_jobs)
        every.append(whole.bound(fitted))
        if progress is not None:
            progress(f"{part.name}: {fitted}")
    folds = tuple(test.qids for test in tests)
    run = rerank_by_fold([whole.stage(fitted, None) for fitted in every], folds, first, n_jobs=n_jobs, tag=tag)
    held_out = CrossValidation(run, tuple(every), folds)
    runs = {HELD_OUT: run, **held_out_baselines(held_out, first, None)}
    scores = {name: score_documents(ranked, grades, [str(whole.measure)]) for name, ranked in runs.items()}
    fitted = whole.fit(first, grades, None, n_jobs=n_jobs)
    fitted = fitted.noted({"held_out": {"folds": len(every), **scores[HELD_OUT].by_measure}})
    by_fold = held_out.by_fold(grades, [whole.measure, *FOLD_MEASURES])
    return TrainingResult(fitted, held_out, scores, {name: runs[name] for name in [*runs][1:]}, by_fold=by_fold)


def sample_topics(qids: Sequence[str], limit: int, *, seed: int = 0) -> list[str]:
    """Draw at most this number of topics at random without replacement, in their order; log if there are fewer."""
    check_counts(most_topics=limit)
    if len(qids) <= limit:
        return list(qids)
    drawn = np.sort(np.random.default_rng(seed).choice(len(qids), limit, replace=False))
    _log.info("trained on %s of %s topics with a relevant document, drawn at random", f"{limit:,}", f"{len(qids):,}")
    return [qids[number] for number in drawn]


def held_out_baselines(
    held_out: CrossValidation[M],
    first: Run,
    index: PositionalIndex | None,
    *,
    n_jobs: int | None = None,
) -> dict[str, Run]:
    """Rank by the baselines that each fold tuned or picked on its training queries."""
    if not all(fitted.baselines for fitted in held_out.fitted):  # a fold had one query to learn from
        return {}
    runs = {}
    for name in held_out.fitted[0].baselines:
        stages = [ModelRanker(fitted.baselines[name], index) for fitted in held_out.fitted]
        if index is None:
            parts = zip(stages, held_out.folds, strict=True)
            with gather_missing():  # extraction has warned of what runs lack
                runs[name] = Run(tuple(stage(first[qid]) for stage, fold in parts for qid in fold), name)
        else:
            runs[name] = rerank_by_fold(stages, held_out.folds, first, n_jobs=n_jobs, tag=name)
    return runs
