"""Features from rankings: the incoming ranking's own scores and ranks, and the scores of another run."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from greylag import missing_documents
from greylag.errors import ParameterError
from greylag.features.feature import Evidence, Values, scores_of
from greylag.features.normalisation import split_method
from greylag.ranking import FloatArray, Ranking
from greylag.trec import read_run

if TYPE_CHECKING:
    from greylag.index.positional import PositionalIndex


@dataclass(frozen=True)
class Score(Evidence):
    """The document's score in the ranking that is reranked, spelt ``score``."""

    needs_index: ClassVar[bool] = False

    def __str__(self) -> str:
        return "score"

    def bind(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """The scores, shape (n,)."""
        return lambda ranking: ranking.scores


@dataclass(frozen=True)
class ReciprocalRank(Evidence):
    """1 / rank in the ranking that is reranked, with ranks from 1, spelt ``reciprocal-rank``."""

    needs_index: ClassVar[bool] = False

    def __str__(self) -> str:
        return "reciprocal-rank"

    def bind(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """The reciprocal ranks, shape (n,)."""
        return lambda ranking: 1.0 / np.arange(1, len(ranking) + 1)


@dataclass(frozen=True)
class RunScore(Evidence):
    """The document's score in another run, such as that of a neural ranker, spelt ``run:FILE``.

    What the run did not retrieve for a query has no value.

    Parameters
    ----------
    file : str
        A TREC run. A query without documents in it has no values. One warning a run counts what the file lacks.

    Raises
    ------
    ParameterError
        If the file's name is empty or ends like a normalisation, such as ``@z``.
    """

    needs_index: ClassVar[bool] = False

    file: str

    def __post_init__(self) -> None:
        if not self.file or split_method(self.file)[1]:
            raise ParameterError(f"feature {self}: {self.file!r} cannot name a run here; rename the file")

    def __str__(self) -> str:
        return f"run:{self.file}"

    @classmethod
    def parse(cls, text: str) -> RunScore:
        """Parse ``run:FILE``; the inverse of ``str``."""
        return cls(text.removeprefix("run:"))

    def bind(self, index: PositionalIndex, shared: dict[str, Any]) -> Values:
        """Read the run.

        Raises
        ------
        FormatError
            If the file is not a run; see `greylag.read_run`.
        """
        run = read_run(self.file)

        def values(ranking: Ranking) -> FloatArray:
            if ranking.qid not in run:
                same = f"feature {self} is the same for all documents"
                missing_documents.report(
                    same, ranking.qid, ranking.docids, len(ranking), what=f"of queries not in {self.file}"
                )
                return np.full(len(ranking), np.nan)
            found = scores_of(run[ranking.qid], ranking.docids)
            lost = [ranking.docids[place] for place in np.flatnonzero(np.isnan(found))]
            least = f"feature {self} gives them its least value"
            missing_documents.report(least, ranking.qid, lost, len(ranking), what=f"not in {self.file}")
            return found

        return values
