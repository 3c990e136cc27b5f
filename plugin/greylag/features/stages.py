"""Features that are the scores of a stage: ``stage:manifold(alpha=0.8)``."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from greylag.base import FloatArray, ParameterError, Ranking, Stage
from greylag.features.feature import Evidence, Values, scores_of
from greylag.features.stage_registry import StageStep

if TYPE_CHECKING:
    from greylag.index import PositionalIndex


@dataclass(frozen=True)
class StageScore(Evidence):
    """The document's score by a stage, or a pipeline of stages, that reranks the same ranking.

    It is spelt ``stage:NAME(OPTION=VALUE,...)``, and with several stages ``stage:rm3>>manifold(alpha=0.8)``.

    The values are those of the last stage's `Stage.scored`. Documents beyond its depth have none. One that picks
    documents greedily, such as ``mmr``, gives each document the marginal gain that it was picked with.

    Parameters
    ----------
    steps : tuple of StageStep
        At least one. They are registered: a model's file does not name code to be run.

    Examples
    --------
    >>> str(StageScore.parse("stage:rm3 >> manifold(graph=knn,alpha=.8)"))
    'stage:rm3>>manifold(alpha=0.8,graph=knn)'
    """

    form: ClassVar[str] = "stage:NAME(OPTION=VALUE,...)"

    steps: tuple[StageStep, ...]

    def __post_init__(self) -> None:
        if named := next((step.name for step in self.steps if ":" in step.name), None):
            raise ParameterError(f"feature {self}: {named} is not installed: register it in the group greylag.stages")

    def __str__(self) -> str:
        return f"stage:{'>>'.join(map(str, self.steps))}"

    @classmethod
    def parse(cls, text: str) -> StageScore:
        """Parse ``stage:STAGE`` or ``stage:STAGE>>STAGE...``; the inverse of ``str``."""
        return cls(tuple(map(StageStep.parse, text.removeprefix("stage:").split(">>"))))

    def files(self) -> list[str]:
        """Return the files of the stages."""
        return [file for step in self.steps for file in step.files()]

    def place_files(self, place: Callable[[str], str]) -> StageScore:
        """Return the score by the placed stages."""
        return StageScore(tuple(step.place_files(place) for step in self.steps))

    def bind(self, index: PositionalIndex) -> Values:
        """Make the stages."""
        return self.bind_beside(index, {})

    def bind_beside(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """Make the stages; features with the same first stages share them."""
        before: Callable[[Ranking], Ranking] = lambda ranking: ranking  # noqa: E731
        for number, step in enumerate(self.steps[:-1], 1):
            key = ">>".join(map(str, self.steps[:number]))
            before = shared[key] = shared.get(key) or _Remembering(before, step.make(index))
        last = self.steps[-1].make(index)
        if type(last).scored is Stage.scored:  # all documents as ranked, which features that go on from them share
            whole = ">>".join(map(str, self.steps))
            ranked = shared[whole] = shared.get(whole) or _Remembering(before, last)
            return lambda ranking: scores_of(ranked(ranking), ranking.docids)

        def values(ranking: Ranking) -> FloatArray:
            return scores_of(last.scored(before(ranking)), ranking.docids)

        return values


class _Remembering:
    """Two steps in a row, which remember the last result in each thread."""

    def __init__(self, before: Callable[[Ranking], Ranking], stage: Callable[[Ranking], Ranking]) -> None:
        # By thread: workers share the extractor, and each is at another ranking.
        self._before, self._stage, self._last = before, stage, threading.local()

    def __call__(self, ranking: Ranking) -> Ranking:
        """Return the ranking after both steps."""
        # Features of an extractor request the same ranking, one after another in each thread.
        asked, result = getattr(self._last, "pair", (None, ranking))
        if asked is not ranking:
            result = self._stage(self._before(ranking))
            self._last.pair = ranking, result
        return result
