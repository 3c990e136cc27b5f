"""The score of a document in one or more runs, by a fusion that learns nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from greylag.base import FloatArray, ParameterError, Ranking, check_sequences, report_missing
from greylag.evaluation import FUSIONS, PooledRankings, read_run
from greylag.features.feature import Evidence, Values

if TYPE_CHECKING:
    from greylag.index import PositionalIndex


@dataclass(frozen=True)
class FusedRuns(Evidence):
    """The score of a fusion of runs by `greylag.evaluation.fusion.FUSIONS`, spelt ``fused:METHOD(FILE,...)``.

    Documents that no run has have 0; one warning per run counts them. Of one run, ``rrf`` is 1 / (60 + rank), and
    ``combsum`` its scores in [0, 1].

    Parameters
    ----------
    method : "rrf", "combsum" or "combmnz"
    runs : tuple of str
        TREC runs; in a model that fuses (`RankingModel.runs`), the names of runs.

    Examples
    --------
    >>> str(FusedRuns("rrf", ("bm25.run", "dense.run")))
    'fused:rrf(bm25.run,dense.run)'
    """

    form: ClassVar[str] = "fused:{method}({runs})"
    needs_index: ClassVar[bool] = False
    reads_query: ClassVar[bool] = False
    uses_ranking: ClassVar[bool] = False

    method: str
    runs: tuple[str, ...]

    def __post_init__(self) -> None:
        check_sequences(runs=self.runs)
        if self.method not in FUSIONS or not self.runs:
            raise ParameterError(f"feature {self}: use fused:METHOD(FILE,...) with a method of {', '.join(FUSIONS)}")
        if wrong := [run for run in self.runs if not (isinstance(run, str) and re.fullmatch(r"[^,()\n]+", run))]:
            raise ParameterError(f"feature fused:{self.method}: {wrong[0]!r} cannot name a run here; rename it")

    def __str__(self) -> str:
        return f"fused:{self.method}({','.join(self.runs)})"

    @classmethod
    def parse(cls, text: str) -> FusedRuns:
        """Parse ``fused:METHOD(FILE,...)``; the inverse of ``str``."""
        match = re.fullmatch(r"fused:(\w+)\((.+)\)", text)
        if match is None:
            raise ParameterError(f"feature {text!r:.200} is not of the form fused:METHOD(FILE,...)")
        return cls(match[1], tuple(match[2].split(",")))

    def files(self) -> list[str]:
        """List the runs."""
        return [*self.runs]

    def place_files(self, place: Callable[[str], str]) -> FusedRuns:
        """Return the fusion of the runs ``place(file)``."""
        return replace(self, runs=tuple(str(place(run)) for run in self.runs))

    def bind(self, index: PositionalIndex) -> Values:
        """Read the runs; `FormatError` if a file is not one."""
        runs = [read_run(file) for file in self.runs]

        def values(ranking: Ranking) -> FloatArray:
            none = Ranking(ranking.qid, "", (), np.empty(0))
            pooled = PooledRankings([run.get(ranking.qid, none) for run in runs])
            scores = dict(zip(pooled.rows, FUSIONS[self.method].scores(pooled).tolist(), strict=True))
            lost = [docid for docid in ranking.docids if docid not in scores]
            consequence, what = f"feature {self} is 0 for them", f"not in {', '.join(self.runs)}"
            report_missing(consequence, ranking.qid, lost, len(ranking), what=what)
            return np.array([scores.get(docid, 0.0) for docid in ranking.docids], dtype=np.float64)

        return values

    def of_pooled(self, pooled: PooledRankings, names: Sequence[str]) -> FloatArray:
        """Score pooled rankings of runs with these names, shape (n,)."""
        return FUSIONS[self.method].scores(pooled, [names.index(run) for run in self.runs])


def run_columns(names: Sequence[str]) -> tuple[FusedRuns, ...]:
    """Return the columns that fusion is learned from: for each run, scores in [0, 1] and reciprocal ranks."""
    return tuple(FusedRuns(method, (name,)) for name in names for method in ("combsum", "rrf"))
