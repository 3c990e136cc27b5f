"""Measures by their names, and the scores of a run against judgements of documents.

pytrec_eval computes what trec_eval has. It is given the ranking as scores n, n - 1, ..., 1, which float32 holds
exactly, so what is scored is the order of the `Ranking` and nothing else. ERR, which trec_eval lacks, is computed here;
measures of diversity are in `greylag.evaluation.diversity`.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from greylag.errors import ParameterError
from greylag.ranking import FloatArray, Run
from greylag.trec import Qrels

CUTOFF_LIMIT = 10**9  # trec_eval keeps cut-offs in a C long


@dataclass(frozen=True, slots=True)
class Family:
    """A measure without its cut-off.

    Parameters
    ----------
    name : the usual spelling.
    whole : trec_eval's name (ndeval's, for diversity) over the whole ranking; None where there is no such measure.
    cut : the same at a cut-off, which stands for ``{}``; the usual spelling where trec_eval has no name.
    source : who computes it: trec_eval, greylag, or greylag from judgements by subtopic.
    lower_is_better : whether it is a loss.
    """

    name: str
    whole: str | None
    cut: str | None
    source: Literal["trec_eval", "greylag", "subtopics"] = "trec_eval"
    lower_is_better: bool = False


RECIPROCAL_RANK = Family("RR", "recip_rank", "RR@{}")
FAMILIES = (
    Family("AP", "map", "map_cut_{}"),
    Family("nDCG", "ndcg", "ndcg_cut_{}"),
    Family("P", None, "P_{}"),
    Family("R", None, "recall_{}"),
    RECIPROCAL_RANK,
    Family("Rprec", "Rprec", None),
    Family("bpref", "bpref", None),
    Family("infAP", "infAP", None),
    Family("Success", None, "success_{}"),
    Family("SetP", "set_P", None),
    Family("SetR", "set_recall", None),
    Family("SetF", "set_F", None),
    Family("ERR", "ERR", "ERR@{}", "greylag"),
    Family("alpha-nDCG", None, "alpha-nDCG@{}", "subtopics"),
    Family("ERR-IA", None, "ERR-IA@{}", "subtopics"),
    Family("NRBP", "NRBP", None, "subtopics"),
    Family("P-IA", None, "P-IA@{}", "subtopics"),
    Family("S-recall", None, "strec@{}", "subtopics"),
    Family("subtopic-loss", None, "subtopic-loss@{}", "subtopics", lower_is_better=True),
)


@dataclass(frozen=True, slots=True)
class Measure:
    """A family and its cut-off, None for the whole ranking; ``str`` gives the usual spelling, such as ``nDCG@10``."""

    family: Family
    cutoff: int | None = None

    def __str__(self) -> str:
        return self.family.name if self.cutoff is None else f"{self.family.name}@{self.cutoff}"

    @property
    def trec_name(self) -> str:
        """trec_eval's name, such as ``ndcg_cut_10`` (ndeval's, for diversity); the usual one where it has none."""
        template = self.family.whole if self.cutoff is None else self.family.cut
        return (template or str(self)).format(self.cutoff)


def parse_measure(name: str) -> Measure:
    """The measure of a name: the usual spelling (``nDCG@10``) or trec_eval's (``ndcg_cut_10``).

    Letters' case is not looked at, nor is the difference between ``-`` and ``_``; a cut-off, any positive whole number,
    may follow ``@``, ``_`` or ``.``.

    Raises
    ------
    ParameterError
        A name that is unknown (the nearest are given), a cut-off where there can be none, or one that is missing or not
        from 1 to 10^9.
    """
    text = name.strip()
    cut = re.search(r"[@._]([0-9]+)$", text)
    base = _normal(text[: cut.start()] if cut else text)
    family = (_WITH_CUTOFF if cut else _WITHOUT).get(base)
    if family is None:
        raise ParameterError(f"measure {name!r} {_what_is_wrong(base)}")
    if cut is None:
        return Measure(family)
    if not 1 <= int(cut[1]) <= CUTOFF_LIMIT:
        raise ParameterError(f"measure {name!r} has a cut-off that is not from 1 to 10^9; write, say, {family.name}@10")
    return Measure(family, int(cut[1]))


def parse_measures(measures: Iterable[Measure | str]) -> tuple[Measure, ...]:
    """Measures by value or name, each once; `ParameterError` where there is none."""
    parsed = dict.fromkeys(parse_measure(m) if isinstance(m, str) else m for m in measures)
    if not parsed:
        raise ParameterError("no measure to compute; give at least one, such as AP")
    return tuple(parsed)


@dataclass(frozen=True, slots=True, eq=False)
class Scores:
    """A run's scores, for every query of the judgements.

    Parameters
    ----------
    measures : the columns of `values`.
    qids : the queries of the judgements, in their order; the rows of `values`.
    values : shape (queries, measures).
    missing : the queries among `qids` for which the run has no document. They count with the score of an empty ranking
        (0, but 1 for a loss), as with trec_eval's option -c.
    unjudged : the run's queries that the judgements lack, which do not count.
    """

    measures: tuple[Measure, ...]
    qids: tuple[str, ...]
    values: FloatArray
    missing: tuple[str, ...]
    unjudged: tuple[str, ...]

    @classmethod
    def single(cls, measure: Measure, by_query: Mapping[str, float]) -> Scores:
        """Scores by one measure that were computed elsewhere."""
        return cls((measure,), tuple(by_query), np.array([*by_query.values()])[:, None], (), ())

    @property
    def means(self) -> FloatArray:
        """The mean over the queries for each measure, shape (measures,)."""
        return np.asarray(self.values.mean(axis=0), dtype=np.float64)


def evaluate(run: Run, qrels: Qrels, measures: Sequence[Measure | str]) -> Scores:
    """Score a run against judgements of documents.

    A grade of 1 or more is relevant. nDCG is trec_eval's: gain = grade, discount log2(rank + 1), the ideal over all
    judged documents. RR@k is RR where the first relevant document is among the first k, else 0. ERR takes the highest
    grade of all of `qrels` as the scale's maximum (`expected_reciprocal_rank`).

    Parameters
    ----------
    measures : measures or their names (`parse_measure`), each computed once.

    Raises
    ------
    ParameterError
        No query in common, an unknown measure, or one that needs judgements by subtopic.
    """
    parsed = parse_measures(measures)
    for measure in parsed:
        if measure.family.source == "subtopics":
            raise ParameterError(
                f"{measure} needs judgements by subtopic, and these are of documents; give such a file"
            )
    columns = _trec_eval_columns(run, qrels, [m for m in parsed if m.family.source == "trec_eval"])
    top_grade = max((grade for grades in qrels.values() for grade in grades.values()), default=0)
    for measure in parsed:
        if measure.family.source == "greylag":
            graded = ([qrels[qid].get(docid, 0) for docid in docids] for qid, docids in ranked(run, qrels))
            columns[measure] = np.array([expected_reciprocal_rank(g[: measure.cutoff], top_grade) for g in graded])
    return assemble(run, tuple(qrels), {measure: columns[measure] for measure in parsed})


def expected_reciprocal_rank(grades: ArrayLike, top_grade: int) -> float:
    """ERR = sum over ranks r of (1/r) R_r prod over i < r of (1 - R_i), where R_r = (2^grade_r - 1) / 2^top_grade.

    Parameters
    ----------
    grades : the ranked documents' grades, best rank first, shape (n,); grades below 0 count as 0.
    top_grade : the highest grade of the scale, at least every one of `grades`.

    References
    ----------
    Chapelle, Metzler, Zhang and Grinspan, Expected reciprocal rank for graded relevance, CIKM 2009, equations 4 and 5.
    """
    relevance = np.exp2(np.maximum(grades, 0.0) - top_grade) - np.exp2(-float(top_grade))
    unsatisfied = np.cumprod(np.concatenate(([1.0], 1.0 - relevance)))[:-1]
    return float(np.sum(relevance * unsatisfied / np.arange(1, len(relevance) + 1)))


def ranked(run: Run, qids: Iterable[str]) -> Iterable[tuple[str, tuple[str, ...]]]:
    """Each query with the run's documents for it, best first; () where it has none."""
    return ((qid, run[qid].docids if qid in run else ()) for qid in qids)


def assemble(run: Run, qids: tuple[str, ...], columns: Mapping[Measure, FloatArray]) -> Scores:
    """Columns of scores, shape (queries,), as a `Scores`; `ParameterError` where the run has none of the queries."""
    missing = tuple(qid for qid, docids in ranked(run, qids) if not docids)
    if len(missing) == len(qids):
        raise ParameterError(
            f"run {run.tag!r} and the judgements have no query in common: {_some(run)} against {_some(qids)}; "
            "are they of the same topics?"
        )
    judged = set(qids)
    unjudged = tuple(qid for qid in run if qid not in judged)
    return Scores(tuple(columns), qids, np.column_stack(list(columns.values())), missing, unjudged)


def _trec_eval_columns(run: Run, qrels: Qrels, measures: Sequence[Measure]) -> dict[Measure, FloatArray]:
    import pytrec_eval

    names = [(Measure(m.family) if m.family is RECIPROCAL_RANK else m).trec_name for m in measures]
    order = {qid: dict(zip(docids, range(len(docids), 0, -1), strict=True)) for qid, docids in ranked(run, qrels)}
    found = pytrec_eval.RelevanceEvaluator(qrels, names).evaluate(order)
    columns = {}
    for measure, name in zip(measures, names, strict=True):
        column = np.array([found.get(qid, {}).get(name, 0.0) for qid in qrels])
        if measure.family is RECIPROCAL_RANK and measure.cutoff is not None:
            column[column < 1 / measure.cutoff] = 0.0
        columns[measure] = column
    return columns


def _some(qids: Iterable[str]) -> str:
    first = list(qids)
    return ", ".join(first[:3]) + (", ..." if len(first) > 3 else "") if first else "none"


def _normal(spelling: str) -> str:
    return spelling.lower().replace("-", "_")


def _what_is_wrong(base: str) -> str:
    if base in _WITH_CUTOFF:
        return f"lacks its cut-off; write, say, {_WITH_CUTOFF[base].name}@10"
    if base in _WITHOUT:
        return f"takes no cut-off; write {_WITHOUT[base].name}"
    near = difflib.get_close_matches(base.partition("@")[0], {**_WITHOUT, **_WITH_CUTOFF}, n=3)
    families = dict.fromkeys({**_WITHOUT, **_WITH_CUTOFF}[spelling] for spelling in near) or FAMILIES
    names = ", ".join(family.name + ("" if family.whole else "@k") for family in families)
    return f"is unknown; {'the nearest are' if near else 'there are'} {names}"


_WITHOUT = {_normal(name): family for family in FAMILIES if family.whole for name in (family.name, family.whole)}
_WITH_CUTOFF = {
    _normal(name): family
    for family in FAMILIES
    if family.cut
    for name in (family.name, family.whole or family.name, re.sub(r"[@_]\{\}$", "", family.cut))
}
