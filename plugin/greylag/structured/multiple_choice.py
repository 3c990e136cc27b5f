"""Multiple choice learning, the Coulomb structured SVM's peers: members specialise in the examples that suit them.

    min over w_1, ..., w_M:  sum_m ||w_m||² / 2 + C / n sum_i min over m of H_i(w_m)                              (MCL)

by turns: assign each example to the member of least hinge loss, and train each member on its examples alone. DivMCL
adds a reward for outputs unlike those of the other members.

References
----------
Guzman-Rivera, Batra and Kohli, Multiple choice learning: learning to produce multiple structured outputs, NIPS 2012.
Guzman-Rivera, Kohli, Batra and Rutenbar, Efficiently enforcing diversity in multi-output structured prediction,
AISTATS 2014.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

import numpy as np

from greylag.errors import ParameterError
from greylag.ranking import FloatArray
from greylag.structured.cutting_plane import CuttingPlane
from greylag.structured.ensemble import Ensemble
from greylag.structured.model import Input, Input_contra, Output, StructuredModel, TrainingSet, Truth, Truth_contra

_log = logging.getLogger("greylag")


class ComparingModel(StructuredModel[Input_contra, Truth_contra, Output], Protocol):
    """A structured model that can compare outputs, as DivMCL needs."""

    def similarity(self, y: Output, other: Output) -> float:
        """How much two outputs have in common, in [0, 1]."""

    def infer_apart(
        self,
        x: Input_contra,
        truth: Truth_contra,
        weights: FloatArray,
        others: Sequence[Output],
        *,
        task: float,
        similarity: float,
    ) -> Output:
        """The y of largest w' Psi(x, y) + task Delta(t, y) + similarity times y's mean similarity to `others`."""


@dataclass(frozen=True)
class MultipleChoice:
    """A learner of M members by multiple choice; with M = 1, and without diversity, the structured SVM.

    The first assignment is random, in equal parts. A member without examples keeps its weights: at first, the
    structured SVM's of all examples. It stops when an assignment (with diversity: one with the members' outputs) is met
    for the second time.

    Parameters
    ----------
    M : the number of members, >= 1.
    C : weight of the mean hinge loss against ||w||² / 2, > 0.
    diversity : >= 0; 0 is MCL. Above it, DivMCL, in the following form: an output's loss is higher by `diversity` times
        its mean similarity to the other members' outputs, so that it has to be the worse in score, the more it is like
        them; and a member learns from the other members' examples too, with the weight `diversity`, from that
        similarity alone. The model has to be a `ComparingModel`.
    rounds : at most, >= 1.
    epsilon : of `CuttingPlane`.
    seed : of the first assignment, >= 0.
    """

    M: int = 5
    C: float = 1.0
    diversity: float = 0.0
    rounds: int = 10
    epsilon: float = 1e-3
    seed: int = 0

    def __post_init__(self) -> None:
        if self.M < 1:
            raise ParameterError(f"M, the number of models, has to be at least 1, not {self.M}")
        if self.rounds < 1:
            raise ParameterError(f"rounds has to be at least 1, not {self.rounds}")
        if not 0 <= self.diversity < np.inf:
            raise ParameterError(f"diversity has to be a number from 0, not {self.diversity}")
        if self.seed < 0:
            raise ParameterError(f"seed has to be at least 0, not {self.seed}")
        CuttingPlane(self.C, self.epsilon)  # which checks these

    def fit(self, model: ComparingModel[Input, Truth, Output], examples: Sequence[tuple[Input, Truth]]) -> Ensemble:
        """The members' weights after training on `examples`, pairs of input and truth.

        Raises
        ------
        ParameterError
            Where there is no example.
        """
        training = TrainingSet(model, examples)
        start = CuttingPlane(self.C, self.epsilon).solve(training).weights
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
        model: ComparingModel[Input, Truth, Output],
        examples: Sequence[tuple[Input, Truth]],
        own: Sequence[bool],
        others: Sequence[Sequence[Output]],
        weights: FloatArray,
    ) -> FloatArray:
        """A member's weights for its `own` examples, given what the others predict; without examples, as they were."""
        if self.diversity and others:
            compared = zip(examples, own, zip(*others, strict=True), strict=True)
            cases = [_Case(x, truth, mine, outputs) for (x, truth), mine, outputs in compared]
            return (
                CuttingPlane(self.C, self.epsilon).fit(_Apart(model, self.diversity), [(c, c) for c in cases]).weights
            )
        chosen = [example for example, mine in zip(examples, own, strict=True) if mine]
        if not chosen:
            return weights
        return CuttingPlane(self.C * len(chosen) / len(examples), self.epsilon).fit(model, chosen).weights


class _Case(NamedTuple):
    """An example as a member of DivMCL sees it."""

    x: Any
    truth: Any
    own: bool
    others: tuple[Any, ...]  # what the other members predict


@dataclass(frozen=True)
class _Apart:
    """The structured model that a member of DivMCL is trained on; cases are both its inputs and its truths."""

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
