"""Multiple choice learning (MCL) and its diverse variant (DivMCL): ensembles whose members specialise.

MCL alternates between assigning each example to the member whose prediction has the lowest task loss, and training each
member on its own examples:

    min over w_m:  ||w_m||² / 2 + C / n sum over member m's examples i of H_i(w_m),

with H_i the hinge loss. DivMCL adds a reward for outputs that differ from those of the other members.

References
----------
Guzman-Rivera, Batra and Kohli, Multiple choice learning: learning to produce multiple structured outputs, NIPS 2012.
Guzman-Rivera, Kohli, Batra and Rutenbar, Efficiently enforcing diversity in multi-output structured prediction,
AISTATS 2014. Schiegg, Diego and Hamprecht, Learning diverse models: the Coulomb structured support vector machine, ECCV
2016, section 2 (assignment by task loss) and section 3.3 (perturbed start).
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, Literal, NamedTuple

import numpy as np

from greylag.base import FloatArray, IntArray
from greylag.learning import CuttingPlane, TrainingSet
from greylag_papers.schiegg_2016.ensemble import Ensemble, perturbations

_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class MultipleChoice:
    """A learner of M members by multiple choice; with M = 1, the structured SVM.

    An example goes to the member of lowest task loss; ties go to the hinge loss that is lower by more than
    epsilon, then to the first. A member without examples keeps its weights. Training stops when an assignment (with
    diversity, an assignment and the outputs of all members) recurs. It has converged if that is the last one; in a
    longer circle, members were trained on another assignment than that of their losses.

    With `diversity` > 0 (DivMCL), the loss of an output increases by `diversity` times its mean similarity to the
    outputs of the other members, so that the required margin grows with the similarity. A member also learns from the
    examples of the other members, with weight `diversity` and by that similarity alone.

    With the start "svm", members are copies of the structured SVM, and examples are assigned at random in equal shares.
    With "perturbed", they are the structured SVM plus random vectors of a tenth of its length, as in `Coulomb`, and
    have the first choice of examples.
    """

    M: int = 5  # number of members
    _: KW_ONLY
    C: float = 1.0  # weight of the mean hinge loss relative to ||w||² / 2
    diversity: float = 0.0  # 0 is MCL; above 0, the model outputs are compared: `_Apart`
    start: Literal["svm", "perturbed"] = "svm"
    rounds: int = 10  # at most
    epsilon: float = 1e-3  # of `CuttingPlane`
    seed: int = 0  # of the first assignment or the random vectors

    def solve(self, training: TrainingSet[Any, Any, Any], optimum: FloatArray) -> Ensemble:
        """Train the members from the structured SVM's weights for the same C."""
        model, examples = training.model, training.examples
        rng, weights = np.random.default_rng(self.seed), np.tile(optimum, (self.M, 1))
        if self.start == "perturbed":
            weights = training.project(weights + perturbations(optimum, self.M, rng))
        outputs = [[model.infer(x, member) for x, _ in examples] for member in weights]
        if self.start == "perturbed":
            assigned = _choices(training, weights, outputs, self.epsilon)
        else:
            assigned = rng.permutation(len(examples)) % self.M
        met, last = set[bytes](), b""
        solved: dict[bytes, tuple[FloatArray, list[Any]]] = {}
        for number in range(1, self.rounds + 1):
            for m in range(self.M):
                chosen, others = assigned == m, outputs[:m] + outputs[m + 1 :]
                if not chosen.any() and not self._is_apart:
                    continue
                # The same examples, and with diversity the same outputs of the others, give the same weights.
                problem = chosen.tobytes() + (_as_bytes(others) if self._is_apart else b"")
                if problem not in solved:
                    solved[problem] = self._train(training, chosen.tolist(), others)
                weights[m], outputs[m] = solved[problem]
            assigned = _choices(training, weights, outputs, self.epsilon)
            state = assigned.tobytes() + (_as_bytes(outputs) if self.diversity else b"")
            if state == last:
                return Ensemble(weights, number, converged=True)
            # An assignment from before the last one: the rounds would go on in this circle.
            if state in met:
                _log.warning("multiple choice learning goes round in a circle of assignments (C %g)", self.C)
                return Ensemble(weights, number, converged=False)
            met.add(state)
            last = state
        _log.warning("multiple choice learning stopped at its limit of %d rounds (C %g)", self.rounds, self.C)
        return Ensemble(weights, self.rounds, converged=False)

    @property
    def _is_apart(self) -> bool:
        """Whether members learn from the outputs of others."""
        return self.diversity > 0 and self.M > 1

    def _train(
        self, training: TrainingSet[Any, Any, Any], assigned: Sequence[bool], others: Sequence[Sequence[Any]]
    ) -> tuple[FloatArray, list[Any]]:
        """Train the weights of a member for its examples, given the others' outputs; return its outputs, too."""
        model, examples = training.model, training.examples
        if self._is_apart:
            compared = zip(examples, assigned, zip(*others, strict=True), strict=True)
            cases = [_Case(x, truth, mine, outputs) for (x, truth), mine, outputs in compared]
            apart = _Apart(model, self.diversity)
            weights = CuttingPlane(self.C, epsilon=self.epsilon).fit(apart, [(case, case) for case in cases]).weights
        else:
            chosen = [example for example, mine in zip(examples, assigned, strict=True) if mine]
            # `CuttingPlane` divides by the number of its examples, the objective of a member by that of all.
            cost = self.C * len(chosen) / len(examples)
            weights = CuttingPlane(cost, epsilon=self.epsilon).fit(model, chosen).weights
        return weights, [model.infer(x, weights) for x, _ in examples]


def _choices(
    training: TrainingSet[Any, Any, Any], weights: FloatArray, outputs: Sequence[Sequence[Any]], epsilon: float
) -> IntArray:
    """Return the member of lowest task loss for each example; ties go to the lower hinge loss, then to the first."""
    # Hinge losses within epsilon of the lowest tie, as training finds them no better.
    truths = [truth for _, truth in training.examples]
    losses = np.array([[training.model.loss(t, y) for t, y in zip(truths, row, strict=True)] for row in outputs])
    tied = losses == losses.min(axis=0)
    hinges = np.where(tied, 0.0, np.inf)
    for m, example in np.argwhere(tied & (tied.sum(axis=0) > 1)).tolist():
        hinges[m, example] = training.most_violated(example, weights[m]).violation(weights[m])
    return np.asarray((hinges <= hinges.min(axis=0) + epsilon).argmax(axis=0))


def _as_bytes(outputs: Sequence[Sequence[Any]]) -> bytes:
    return b"".join(np.asarray(y).tobytes() for row in outputs for y in row)


class _Case(NamedTuple):
    """An example from the point of view of a member of DivMCL."""

    x: Any
    truth: Any
    assigned: bool
    others: tuple[Any, ...]  # the outputs of the other members


@dataclass(frozen=True)
class _Apart:
    """The structured model of a member of DivMCL; cases are both its inputs and its truths.

    `model` has two methods more: ``similarity(y, other)``, in [0, 1], and ``infer_apart``, which maximises
    w' Psi(x, y) + task Delta(t, y) + similarity times the mean similarity to `others`.
    """

    model: Any
    diversity: float

    @property
    def nonnegative(self) -> Sequence[int]:
        return getattr(self.model, "nonnegative", ())

    def joint_feature(self, case: _Case, y: Any) -> Any:
        return self._weight(case) * self.model.joint_feature(case.x, y)

    def loss(self, case: _Case, y: Any) -> Any:
        similar = float(np.mean([self.model.similarity(y, other) for other in case.others]))
        if not case.assigned:
            return self._weight(case) * similar
        return self.model.loss(case.truth, y) + self.diversity * similar

    def target(self, case: _Case, _: _Case) -> Any:
        return self.model.target(case.x, case.truth)

    def infer(self, case: _Case, weights: FloatArray) -> Any:
        return self.model.infer(case.x, weights)

    def infer_augmented(self, case: _Case, _: _Case, weights: FloatArray) -> Any:
        task, similarity = (1.0, self.diversity) if case.assigned else (0.0, 1.0)
        return self.model.infer_apart(case.x, case.truth, weights, case.others, task=task, similarity=similarity)

    def _weight(self, case: _Case) -> float:
        return 1.0 if case.assigned else self.diversity
