"""The Coulomb structured SVM on the task of SVM-div, picking a set of documents.

Ensembles are trained on several queries, and on a single one, from which only one member of MCL can learn. Splits of
queries come from synthetic candidate sets or from a test collection, as in Yue & Joachims (2008), section 6. There,
candidates are the documents that cover a subtopic, and each query is tested by models trained on other queries.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from greylag.base import ModularGain, greedy_picks
from greylag.diversity import CoverageModel
from greylag.evaluation import Section
from greylag.studies import Context, Outcome, Positive, Study, means_table
from greylag_papers.schiegg_2016 import report
from greylag_papers.schiegg_2016.trials import (
    COULOMB,
    METHODS,
    SSVM,
    EnsembleSettings,
    Task,
    Trial,
    TrialTable,
    run_trials,
)
from greylag_papers.texts import read_texts
from greylag_papers.yue_joachims_2008.comparison import RANDOM_SEEDS
from greylag_papers.yue_joachims_2008.queries import (
    CandidateSettings,
    Split,
    StudyQuery,
    first_split,
    folds,
    open_candidates,
    synthetic_queries,
)
from greylag_papers.yue_joachims_2008.synthetic import SyntheticSettings

SPACE = "svmdiv"  # the feature space without TF-IDF
RANDOM = "random"
SHOWN = (SSVM, RANDOM, *(method for method in METHODS if method != SSVM))
BASELINES = (SSVM, RANDOM, "perturbed", "mcl", "mcl-perturbed", "divmcl")
_TEXTS = read_texts(__file__)


class SubsetSettings(EnsembleSettings):
    """How ensembles learn from queries."""

    k: Positive = 5
    """Number of documents picked."""
    n_training: Positive = 12
    """Number of queries to train on."""
    n_validation: Positive = 4
    """Number of queries to choose parameters on."""
    n_single: Positive = 2
    """Number of training queries of each split that are also trained on alone."""


@dataclass(frozen=True)
class OpenSplits:
    """Splits of queries, and where the queries come from."""

    splits: Sequence[Split]
    provenance: Mapping[str, Any]


def run(settings: SubsetSettings, opened: OpenSplits, context: Context) -> Outcome:
    """Compare ensembles that pick sets of documents."""
    tested = {query.qid: query for split in opened.splits for query in split.test}
    shuffled = random_trials([*tested.values()], settings.sizes, settings.k)
    model, n_jobs = CoverageModel(settings.k), context.n_jobs
    tables, parts, by_training = {}, {}, {}
    for name, wanted in tasks(opened.splits, settings).items():
        context.progress(f"{len(wanted)} ensembles per candidate, each trained on {name}; {len(tested)} test queries")
        where = f"trained on {name}"
        table = TrialTable((*shuffled, *run_trials(model, wanted, settings, n_jobs=n_jobs)))
        matched = report.matched_trials(model, wanted, table, COULOMB, n_jobs=n_jobs)
        tests = report.claims(table, matched, COULOMB, BASELINES, "example")
        parts[name] = [
            report.size_table(table, SHOWN, f"Pick-best loss by M, {where}"),
            means_table(f"Losses at the largest M, {where}", tests),
            report.size_table(table, SHOWN, f"Mean loss of the members by M, {where}", "mean"),
        ]
        tables[name], by_training[name] = table, {"tests": tests, **results(table)}
    return Outcome(
        scores=scores(tables),
        results=by_training,
        title=f"Ensembles for subset prediction: {settings.name}",
        sections=[
            Section("Methods", _TEXTS["subsets: methods"]),
            *(Section(f"Trained on {name}", _TEXTS["subsets: tables"], parts[name]) for name in tables),
        ],
        provenance=opened.provenance,
    )


def tasks(splits: Sequence[Split], settings: SubsetSettings) -> dict[str, list[Task]]:
    """Return the training queries of each split together, and the first `n_single` of them one by one."""
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


def random_trials(queries: Sequence[StudyQuery], sizes: Sequence[int], k: int) -> list[Trial]:
    """Return ensembles of random orders, `RANDOM_SEEDS` of each size."""
    ids = tuple(query.qid for query in queries)
    trials = []
    for seed in range(RANDOM_SEEDS):
        rng = np.random.default_rng(seed)
        losses = [
            [query.truth.loss(greedy_picks(ModularGain(rng.random(len(query.relevance))), k)) for query in queries]
            for _ in range(max(sizes))
        ]
        # The first M orders are the ensemble of size M; each seed is a task, over which tables take means.
        trials += [
            Trial(RANDOM, M, str(seed), None, 0.0, True, 0.0, np.nan, np.nan, None, ids, np.array(losses[:M]))
            for M in sizes
        ]
    return trials


def results(table: TrialTable) -> dict[str, Any]:
    """Return the losses by test query of the chosen candidates, JSON-serialisable."""
    return {
        method: {
            str(M): {qid: losses.tolist() for qid, losses in table.ordered(method, M).items()}
            for M in table.sizes(method)
        }
        for method in SHOWN
    }


def scores(tables: Mapping[str, TrialTable]) -> dict[str, dict[str, float]]:
    """Return scores by method, named like ``pick-best@M from 1 query``."""
    return {
        method: {
            f"{key} from {name}": score for name, table in tables.items() for key, score in table.scores(method).items()
        }
        for method in SHOWN
    }


class SyntheticSubsets(SubsetSettings, SyntheticSettings):
    """Synthetic sets, and how ensembles learn from them."""


class CollectionSubsets(SubsetSettings, CandidateSettings):
    """A collection, and how ensembles learn from it."""


def open_synthetic(settings: SyntheticSubsets, context: Context) -> OpenSplits:
    """Draw the sets; those that are neither trained nor validated on are tested."""
    split = first_split(synthetic_queries(settings.sets), settings.n_training, settings.n_validation)
    return OpenSplits([split], {"data": asdict(settings.sets)})


def open_splits(settings: CollectionSubsets, context: Context) -> OpenSplits:
    """Open the collection, and split its queries so that each is tested once."""
    opened = open_candidates(settings, context)
    splits = folds(opened.queries(), settings.n_training, settings.n_validation)
    return OpenSplits(splits, {"fingerprint": opened.index.fingerprint})


SYNTHETIC = Study(SyntheticSubsets, open_synthetic, run)
COLLECTION = Study(CollectionSubsets, open_splits, run)
