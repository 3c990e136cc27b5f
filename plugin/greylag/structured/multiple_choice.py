"""Multiple choice learning (MCL) and its diverse variant (DivMCL): ensembles whose members specialise.

MCL minimises

    min over w_1, ..., w_M:  sum_m ||w_m||² / 2 + C / n sum_i min over m of H_i(w_m)

by alternating between assigning each example to the member of lowest hinge loss H_i and training each member on its own
examples. DivMCL adds a reward for outputs that differ from those of the other members.

References
----------
Guzman-Rivera, Batra and Kohli, Multiple choice learning: learning to produce multiple structured outputs, NIPS 2012.
Guzman-Rivera, Kohli, Batra and Rutenbar, Efficiently enforcing diversity in multi-output structured prediction,
AISTATS 2014.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, NamedTuple, cast

import numpy as np

from greylag.ranking import FloatArray
from greylag.structured.checks import check_counts, check_model, check_non_negative
from greylag.structured.cutting_plane import CuttingPlane
from greylag.structured.ensemble import Ensemble
from greylag.structured.model import ComparingModel, Input, Output, StructuredModel, TrainingSet, Truth

_log = logging.getLogger("greylag")


@dataclass(frozen=True)
class MultipleChoice:
    """A learner of M members by multiple choice; with M = 1, the structured SVM.

    All members start from the structured SVM of all examples. The first assignment is random, in equal parts. A member
    without examples keeps its weights. Training stops when an assignment (with diversity, an assignment and the outputs
    of all members) recurs.

    With `diversity` > 0 (DivMCL), the loss of an output increases by `diversity` times its mean similarity to the
    outputs of the other members, so that the required margin grows with the similarity. A member also learns from the
    examples of the other members, with weight `diversity` and by that similarity alone.

    Parameters
    ----------
    M : int >= 1, default 5
        Number of members.
    C : float > 0, default 1.0
        Weight of the mean hinge loss relative to ||w||² / 2.
    diversity : float >= 0, default 0.0
        0 is MCL. A positive value requires a `ComparingModel`.
    rounds : int >= 1, default 10
        Maximum number of rounds.
    epsilon : float > 0, default 1e-3
        See `CuttingPlane`.
    seed : int >= 0, default 0
        Seed of the first assignment.

    Raises
    ------
    ParameterError
        If a parameter is outside its domain.
    """

    M: int = 5
    _: KW_ONLY
    C: float = 1.0
    diversity: float = 0.0
    rounds: int = 10
    epsilon: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        check_counts(M=self.M, rounds=self.rounds)
        check_non_negative(diversity=self.diversity, seed=self.seed)
        CuttingPlane(self.C, epsilon=self.epsilon)  # checks these two

    def fit(self, model: StructuredModel[Input, Truth, Output], examples: Sequence[tuple[Input, Truth]]) -> Ensemble:
        """Train the members on pairs of input and truth.

        Raises
        ------
        ParameterError
            If there are no examples, or if the model lacks a method that is needed.
        """
        check_model(model, ComparingModel if self.diversity else StructuredModel, self)
        training = TrainingSet(model, examples)
        start = CuttingPlane(self.C, epsilon=self.epsilon).solve(training).weights
        weights = np.tile(start, (self.M, 1))
        assigned = np.random.default_rng(self.seed).permutation(len(examples)) % self.M
        outputs = [[model.infer(x, start) for x, _ in examples] for _ in weights]
        met: set[bytes] = set()
        for made in range(1, self.rounds + 1):
            for m in range(self.M):
                weights[m] = self._train(
                    model, examples, (assigned == m).tolist(), outputs[:m] + outputs[m + 1 :], weights[m]
                )
                outputs[m] = [model.infer(x, weights[m]) for x, _ in examples]
            assigned = np.array([training.hinge_losses(member) for member in weights]).argmin(axis=0)
            state = b"".join(np.asarray(y).tobytes() for row in outputs for y in row) if self.diversity else b""
            if (state := assigned.tobytes() + state) in met:
                return Ensemble(weights, made, converged=True)
            met.add(state)
        _log.warning("multiple choice learning stopped at its limit of %d rounds (C %g)", self.rounds, self.C)
        return Ensemble(weights, self.rounds, converged=False)

    def _train(
        self,
        model: StructuredModel[Input, Truth, Output],
        examples: Sequence[tuple[Input, Truth]],
        own: Sequence[bool],
        others: Sequence[Sequence[Output]],
        weights: FloatArray,
    ) -> FloatArray:
        """The weights of a member for its own examples, given the outputs of the others; kept without examples."""
        if self.diversity and others:
            compared = zip(examples, own, zip(*others, strict=True), strict=True)
            cases = [_Case(x, truth, mine, outputs) for (x, truth), mine, outputs in compared]
            apart = _Apart(cast(ComparingModel[Any, Any, Any], model), self.diversity)
            return CuttingPlane(self.C, epsilon=self.epsilon).fit(apart, [(case, case) for case in cases]).weights
        chosen = [example for example, mine in zip(examples, own, strict=True) if mine]
        if not chosen:
            return weights
        return CuttingPlane(self.C * len(chosen) / len(examples), epsilon=self.epsilon).fit(model, chosen).weights


class _Case(NamedTuple):
    """An example from the point of view of a member of DivMCL."""

    x: Any
    truth: Any
    own: bool
    others: tuple[Any, ...]  # the outputs of the other members


@dataclass(frozen=True)
class _Apart:
    """The structured model of a member of DivMCL; cases are both its inputs and its truths."""

    model: ComparingModel[Any, Any, Any]
    diversity: float

    def joint_feature(self, case: _Case, y: Any) -> FloatArray:
        return self._weight(case) * self.model.joint_feature(case.x, y)

    def loss(self, case: _Case, y: Any) -> float:
        similar = float(np.mean([self.model.similarity(y, other) for other in case.others]))
        if not case.own:
            return self._weight(case) * similar
        return self.model.loss(case.truth, y) + self.diversity * similar

    def target(self, case: _Case, _: _Case) -> Any:
        return self.model.target(case.x, case.truth)

    def infer(self, case: _Case, weights: FloatArray) -> Any:
        return self.model.infer(case.x, weights)

    def infer_augmented(self, case: _Case, _: _Case, weights: FloatArray) -> Any:
        task, similarity = (1.0, self.diversity) if case.own else (0.0, 1.0)
        return self.model.infer_apart(case.x, case.truth, weights, case.others, task=task, similarity=similarity)

    def _weight(self, case: _Case) -> float:
        return 1.0 if case.own else self.diversity
