"""The Coulomb structured SVM on SVM-div's task, picking a set of documents: from queries to a report.

Reading queries is others' business (`cssvm_subsets_collection`, `cssvm_subsets_synthetic`); learners and losses are
`cssvm`'s. Twice: trained on several queries, and on one, from which MCL can teach one member only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from greylag.diversity import CoverageModel, random_gain
from greylag.errors import ParameterError
from greylag.evaluation import to_dict
from greylag.experiments import config
from greylag.experiments.report import Section, Table, as_text, provenance, write_report, write_results
from greylag.experiments.study import Result, Say
from greylag.greedy import greedy
from greylag.structured import Coulomb
from greylag_papers.schiegg_2016.ensembles import (
    METHODS,
    QUANTITIES,
    EnsembleSettings,
    Task,
    Trial,
    TrialTable,
    run_trial,
    run_trials,
)
from greylag_papers.schiegg_2016.tables import (
    SSVM,
    angle_table,
    compare_methods,
    comparison_table,
    limit_table,
    rank_table,
    size_figure,
    size_table,
    spread_figure,
    wins_table,
)
from greylag_papers.yue_joachims_2008.comparison import RANDOM_SEEDS, Split, StudyQuery
from greylag_papers.yue_joachims_2008.tables import LOSS

SPACE = "svmdiv"  # of SVM-div's feature spaces, the one without TF-IDF
RANDOM = "random"
ENSEMBLES = (RANDOM, *(method for method in METHODS if method != SSVM))
SHOWN = (SSVM, *ENSEMBLES)
BASELINES = (SSVM, RANDOM, "perturbed", "mcl", "divmcl")
_METHODS = """\
Each member of an ensemble picks documents, and loses the weight of the subtopics that these do not cover; pick-best is
the least of the members' losses on a query, an oracle. Candidates are the documents that cover a subtopic. "cssvm" is
the Coulomb structured SVM, by its assignment of examples to members; "mcl" and "divmcl" are multiple choice learning
without and with a reward for unlike outputs; the dashed line is the structured SVM. At each M every method's parameters
are chosen by the pick-best loss on validation queries, from as many candidates. A member without examples keeps the
structured SVM's weights in "mcl", so that one training query gives it M equal members; in "cssvm" it is where the
others' repulsion moves it.

Pick-best gains from chance alone. Two controls tell how much: "random" picks M random orders (a mean over 20 draws),
and "perturbed" has M random weight vectors around the structured SVM's, at a distance that is chosen as the other
methods' parameters are."""
_TABLES = """\
Wilcoxon's signed-rank test over test queries, two-sided, before and after Holm's correction over the comparisons with
the same baseline; wins are queries on which the first method loses less. A query's losses are means over the ensembles
that are tested on it. Models are given: the tests speak of other test queries, not of other training queries.

Columns 1, 2, ... of the ordered losses are pick-best, the second best, and so on. Shares of wins are from each
ensemble's most winning member to its least, and so fall even where all members are equally good. Angles by alpha are of
all that was trained, whether chosen or not."""
_ALPHA = """\
Trained on all training queries, each of which all members learn from; tested as above, and not chosen among."""


class SubsetSettings(EnsembleSettings):
    """How ensembles are learned from queries.

    Parameters
    ----------
    k : how many documents are picked.
    n_training, n_validation : queries to train on, and to choose parameters by.
    n_single : how many of a split's training queries train alone, one after the other.
    alpha_curve : values of alpha at which angles are shown, chosen or not.
    """

    k: config.Positive = 5
    n_training: config.Positive = 12
    n_validation: config.Positive = 4
    n_single: config.Positive = 2
    alpha_curve: tuple[float, ...] = (0.0, 0.001, 0.01, 0.1, 1.0, 10.0)


def fold_splits(queries: Sequence[StudyQuery], n_training: int, n_validation: int) -> list[Split]:
    """Splits that test each query once: as few as leave enough others to train on and to validate.

    A split tests a block of neighbours, trains on the first queries after it, coming back to the first after the last,
    and validates on the next ones.

    Raises
    ------
    ParameterError
        Where there are too few queries.
    """
    needed = n_training + n_validation
    if min(n_training, n_validation) < 1 or len(queries) <= needed:
        raise ParameterError(
            f"{len(queries)} queries cannot be split into {n_training} to train on, {n_validation} to validate, and 1"
        )
    block = len(queries) - needed
    blocks = np.array_split(np.arange(len(queries)), -(-len(queries) // block))
    splits = []
    for places in blocks:
        order = [queries[place % len(queries)] for place in range(places[0], places[0] + len(queries))]
        rest = order[len(places) :]
        splits.append(Split(tuple(rest[:n_training]), tuple(rest[n_training:needed]), tuple(order[: len(places)])))
    return splits


@dataclass(frozen=True)
class Findings:
    """The losses by what is trained on, and those of the Coulomb structured SVM by alpha."""

    tables: Mapping[str, TrialTable]
    curve: TrialTable


def find(splits: Sequence[Split], settings: SubsetSettings, n_jobs: int, say: Say) -> Findings:
    """All that the study asks."""
    tested = {query.qid: query for split in splits for query in split.test}
    shuffled = random_trials([*tested.values()], settings.sizes, settings.k)
    tables = {}
    for name, wanted in tasks(splits, settings).items():
        say(f"{len(wanted)} times trained on {name}; tested: {len(tested)} queries")
        trials = run_trials(CoverageModel(settings.k), wanted, settings.sizes, settings.grid, n_jobs=n_jobs)
        tables[name] = TrialTable((*shuffled, *trials))
    return Findings(tables, by_alpha(splits, settings))


def tasks(splits: Sequence[Split], settings: SubsetSettings) -> dict[str, list[Task]]:
    """Each split's training queries together, and the first `n_single` of them one by one."""
    together = [_task(split, split.training) for split in splits]
    alone = [_task(split, [query]) for split in splits for query in split.training[: settings.n_single]]
    return {f"{settings.n_training} queries": together, "1 query": alone}


def _task(split: Split, training: Sequence[StudyQuery]) -> Task:
    trained, validation, test = (
        {query.qid: (query.candidates[SPACE], query.truth) for query in queries}
        for queries in (training, split.validation, split.test)
    )
    name = f"{', '.join(trained)} for {next(iter(test))}"
    return Task(name, [*trained.values()], [*validation.values()], test)


def by_alpha(splits: Sequence[Split], settings: SubsetSettings) -> TrialTable:
    """The Coulomb structured SVM with the most members, all of which learn from all queries, at each alpha."""
    M, model = max(settings.sizes), CoverageModel(settings.k)
    learners = [
        Coulomb(M, alpha=alpha, C=C, seed=settings.seed)
        for C in settings.ensemble_costs
        for alpha in settings.alpha_curve
    ]
    trained = tasks(splits, settings)[f"{settings.n_training} queries"]
    return TrialTable(
        tuple(run_trial(model, task, "cssvm-all", M, learner) for learner in learners for task in trained)
    )


def random_trials(queries: Sequence[StudyQuery], sizes: Sequence[int], k: int) -> list[Trial]:
    """Ensembles of random orders, `RANDOM_SEEDS` of each size: what pick-best gains from chance alone."""
    ids = tuple(query.qid for query in queries)
    trials = []
    for seed in range(RANDOM_SEEDS):
        rng = np.random.default_rng(seed)
        losses = [
            [query.truth.loss(greedy(random_gain(len(query.relevance), rng), k)) for query in queries]
            for _ in range(max(sizes))
        ]
        trials += [Trial(RANDOM, M, str(seed), None, 0.0, True, 0.0, ids, np.array(losses[:M])) for M in sizes]
    return trials


def write(settings: SubsetSettings, found: Findings, out: Path, more: Mapping[str, Any]) -> Result:
    """Write ``results.json`` and ``report.html`` to `out`, and summarise them; `more` is told as provenance."""
    tables, M = found.tables, max(settings.sizes)
    curve = angle_table(found.curve, M, f"Mean angle in degrees and losses by alpha, M = {M}")
    content = {name: results(table) for name, table in tables.items()} | {"alpha": [curve.header, *curve.rows]}
    about = provenance(settings, **more)
    write_results(out, {**about, **content})
    main = {name: main_tables(table, M, f"trained on {name}") for name, table in tables.items()}
    spread = spread_figure(tables, SHOWN, f"Losses of all members on all test queries, M = {M}", LOSS)
    sections = [
        Section("Pick-best loss by M", _METHODS, [size_figure(tables, ENSEMBLES, "Pick-best loss by M", LOSS)]),
        *(
            Section(f"Trained on {name}", _TABLES, [*main[name], *more_tables(table, M, f"trained on {name}")])
            for name, table in tables.items()
        ),
        Section("Distribution of losses", parts=[spread]),
        Section("Alpha", _ALPHA, [curve]),
    ]
    write_report(out / "report.html", f"Ensembles for subset prediction: {settings.name}", sections, about)
    summary = "\n".join(as_text(table) for part in main.values() for table in part)
    return Result(scores(tables), f"{summary}\nThe report is {out / 'report.html'}\n")


def main_tables(table: TrialTable, M: int, trained: str) -> list[Table]:
    """Pick-best by M, ordered losses, and the tests of both quantities."""
    return [
        size_table(table, SHOWN, f"Pick-best loss by M, {trained}"),
        rank_table(table, SHOWN, f"Mean and ordered losses, M = {M}, {trained}"),
        *(
            comparison_table(
                f"{quantity.capitalize()} loss, M = {M}, {trained}",
                compare_methods(table, BASELINES, ENSEMBLES, quantity),
            )
            for quantity in QUANTITIES
        ),
    ]


def more_tables(table: TrialTable, M: int, trained: str) -> list[Table]:
    """Mean losses by M, wins, angles, and what stopped at a limit."""
    return [
        size_table(table, ENSEMBLES, f"Mean loss over the members by M, {trained}", "mean"),
        wins_table(table, ENSEMBLES, f"Shares of wins, M = {M}, {trained}"),
        angle_table(table, M, f"Angle in degrees and pick-best loss by alpha, M = {M}, {trained}"),
        limit_table(table, tuple(METHODS), f"Ensembles that stopped at their learner's limit, {trained}"),
    ]


def results(table: TrialTable) -> dict[str, Any]:
    """The tests, and all chosen candidates and their losses by test query, as JSON can hold them."""
    tests = {
        quantity: [to_dict({}, test)["significance"] for test in compare_methods(table, BASELINES, ENSEMBLES, quantity)]
        for quantity in QUANTITIES
    }
    methods = {
        method: {
            str(M): {
                "chosen": {
                    trial.task: {"learner": str(trial.learner), "mean angle": trial.mean_angle}
                    for trial in table.chosen(method, M)
                    if trial.learner
                },
                "losses": {qid: losses.tolist() for qid, losses in table.ordered(method, M).items()},
            }
            for M in table.sizes(method)
        }
        for method in SHOWN
    }
    return {"tests": tests, **methods}


def scores(tables: Mapping[str, TrialTable]) -> dict[str, dict[str, float]]:
    """By method: ``pick-best@M from 1 query`` and its like, at each M."""
    return {
        method: {
            f"{key} from {name}": score for name, table in tables.items() for key, score in table.scores(method).items()
        }
        for method in SHOWN
    }
