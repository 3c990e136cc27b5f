"""The main study: first stage, MRF features, a greedily selected linear model, diversity; cross-validated and scored.

Each step is scored against the one before. Runs, models and results go to one folder.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from greylag.config import Experiment
from greylag.diversity.mmr import MMR
from greylag.errors import ParameterError
from greylag.evaluation import Scores, evaluate, evaluate_by_subtopic, parse_measure, to_dict
from greylag.experiments.collection import open_collection
from greylag.features.extract import FeatureExtractor
from greylag.features.spec import named_pool
from greylag.features.weighting import FeatureParameters
from greylag.index.positional import PositionalIndex
from greylag.ltr.greedy import GreedySelection
from greylag.ltr.linear import LinearModel, MRFRanker
from greylag.ltr.objectives import Objective
from greylag.ltr.training import split_folds, train, training_data
from greylag.ranking import Run, run_step
from greylag.trec import Qrels, read_qrels, read_subtopic_qrels, read_topics, write_run
from greylag.trec.text import write_text

Say = Callable[[str], None]


@dataclass(frozen=True)
class Outcome:
    """What an experiment gave.

    Parameters
    ----------
    runs : by system, in the order of the pipeline.
    scores : by system, on the documents' judgements.
    diversity : the same on judgements by subtopic; empty where the experiment has none.
    models : one for each fold.
    """

    runs: Mapping[str, Run]
    scores: Mapping[str, Scores]
    diversity: Mapping[str, Scores]
    models: tuple[LinearModel, ...]

    def mean(self, system: str, measure: str) -> float:
        """A system's mean of a measure; ParameterError where it was not computed."""
        wanted = parse_measure(measure)
        for scores in (self.scores, self.diversity):
            if system in scores and wanted in scores[system].measures:
                return float(scores[system].means[scores[system].measures.index(wanted)])
        raise ParameterError(f"{measure} of {system!r} was not computed; the systems are {', '.join(self.scores)}")

    def deviations(self, expected: Mapping[str, Mapping[str, float]]) -> list[str]:
        """Where a mean differs from the expected one, both rounded to four decimals: one line each."""
        return [
            f"{system} {measure}: expected {value:.4f}, got {self.mean(system, measure):.4f}"
            for system, measures in expected.items()
            for measure, value in measures.items()
            if round(self.mean(system, measure), 4) != round(value, 4)
        ]


def run_pipeline(experiment: Experiment, out: Path, *, n_jobs: int, say: Say) -> Outcome:
    """Run the experiment; write ``SYSTEM.run``, ``models/fold-I.json`` and ``results.json`` to `out`."""
    topics = read_topics(experiment.path(experiment.topics), lenient=experiment.lenient)
    qrels = read_qrels(experiment.path(experiment.qrels), lenient=experiment.lenient)
    lucene = open_collection(experiment, out / "index", say)
    index = PositionalIndex.from_lucene(lucene)
    stage = experiment.first_stage
    runs = {
        "bm25": run_step(lucene.bm25(stage.hits, stage.k1, stage.b), topics, n_jobs=n_jobs, tag="bm25"),
        "ql": run_step(lucene.ql(stage.hits, stage.mu), topics, n_jobs=n_jobs, tag="ql"),
    }
    say(f"search: {len(topics)} topics with BM25 and with query likelihood, {stage.hits} documents each")
    runs["mrf"], models = cross_validate(experiment, index, runs[stage.model], qrels, n_jobs=n_jobs, say=say)
    measures = [parse_measure(name) for name in experiment.measures]
    diversity: dict[str, Scores] = {}
    if experiment.diversify is not None:
        option = experiment.diversify
        step = MMR(index, option.relevance_weight, option.depth, option.k)
        runs["mmr"] = run_step(step, runs["mrf"], n_jobs=n_jobs, tag="mmr")
        say(f"diversify: MMR, relevance weight {option.relevance_weight}, {option.k} of the first {option.depth}")
        subtopics = read_subtopic_qrels(experiment.path(option.subtopic_qrels), lenient=experiment.lenient)
        diversity = {name: evaluate_by_subtopic(run, subtopics, option.measures) for name, run in runs.items()}
    scores = {name: evaluate(run, qrels, measures) for name, run in runs.items()}
    outcome = Outcome(runs, scores, diversity, models)
    _write(outcome, experiment, index, out)
    return outcome


def cross_validate(
    experiment: Experiment, index: PositionalIndex, run: Run, qrels: Qrels, *, n_jobs: int, say: Say
) -> tuple[Run, tuple[LinearModel, ...]]:
    """Rerank each query by a model that was trained on the queries of the other folds."""
    features, training = experiment.features, experiment.training
    parameters = FeatureParameters(**features.model_dump(exclude={"pool"}))
    extractor = FeatureExtractor(index, named_pool(features.pool), parameters)
    data = training_data(run.rankings, qrels, extractor)
    objective = Objective.parse(training.objective)
    learner = GreedySelection(objective, training.max_features, training.epsilon, training.retrain)
    reranked, models = {}, []
    for number, test in enumerate(split_folds(list(run), training.folds, training.seed), 1):
        own = data.select_queries([qid for qid in data.qids if qid not in test])
        provenance = {"experiment": experiment.name, "fold": number, "folds": training.folds, "seed": training.seed}
        model = train(own, extractor, learner, n_jobs=n_jobs, provenance=provenance)
        chosen = ", ".join(str(spec) for spec in model.features)
        say(f"fold {number}: {objective} {model.training_scores[-1]:.4f} on {len(own.qids)} training queries with {chosen}")
        ranker = MRFRanker(model, index)
        reranked.update(run_step(ranker, [run[qid] for qid in test], n_jobs=n_jobs, tag="mrf"))
        models.append(model)
    return Run(tuple(reranked[qid] for qid in run), "mrf"), tuple(models)


def _write(outcome: Outcome, experiment: Experiment, index: PositionalIndex, out: Path) -> None:
    (out / "models").mkdir(parents=True, exist_ok=True)
    for name, run in outcome.runs.items():
        write_run(run, out / f"{name}.run")
    for number, model in enumerate(outcome.models, 1):
        model.save(out / "models" / f"fold-{number}.json")
    results: dict[str, Any] = {
        "experiment": experiment.model_dump(mode="json"),
        "fingerprint": index.fingerprint,
        "relevance": to_dict(outcome.scores),
    }
    if outcome.diversity:
        results["diversity"] = to_dict(outcome.diversity)
    write_text(out / "results.json", json.dumps(results, indent=1) + "\n")
