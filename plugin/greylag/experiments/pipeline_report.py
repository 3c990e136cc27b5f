"""The report of the main study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import pairwise

from greylag.evaluation import Scores, Significance, compare
from greylag.experiments.collection import OpenCollection
from greylag.experiments.queries import QueryChanges, query_changes, reasons
from greylag.experiments.report import Section
from greylag.experiments.tables import Table, comparison_table, means, means_table
from greylag.ltr.linear import LinearModel
from greylag.ltr.training import CrossValidation

SHOWN = 10  # documents of a ranking

_EFFECTIVENESS = """\
Every query was ranked by a model that was trained on the other folds. p is that of the two-sided paired t-test over
queries, after Holm's correction over each comparison with the step before."""
_MODELS = """\
The features of each fold's model in the order of their selection, with their weights. Weights apply to unscaled
features, so weights of different features cannot be compared."""
_QUERIES = f"""\
Open a query to see the top {SHOWN} documents of both rankings. Relevant documents are highlighted. The last column
says why a document is where it is: the features by which its score differs most from the average of the first stage's
top {SHOWN}, and in brackets the cliques of the document that contribute most to them."""


def sections(
    scores: Mapping[str, Mapping[str, Scores]],
    steps: Sequence[str],
    collection: OpenCollection,
    validated: CrossValidation,
) -> list[Section]:
    """The sections of the report."""
    tables: list[Table] = []
    for kind, own in scores.items():
        queries = len(next(iter(own.values())).qids)
        tables.append(means_table(f"{kind.capitalize()}: means over {queries} judged queries", means(own)))
        tables.append(comparison_table(f"{kind.capitalize()}: each step against the one before", *tests(own, steps)))
    return [
        Section("Effectiveness", f"{summary(collection, validated)}\n\n{_EFFECTIVENESS}", tables),
        Section("What was learned", _MODELS, [models_table("Order and weight of features", validated.models)]),
        Section("Queries", _QUERIES, [changes(scores["relevance"], collection, validated)]),
    ]


def tests(scores: Mapping[str, Scores], steps: Sequence[str]) -> list[Significance]:
    """Each step compared with the step before."""
    return [compare({before: scores[before], after: scores[after]}, before) for before, after in pairwise(steps)]


def summary(collection: OpenCollection, validated: CrossValidation) -> str:
    """What was searched and learned, in a sentence."""
    model = validated.models[0]
    return (
        f"{len(collection.topics)} topics over {collection.index.n_documents} documents. {collection.first.tag} "
        f"retrieves, {validated.run.tag} reranks by features that were selected to maximise {model.objective}, in "
        f"{len(validated.folds)}-fold cross-validation over queries."
    )


def models_table(caption: str, models: Sequence[LinearModel], *, ordered: bool = True) -> Table:
    """The weight of each feature in the model of each fold, the most frequent features first.

    Parameters
    ----------
    caption : str
    models : sequence of LinearModel
        One for each fold.
    ordered : bool, default True
        Whether the order of a model's features is that of their selection, and is shown.
    """
    cells: dict[str, dict[int, str]] = {}
    for fold, model in enumerate(models):
        for place, (feature, weight) in enumerate(zip(model.features, model.weights, strict=True), 1):
            order = f"{place}:\N{NO-BREAK SPACE}" if ordered else ""
            cells.setdefault(str(feature), {})[fold] = f"{order}{weight:+.4g}"
    frequent = sorted(cells, key=lambda feature: -len(cells[feature]))
    rows = [[feature, *map(cells[feature].get, range(len(models)))] for feature in frequent]
    return Table(caption, ("feature", *(f"fold {fold}" for fold in range(1, len(models) + 1))), rows)


def changes(scores: Mapping[str, Scores], collection: OpenCollection, validated: CrossValidation) -> QueryChanges:
    """The first stage and the reranked run, query by query."""
    first, run = collection.first, validated.run
    caption = f"Queries before ({first.tag}) and after reranking ({run.tag})"
    models = {qid: model for model, fold in zip(validated.models, validated.folds, strict=True) for qid in fold}
    why = reasons(first, models, collection.index)
    return query_changes(caption, first, run, scores, collection.qrels, top=SHOWN, why=why)
