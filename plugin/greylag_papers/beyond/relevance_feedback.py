"""Rounds of relevance feedback on a test collection: manifold ranking, Rocchio and RM3 with judged documents.

Zhou et al. (2003, section 6) propose to extend the query set of manifold ranking by "positive feedback", round by
round. Here each method has one parameter, which is chosen for each fold on the other folds, by residual AP over all
rounds.
`greylag.manifold.sessions` explains the two kinds of session and what their scores can be compared with.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Annotated

import numpy as np
from pydantic import Field

from greylag import Ranking, Run
from greylag.evaluation import Scores, Significance, compare, evaluate, split_folds
from greylag.features import FeatureParameters
from greylag.index import PositionalIndex
from greylag.manifold import Graph, ManifoldRanker, RelevanceModelRanker, Rocchio, feedback_session
from greylag.manifold.feedback import Feedback
from greylag.manifold.sessions import MakeStage, Session, residual_qrels
from greylag.reports import to_dict
from greylag.reports.figures import Figure, line_figure
from greylag.reports.report import Section
from greylag.runtime import parallel_map
from greylag.studies import config
from greylag.studies.collection import CollectionSettings, OpenCollection, open_collection
from greylag.studies.study import Context, Outcome, Study
from greylag.studies.tables import Table, comparison_table, means, merge_scores
from greylag.trec import Qrels
from greylag_papers.contrasts import contrasts
from greylag_papers.texts import read_texts

NONE, ROCCHIO, RM3, MANIFOLD = "no feedback", "Rocchio", "RM3", "manifold"
Values = Annotated[tuple[float, ...], Field(min_length=1)]
_TEXTS = read_texts(__file__)


class Settings(CollectionSettings):
    """A collection, the rounds, and the values that the parameter of each method is chosen from.

    All methods rerank all documents of the first stage.
    """

    rounds: config.Positive = 3
    """Number of rounds."""
    per_round: config.Positive = 10
    """Number of documents judged in each round."""
    folds: config.Folds = 5
    """The number of folds of cross-validation over topics."""
    seed: config.Seed = 0
    """Seed of the split into folds."""
    graph: Graph = "knn"
    """Graph of manifold ranking."""
    betas: Values = (0.75, 1.5, 3, 6)
    """Values of the parameters of Rocchio, RM3 and manifold ranking."""
    query_weights: Values = (0.1, 0.3, 0.5, 0.7)
    """Values of the parameters of Rocchio, RM3 and manifold ranking."""
    alphas: Values = (0.6, 0.9, 0.99)
    """Values of the parameters of Rocchio, RM3 and manifold ranking."""
    mu: float = 1000.0
    """Dirichlet prior of RM3."""
    measures: Annotated[tuple[config.MeasureName, ...], Field(min_length=1)] = ("AP", "nDCG@10")
    """Measures on residual collections."""


@dataclass(frozen=True)
class Chosen:
    """One method, with a parameter for each fold."""

    parameters: tuple[float, ...]  # by fold
    given: Session  # given, interactive: the sessions, each query with the parameter of its fold
    interactive: Session


def methods(settings: Settings, index: PositionalIndex) -> dict[str, dict[float, MakeStage]]:
    """For each method, the stage by value of its parameter. That of `NONE` is without effect."""
    stage = settings.first_stage
    own = {name: value for name, value in stage.search.parameters.items() if name in ("k1", "b")}
    bm25, lm = FeatureParameters(**own), FeatureParameters(mu=settings.mu)

    def manifold(alpha: float, feedback: Feedback) -> ManifoldRanker:
        return ManifoldRanker(index, depth=stage.hits, alpha=alpha, graph=settings.graph, feedback=feedback)

    def rocchio(beta: float, feedback: Feedback) -> Rocchio:
        return Rocchio(index, feedback, beta=beta, parameters=bm25)

    def rm3(weight: float, feedback: Feedback) -> RelevanceModelRanker:
        return RelevanceModelRanker(index, feedback, query_weight=weight, parameters=lm)

    def unchanged(_: float, __: Feedback) -> Callable[[Ranking], Ranking]:
        return lambda ranking: ranking

    return {
        NONE: {0.0: partial(unchanged, 0.0)},
        ROCCHIO: {value: partial(rocchio, value) for value in settings.betas},
        RM3: {value: partial(rm3, value) for value in settings.query_weights},
        MANIFOLD: {value: partial(manifold, value) for value in settings.alphas},
    }


def run(settings: Settings, opened: OpenCollection, context: Context) -> Outcome:
    """Simulate both kinds of session with every method."""
    first, qrels = opened.first, opened.qrels
    folds = split_folds(list(first), settings.folds, settings.seed)
    chosen = {}
    for name, stages in methods(settings, opened.index).items():
        with context.timed(name):
            chosen[name] = choose(name, stages, first, qrels, folds, settings, context.n_jobs)
        context.progress(f"{name}: {', '.join(f'{value:g}' for value in chosen[name].parameters)} by fold")
    rounds = [residual_scores(chosen, qrels, number, settings.measures) for number in range(1, settings.rounds + 1)]
    recall = [f"R@{settings.per_round * number}" for number in range(1, settings.rounds + 1)]
    found = {
        name: evaluate(method.interactive.shown_run(first, name), qrels, recall) for name, method in chosen.items()
    }
    # After the last round, where methods have had the most to learn from.
    by_query = {name: part.values[:, 0] for name, part in rounds[-1].items()}
    others, where = [(ROCCHIO, name) for name in by_query if name != ROCCHIO], f", residual {settings.measures[0]}"
    scores = merge_scores([
        *(_by_round(part, number) for number, part in enumerate(rounds, 1)), means(found),
        contrasts(by_query, others, where=where),
    ])  # fmt: skip
    given = [comparison_table(f"After round {number}", *significances(part)) for number, part in enumerate(rounds, 1)]
    last = {
        name: evaluate(method.interactive.shown_run(first, name), qrels, recall[-1:]) for name, method in chosen.items()
    }
    interactive = comparison_table(f"After {settings.rounds} rounds", *significances(last))
    parameters = parameter_table(chosen)
    totals = [residual_table(rounds, settings.measures), found_table(found)]
    return Outcome(
        scores=scores,
        results={
            "parameters": {name: method.parameters for name, method in chosen.items()},
            "rounds": [to_dict(part) for part in rounds],
            "found": to_dict(found),
        },
        tables=[*totals, *given, interactive, parameters],
        title=f"Relevance feedback: {settings.name}",
        sections=[
            Section(
                "The same judged documents for all methods",
                _TEXTS["relevance_feedback: given"],
                [totals[0], figure(rounds), *given],
            ),
            Section(
                "Each method shows its own documents",
                _TEXTS["relevance_feedback: interactive"],
                [totals[1], interactive],
            ),
            Section("Parameters", "Chosen on the other folds, by AP over all rounds of the first kind.", [parameters]),
        ],
        runs={_file_name(name): method.given.residuals[-1] for name, method in chosen.items()},
        seconds=context.seconds,
        provenance={"fingerprint": opened.index.fingerprint},
    )


def choose(
    name: str,
    stages: Mapping[float, MakeStage],
    first: Run,
    qrels: Qrels,
    folds: Sequence[Sequence[str]],
    settings: Settings,
    n_jobs: int | None,
) -> Chosen:
    """The sessions of one method; a fold's parameter has the highest mean over rounds of residual AP on other folds."""
    session = partial(
        feedback_session, rounds=settings.rounds, per_round=settings.per_round, n_jobs=n_jobs, tag=_file_name(name)
    )

    def simulate(values: Collection[float], *, interactive: bool) -> dict[float, Session]:
        work, makes = partial(session, interactive=interactive), [stages[value] for value in values]
        sessions = parallel_map(work, makes, first, qrels, what=f"{name} by value", n_jobs=n_jobs, coarse=True)
        return dict(zip(values, sessions, strict=True))

    sessions = simulate(stages, interactive=False)
    ap = {value: _ap_by_round(session, qrels) for value, session in sessions.items()}
    parameters = []
    for test in folds:
        on_others = {
            value: np.mean([np.mean([ap for qid, ap in part.items() if qid not in test]) for part in by_round])
            for value, by_round in ap.items()
        }
        parameters.append(max(on_others, key=on_others.__getitem__))
    # Sessions of the second kind only with the chosen values: their scores could not choose, as residuals differ.
    shown = simulate(dict.fromkeys(parameters), interactive=True)
    by_query = {qid: value for value, test in zip(parameters, folds, strict=True) for qid in test}
    return Chosen(tuple(parameters), _assemble(sessions, by_query, first), _assemble(shown, by_query, first))


def _ap_by_round(session: Session, qrels: Qrels) -> list[dict[str, float]]:
    return [
        evaluate(residual, residual_qrels(qrels, session.seen(number)), ["AP"]).by_query
        for number, residual in enumerate(session.residuals, 1)
    ]


def _assemble(sessions: Mapping[float, Session], by_query: Mapping[str, float], first: Run) -> Session:
    """One session from several, each query from the session of its parameter."""
    some = next(iter(sessions.values()))
    shown = tuple({qid: sessions[by_query[qid]].shown[i][qid] for qid in first} for i in range(len(some.shown)))
    residuals = tuple(
        Run(tuple(sessions[by_query[qid]].residuals[i][qid] for qid in first), part.tag)
        for i, part in enumerate(some.residuals)
    )
    return Session(shown, residuals)


def residual_scores(
    chosen: Mapping[str, Chosen], qrels: Qrels, number: int, measures: Sequence[str]
) -> dict[str, Scores]:
    """The scores of all methods on the residual collection after a round of the first kind."""
    rest = residual_qrels(qrels, next(iter(chosen.values())).given.seen(number))
    return {name: evaluate(method.given.residuals[number - 1], rest, measures) for name, method in chosen.items()}


def significances(scores: Mapping[str, Scores]) -> tuple[Significance, Significance]:
    """All methods against the ranking without feedback, and the other methods against Rocchio's."""
    return compare(scores, NONE), compare({name: values for name, values in scores.items() if name != NONE}, ROCCHIO)


def _by_round(scores: Mapping[str, Scores], number: int) -> dict[str, dict[str, float]]:
    return {
        name: {f"{measure}, round {number}": value for measure, value in values.by_measure.items()}
        for name, values in scores.items()
    }


def residual_table(rounds: Sequence[Mapping[str, Scores]], measures: Sequence[str]) -> Table:
    """Residual means by round."""
    header = ("", *(f"{measure}, round {n}" for n in range(1, len(rounds) + 1) for measure in measures))
    rows: list[list[str | float | int]] = [
        [name, *(value for part in rounds for value in part[name].by_measure.values())] for name in rounds[0]
    ]
    rows.append(["queries", *(len(part[NONE].qids) for part in rounds for _ in measures)])
    return Table("Residual collections, the same judged documents for all methods", header, rows)


def found_table(found: Mapping[str, Scores]) -> Table:
    """The share of relevant documents found by number of judgements."""
    header = ("", *map(str, next(iter(found.values())).measures))
    return Table(
        "Relevant documents found, each method showing its own",
        header,
        [(name, *values.by_measure.values()) for name, values in found.items()],
    )


def parameter_table(chosen: Mapping[str, Chosen]) -> Table:
    """The parameter of each method in each fold."""
    n_folds = len(next(iter(chosen.values())).parameters)
    rows = [(name, *(f"{value:g}" for value in method.parameters)) for name, method in chosen.items() if name != NONE]
    return Table("Parameter by fold", ("", *(f"fold {fold}" for fold in range(1, n_folds + 1))), rows)


def figure(rounds: Sequence[Mapping[str, Scores]]) -> Figure:
    """The first measure against the number of rounds."""
    measure = str(rounds[0][NONE].measures[0])
    curves = {name: {number: float(part[name].means[0]) for number, part in enumerate(rounds, 1)} for name in rounds[0]}
    return line_figure(f"Residual {measure} by round", "rounds", measure, {"": (curves, {})})


def _file_name(name: str) -> str:
    return name.lower().replace(" ", "-")


STUDY = Study(Settings, open_collection, run)
