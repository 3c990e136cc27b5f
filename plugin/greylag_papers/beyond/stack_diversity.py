"""Diversity after the stack: MMR, SVM-div, and from given aspects xQuAD and PM-2.

The weight of relevance is chosen on the training queries of each fold. SVM-div learns it, as the weight of the
relevance score beside those of words.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Annotated

from pydantic import Field

from greylag.diversity.candidates import CandidateMaker
from greylag.diversity.coverage_model import PRESETS
from greylag.diversity.mmr import MMR
from greylag.diversity.pm2 import PM2
from greylag.diversity.stage import DiversityStage
from greylag.diversity.svmdiv import SVMDiv
from greylag.diversity.training import train, training_examples
from greylag.diversity.xquad import XQuAD
from greylag.evaluation import Scores, evaluate_by_subtopic
from greylag.experiments import config
from greylag.index.positional import PositionalIndex
from greylag.ltr.data import split_folds
from greylag.ranking import Ranking, Run
from greylag.structured import CuttingPlane
from greylag.trec import SubtopicQrels
from greylag_papers.beyond.stack_systems import STACK, Fold

AFTER = f"{STACK}, then "
FEATURES = replace(PRESETS["svmdiv2"], document_features=("score",))
VALIDATION = 3  # one of as many parts of the training queries chooses C


class Diversify(config.Settings):
    """Diversity after the stack, with the weight of relevance chosen on training queries."""

    subtopic_qrels: str
    """Path of the judgements."""
    aspects: str | None = None
    """Path of given aspects, for xQuAD and PM-2."""
    weights: Annotated[tuple[float, ...], Field(min_length=1)] = (0.1, 0.3, 0.5, 0.7, 0.9)
    """The weights of relevance (of one aspect for PM-2) to choose from."""
    measure: config.MeasureName = "alpha-nDCG@10"
    """What the weight is chosen by."""
    set_size: config.Positive = 5
    """Size of the sets that SVM-div is trained to pick."""
    depth: config.Positive = 100
    """As in `DiversityStage`."""
    k: config.Positive = 20
    """As in `DiversityStage`."""


@dataclass(frozen=True)
class Diversifiers:
    """The diversifiers, and what they are learned from."""

    option: Diversify
    subtopics: SubtopicQrels
    aspects: dict[str, tuple[str, ...]]  # None are given if it is empty
    index: PositionalIndex
    seed: int  # of the split of training queries that chooses C

    def add(self, fold: Fold, training: Sequence[str]) -> None:
        """Add the diversifiers after the stack to a fold, all of them learned on the queries `training`."""
        first, measure = list(fold.rankings[STACK].values()), self.option.measure
        known = {qid: self.subtopics[qid] for qid in training if qid in self.subtopics}
        for name, tried in self.weighted().items():
            runs = [stage.run(first, tag=name) for stage in tried]
            values = [float(evaluate_by_subtopic(run, known, [measure]).means[0]) for run in runs]
            best = values.index(max(values))
            fold.rankings[f"{AFTER}{name}"] = dict(runs[best])
            fold.chosen[f"weight of {name}"] = self.option.weights[best]
        learned = self.learned(fold.rankings[STACK], known)
        fold.rankings[f"{AFTER}SVM-div"] = dict(learned.run(first, tag="SVM-div"))

    def weighted(self) -> dict[str, list[DiversityStage]]:
        """The diversifiers that have a weight, with each of the weights."""
        index, weights, depth, k = self.index, self.option.weights, self.option.depth, self.option.k
        stages: dict[str, list[DiversityStage]] = {
            "MMR": [MMR(index, relevance_weight=weight, depth=depth, k=k) for weight in weights]
        }
        if self.aspects:
            stages["xQuAD"] = [
                XQuAD(index, self.aspects, relevance_weight=weight, depth=depth, k=k) for weight in weights
            ]
            stages["PM-2"] = [PM2(index, self.aspects, aspect_weight=weight, depth=depth, k=k) for weight in weights]
        return stages

    def learned(self, first: Mapping[str, Ranking], known: SubtopicQrels) -> SVMDiv:
        """SVM-div, trained on rankings of the queries `known`."""
        option, make = self.option, CandidateMaker(self.index, FEATURES)
        held_out = split_folds(list(known), VALIDATION, self.seed)[0]
        examples = [
            training_examples([first[qid] for qid in qids], known, make, depth=option.depth)
            for qids in ([qid for qid in known if qid not in held_out], held_out)
        ]
        model = train(examples[0], make, CuttingPlane(), k=option.set_size, validation=examples[1])
        return SVMDiv(model, self.index, depth=option.depth, k=option.k)

    def scores(self, runs: Mapping[str, Run]) -> dict[str, Scores]:
        """The scores by subtopic of BM25, the stack, and what follows the stack, on the topics that they rank."""
        shown = ["BM25", STACK, *(system for system in runs if system.startswith(AFTER))]
        known = {qid: self.subtopics[qid] for qid in runs[STACK] if qid in self.subtopics}
        return {system: evaluate_by_subtopic(runs[system], known, [self.option.measure]) for system in shown}
