"""The report of the main study: results, tables of tests, what was learned, and each query before and after."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import chain

from greylag.base import Run
from greylag.evaluation import (
    Collections,
    Evaluation,
    Figure,
    QueryChanges,
    Scores,
    Section,
    Significance,
    excerpts,
    highest_grades,
    line_figure,
    most_changed,
    query_changes,
    result,
    verdict,
)
from greylag.rankers import reasons
from greylag.recipes import CrossValidation, Fitted
from greylag.studies.collection import OpenCollection
from greylag.studies.tables import Table, models_table

TOP_K = 10  # documents of a ranking
SHOWN_QUERIES = 500  # of a list; a report of thousands is slow to open

_MODELS = """\
Each fold's features, in the order of selection if they were added one by one, and their share: weight times the
feature's standard deviation within a query, as a percentage of the sum over features. The weights are in the models.

SD/unordered/BM25-U-4 means: BM25 of neighbouring query terms (SD; FD: any query terms; FI: single ones) that occur in
any order (U; O: in the query's) within 4 tokens for each term. LM is query likelihood."""
_FUSIONS = """\
The share of each ranking in each fold's fusion: weight times the standard deviation within a query, as a percentage of
the sum. combsum is a ranking's scores, scaled to [0, 1], and rrf is 1 / (60 + rank)."""
_QUERIES = f"""\
Open a query to see the top {TOP_K} documents of both rankings. Relevant documents are highlighted, and words of the
query are underlined. Below each text are the reasons for its rank: the features by which its score differs most
from the average of the first stage's top {TOP_K}, and in brackets the cliques that contribute most to them. In
diversified rankings, a subtopic is bold where it first appears."""


@dataclass(frozen=True)
class Ranked:
    """The rankings, scores and models of a study."""

    runs: Mapping[str, Run]
    steps: Sequence[tuple[str, str]]  # the systems that are compared: the earlier, and the later
    scores: Mapping[str, Mapping[str, Scores]]  # by kind (relevance, diversity) and system
    collection: OpenCollection
    trained: Sequence[CrossValidation]  # baselines and, last, the main model
    columns: Table  # what each of them is learned from
    tests: Mapping[str, Significance]  # of each step, by kind
    ranks_by: str  # what the main model ranks by, in the words of its recipe or learner

    @property
    def main(self) -> str:
        """The system of the main model."""
        return self.trained[-1].run.tag

    @property
    def fitted(self) -> Sequence[Fitted]:
        """The main model of each fold."""
        return self.trained[-1].fitted

    @property
    def folds(self) -> Sequence[Sequence[str]]:
        """The test queries of each fold."""
        return self.trained[-1].folds

    @property
    def rankers(self) -> list[Fitted]:
        """The fitted models, if they rerank."""
        return [fitted for fitted in self.fitted if not fitted.model.runs]

    @property
    def evaluation(self) -> Evaluation | Collections:
        """The scores with the tests of the steps."""
        kinds = {kind: Evaluation(scores, self.tests[kind]) for kind, scores in self.scores.items()}
        evaluation = Collections(kinds) if len(kinds) > 1 else next(iter(kinds.values()))
        return replace(evaluation, verdict=verdict(self.compared))

    @property
    def compared(self) -> list[tuple[Mapping[str, Scores], Significance]]:
        """The scores of each kind, and the tests of their differences."""
        return [(self.scores[kind], test) for kind, test in self.tests.items()]


def sections(ranked: Ranked) -> list[Section]:
    """Write the sections of the report."""
    held_out = "Every query was ranked by a model that was trained on the other folds."
    if len(ranked.folds) == 1:
        held_out = f"The model was trained on {len(ranked.fitted[0].queries)} other queries."
    told = f"{_summary(ranked)} {held_out} Parameters of tuned baselines were chosen on the same training queries."
    return [
        result(ranked.compared, told, [*ranked.evaluation.tables(wide=True), ranked.columns]),
        _learned(ranked),
        Section("Queries", _QUERIES, _changes(ranked)),
    ]


def _summary(ranked: Ranked) -> str:
    """Summarise search and learning in a sentence."""
    collection, fitted, folds = ranked.collection, ranked.fitted[0], len(ranked.folds)
    trained = f"on {len(fitted.queries)} training queries"
    how = f"in {folds}-fold cross-validation over queries" if folds > 1 else trained
    return (
        f"{len(collection.tested)} topics over {collection.index.n_documents} documents. {collection.first.tag} "
        f"retrieves, {ranked.main} ranks by {ranked.ranks_by}; the objective is {fitted.model.objective}, {how}."
    )


def _learned(ranked: Ranked) -> Section:
    """Describe the models."""
    title = "What was learned"
    if not (rankers := ranked.rankers):
        fusions = [fitted.model for fitted in ranked.fitted]
        return Section(title, _FUSIONS, [models_table("Share of each ranking", fusions, ordered=False)])
    chosen = [(fold, fitted.chosen[0]) for fold, fitted in enumerate(rankers, 1) if fitted.choice]
    choice, models = Table("The automatic choice", ("fold", "chosen"), chosen), [fitted.model for fitted in rankers]
    measure, rounds = str(models[0].objective), list[Figure]()
    scores = {f"fold {fold}": model.training_scores for fold, model in enumerate(models, 1)}
    grown = any(len(set(scores_of)) > 1 for scores_of in scores.values())  # not weighted at once
    if grown and all(scores.values()):
        caption = f"{measure} on the training queries after each feature, a line for each fold"
        curves = {name: dict(enumerate(values, 1)) for name, values in scores.items()}
        rounds = [line_figure(caption, "round", measure, {"": (curves, {})})]
    return Section(title, _MODELS, [choice, *rounds, models_table("Share of features", models, ordered=grown)])


def _changes(ranked: Ranked) -> list[QueryChanges]:
    """Compare each step by query: the reranked run by relevance, a diversified run by subtopics if there are any."""
    collection, main = ranked.collection, ranked.main
    steps = [step for step in ranked.steps if step[0] in (collection.first.tag, main)]
    # Texts are read once for all steps, and only of documents that are shown.
    tops = {
        docid
        for name in dict.fromkeys(chain.from_iterable(steps))
        for ranking in ranked.runs[name].rankings
        for docid in ranking.docids[:TOP_K]
    }
    show = excerpts(collection.texts(tops), collection.lucene.analyze)
    # Each query is explained by the model that ranked it, which was trained on the other folds.
    by_fold = zip(ranked.rankers, ranked.folds, strict=False)  # none of fusion
    models = {qid: fitted.model for fitted, fold in by_fold for qid in fold}
    explained = reasons(collection.first, models, collection.index) if models else None
    changes = partial(query_changes, top=TOP_K, show=show)
    lists = []
    for before, after in steps:
        caption = f"Queries before ({before}) and after ({after})"
        by_subtopic = after != main and bool(collection.subtopics)
        scores = ranked.scores["diversity" if by_subtopic else "relevance"]
        pair = most_changed(ranked.runs[before], ranked.runs[after], scores, SHOWN_QUERIES)
        if len(pair[1]) < len(ranked.runs[after]):
            caption = f"{caption}: the {SHOWN_QUERIES} that changed most"
        if by_subtopic:
            grades = highest_grades(collection.subtopics)
            lists.append(changes(caption, *pair, scores, grades, subtopics=collection.subtopics))
        else:
            why = explained if after == main else None
            lists.append(changes(caption, *pair, scores, collection.qrels, why=why))
    return lists
