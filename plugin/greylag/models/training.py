"""`train`: a model by a recipe, the automatic choice by default, and how good it is on topics that it has not seen."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from textwrap import fill

from greylag.errors import ParameterError
from greylag.evaluation import Scores, compare, evaluate
from greylag.evaluation.folds import split_folds
from greylag.features.feature import Feature
from greylag.features.spelling import parse_feature
from greylag.index.analysis import QueryForm
from greylag.index.positional import PositionalIndex
from greylag.linesearch.data import Qrels
from greylag.missing_documents import gathered
from greylag.models.automatic import BM25, AutomaticRecipe, PreparedChoice
from greylag.models.choice import Choice, title
from greylag.models.index_free import BEST_COLUMN, IndexFreeRecipe, PreparedColumns
from greylag.models.model import RankingModel
from greylag.models.rankers import ModelRanker
from greylag.models.recipes import (
    CrossValidation,
    Rankings,
    Recipe,
    as_run,
    cross_validate,
    noted,
    rerank_by_fold,
    training_line,
)
from greylag.models.sources import sources_table
from greylag.ranking import Run
from greylag.tables import as_text, html_text, visible

HELD_OUT, FIRST = "held out", "first stage"
WIDTH = 110  # of the sentence when it is printed


@dataclass(frozen=True, repr=False)
class TrainingResult:
    """A model, and what cross-validation says of the recipe that made it; ``str`` is a summary to read.

    Parameters
    ----------
    model : RankingModel
        Trained on all queries; with folds, its provenance has the held-out score.
    held_out : CrossValidation or None
        None without folds.
    scores : mapping of str to Scores
        The recipe's measure of the "first stage" and of the "held out" rankings, and for the automatic choice of "tuned
        BM25" and "tuned RM3", which each fold tuned on its training queries. Without an index, of each run, or in place
        of the first stage of the "best column" by the training queries. Empty without folds.
    choice : Choice or None
        The systems that the automatic choice tried; None for other recipes.
    """

    model: RankingModel
    held_out: CrossValidation | None = field(default=None, compare=False)
    scores: Mapping[str, Scores] = field(default_factory=dict, compare=False)
    choice: Choice | None = field(default=None, compare=False)

    @property
    def verdict(self) -> str:
        """How much better the automatic choice is than tuned BM25, or another model than the first stage.

        By the held-out scores if there are any, else by those that the choice was made by, corrected for that; empty
        for other recipes without folds.
        """
        name, tuned = "The automatic choice" if self.choice else "The held-out model", f"tuned {BM25}"
        if self.scores:
            others = [other for other in self.scores if other != HELD_OUT]
            baseline = tuned if tuned in others else max(others, key=lambda other: float(self.scores[other].means[0]))
            named = {baseline: self.scores[baseline], name: self.scores[HELD_OUT]}
            return f"{compare(named, baseline).comparisons[0].verdict} Each topic was held out."
        if self.choice is None:
            return ""
        best, queries, first = self.choice.best, len(self.choice.qids), title(next(iter(self.choice.values)))
        tuned = tuned if first == str(BM25) else first
        if best.comparison is None:
            return f"The choice is {tuned}: on {queries} topics, nothing else was better."
        sentence = replace(best.comparison, baseline=tuned).verdict
        return f"{sentence} Corrected for the choice on the same topics."

    def __repr__(self) -> str:
        return visible(f"<{type(self).__name__}: {training_line(self.model)}>")

    def __str__(self) -> str:
        if self.choice is None:
            return "\n".join(filter(None, [training_line(self.model), self.verdict]))
        reasons = (f"left out: {system}: {reason}" for system, reason in self.choice.left_out.items())
        gains = self.model.provenance.get("sources")
        tables = [self.choice.table(), *([sources_table(gains, self.model.objective)] if gains else [])]
        return visible("\n".join([*map(as_text, tables), *reasons, fill(self.verdict, WIDTH)]))

    def _repr_html_(self) -> str:
        return html_text(str(self))


def train(
    rankings: Rankings,
    qrels: Qrels,
    index: PositionalIndex | None,
    recipe: Recipe | None = None,
    *,
    folds: int | None = None,
    seed: int = 0,
    n_jobs: int | None = None,
    tag: str = "held-out",
    progress: Callable[[str], None] | None = None,
    query_form: QueryForm | None = None,
) -> TrainingResult:
    """Make the best model that the judged queries allow, or one by a recipe; with `folds`, score it on unseen queries.

    The scores on training queries say nothing about other queries, so with `folds` each query is also ranked by a model
    of the other folds, and these rankings are scored.

    Parameters
    ----------
    rankings : Run or iterable of Ranking
        The first stage, which the model reranks.
    qrels : mapping of qid to docid to grade
        Only queries with a relevant document, by the objective's level, are trained on.
    index : PositionalIndex or None
        None for an `IndexFreeRecipe`.
    recipe : Recipe, default ``AutomaticRecipe()``
        How the model is made. The default cross-validates tuned baselines and several learners, and learns the best one
        or an average for AP; ``AutomaticRecipe("nDCG@10")`` for another measure.
    folds : int >= 2, optional
        The number of folds of cross-validation; none by default.
    seed : int, default 0
        The seed of the split into folds.
    n_jobs : int, optional
        Number of workers; results do not depend on it.
    tag : str, default "held-out"
        The tag of the held-out run.
    progress : callable, optional
        Called with a message after each fold.
    query_form : QueryForm, optional
        How queries are shortened before features are computed, wherever the model is used, too.

    Examples
    --------
    >>> result = train(bm25_run, qrels, index)  # doctest: +SKIP
    >>> print(result)  # doctest: +SKIP
    >>> result.model.save("model.json")  # doctest: +SKIP
    """
    recipe, form, given = recipe or AutomaticRecipe(), query_form or QueryForm(), as_run(rankings)
    if index is None and recipe.needs_index:
        raise ParameterError(f"{type(recipe).__name__} needs an index: give one, or an IndexFreeRecipe")
    first = Run(tuple(map(form.apply, given.rankings)), given.tag)
    if folds is not None:
        split_folds(list(first), folds, seed)  # refuses too many folds before features are computed
    prepared = recipe.prepare(first, qrels, index, n_jobs=n_jobs)
    held_out, scores, validated, choice = None, {}, {}, None
    if folds is not None:
        held_out = cross_validate(
            recipe, first, qrels, index, folds=folds, seed=seed, n_jobs=n_jobs, tag=tag, progress=progress,
            prepared=prepared,
        )  # fmt: skip
        known = {str(one): one for one in (recipe.features if isinstance(recipe, IndexFreeRecipe) else ())}
        baselines = held_out_baselines(held_out, first, index, known, n_jobs=n_jobs)
        runs = {**({} if BEST_COLUMN in baselines else {FIRST: first}), HELD_OUT: held_out.run, **baselines}
        judged = {qid: dict(qrels[qid]) for qid in qrels}
        scores = {name: evaluate(run, judged, [str(recipe.measure)]) for name, run in runs.items()}
        validated = {"held_out": {"folds": folds, **scores[HELD_OUT].by_measure}}
    if isinstance(prepared, PreparedChoice | PreparedColumns):
        model, choice = prepared.choose(list(first), n_jobs=n_jobs)
    else:
        model = prepared.fit(list(first), n_jobs=n_jobs)
    return TrainingResult(replace(noted(model, validated), query_form=form), held_out, scores, choice)


def held_out_baselines(
    held_out: CrossValidation,
    first: Run,
    index: PositionalIndex | None,
    known: Mapping[str, Feature],
    *,
    n_jobs: int | None = None,
) -> dict[str, Run]:
    """The rankings by the baselines that each fold tuned or picked on its training queries, of features by name."""
    runs = {}
    for name in held_out.models[0].provenance.get("baselines", ()):
        spelt = [model.provenance["baselines"][name] for model in held_out.models]
        features = [known.get(text) or parse_feature(text) for text in spelt]
        stages = [
            ModelRanker(replace(model, features=(feature,), weights=(1.0,)), index)
            for model, feature in zip(held_out.models, features, strict=True)
        ]
        if index is None:
            with gathered():  # what runs lack was told when features were extracted
                runs[name] = Run(
                    tuple(
                        stage(first[qid]) for stage, fold in zip(stages, held_out.folds, strict=True) for qid in fold
                    ),
                    name,
                )
        else:
            tag = f"tuned {name}"
            runs[tag] = rerank_by_fold(stages, held_out.folds, first, n_jobs=n_jobs, tag=tag)
    return runs
