"""The measures and their names.

`FAMILIES` is the table of measures: a new one is one entry, which says how it is spelled and what computes it.
`parse_measure` is the only parser of measure names in greylag. Measures are no entry points: a name is a family with a
cut-off, a level and parameters, and other packages' are measures of ir_measures, which are taken directly.
"""

from __future__ import annotations

import difflib
import math
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from itertools import accumulate, chain
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import ArrayLike

from greylag.base import FloatArray, ParameterError, check_sequences
from greylag.evaluation.scoring import diversity

CUTOFF_LIMIT = 10**9  # trec_eval stores cut-offs as a C long
EXPONENTIAL = "nDCG(dcg='exp-log2')"  # as ir_measures spells it
UNJUDGED = -(10**9)  # below all grades
EXPONENT_LIMIT = 50  # of 2^grade - 1: float64 has the gains of higher grades no longer exactly
IMPORTANCES = {"vital": {"vital": 1.0, "okay": 0.0}, "weighted": {"vital": 1.0, "okay": 0.5}}
"""The weights of nuggets by their importance, by the parameter of Coverage (Pradeep et al. 2025)."""
RECALL_LEVELS = tuple(tenths / 10 for tenths in range(11))
MULTIPLES = tuple(fifths / 5 for fifths in range(1, 11))  # of the number of relevant documents
NONE = {
    "runid": "is no measure, but what trec_eval prints of the run's tag",
    "relstring": "is no measure, but what trec_eval prints of the grades of the first documents",
    r"prefs_\w+": "is of judgements by preference (trec_eval -R prefs), which are not read",
    r"\w+_avgjg(_\w+)?": "is of judgements by several assessors (trec_eval -R qrels_jg), which are not read",
}
"""Names of trec_eval that stand for no measure here, as regular expressions, and why."""
RANX_NAMES = {"r_precision": "Rprec", "f1": "SetF", "mrr": "RR", "precision": "SetP", "recall": "SetR"}
RANX_NAMES_WITH_CUTOFF = {"mrr": "RR", "precision": "P", "hit_rate": "Success"}
"""ranx's names of measures that it defines as greylag does, over the whole ranking and at a cut-off."""
INSTEAD = {
    "hits": "P@10, which divides it by 10, or num_rel_ret, the sum over all queries",
    "dcg": "nDCG{}, which is DCG as a fraction of the ideal ranking's",
    "dcg_burges": "nDCG(dcg='exp-log2'){}, which is DCG as a fraction of the ideal ranking's",
    **dict.fromkeys(("ndcg_burges", "ndcg_exp", "exp_ndcg", "ndcg_exponential"), "nDCG(dcg='exp-log2'){}"),
    **dict.fromkeys(
        ("xinfap", "infndcg", "xinfndcg", "statap"),
        "infAP for a pool sampled alike; NIST's sample_eval.pl computes measures of sampled strata",
    ),
}
"""Measures that greylag lacks, and what to write instead."""


@dataclass(frozen=True, slots=True)
class Family:
    """A measure without its cut-off. trec_eval computes it unless a function is given."""

    name: str  # the usual spelling
    whole: str | None = None  # the name in trec_eval or ndeval over the whole ranking; None if it needs a cut-off
    cut: str | None = None  # the name at a cut-off, which replaces {}; None if the measure takes no cut-off
    from_grades: Callable[[Graded], float] | None = None
    from_subtopics: Callable[[Any, Any, int], float] | None = None  # see `greylag.evaluation.scoring.diversity`
    every_subtopic: bool = False  # whether subtopics without a relevant document count, by credits and weights
    by_grade: bool = False  # whether all grades matter, so that it has no relevance level
    lower_is_better: bool = False  # whether it is a loss
    from_ir_measures: bool = False  # whether ir_measures computes it, by the name that it has there
    of_judging: bool = False  # whether it is about documents without judgements
    persistence: float | None = None  # the default of the parameter p; None if it has none
    numbers: tuple[float, ...] = ()  # which trec_eval takes behind the name, such as the recall of iprec_at_recall
    summary: Literal["mean", "sum", "geometric mean"] = "mean"  # over queries
    low: float = 0.0  # the least and the greatest score of a query; see `Measure.range`
    high: float = 1.0

    @property
    def has_level(self) -> bool:
        """The measure has a relevance level that is known here."""
        return not (self.by_grade or self.from_ir_measures)

    @property
    def parameters(self) -> tuple[str, ...]:
        """The names of the `PARAMETERS` that the measure takes."""
        return tuple(name for name, parameter in PARAMETERS.items() if parameter.taken_by(self))


class Graded(NamedTuple):
    """A query's grades, both of them to the cut-off, as a measure sees them."""

    ranked: Sequence[int]  # of the ranked documents, best first; `UNJUDGED` without a judgement
    ideal: Sequence[int]  # above 0, in descending order
    top_grade: int  # of the scale
    measure: Measure

    @property
    def hits(self) -> list[bool]:
        """The relevance of each ranked document."""
        return [grade >= self.measure.rel for grade in self.ranked]


@dataclass(frozen=True, slots=True)
class Measure:
    """A measure at a cut-off. ``str`` gives the usual spelling, such as ``AP(rel=2)@10``, which `parse_measure` reads.

    Parameters
    ----------
    family : Family
        The measure without its cut-off.
    cutoff : int in [1, 10^9], optional
        None scores the whole ranking.
    rel : int >= 1, default 1
        The lowest grade of relevant documents, trec_eval's option -l.
    judged_only : bool, default False
        Whether documents that are not judged, or have a negative grade, are removed from the ranking first: trec_eval's
        option -J.
    p : float in (0, 1), optional
        The persistence of RBP's user, the probability of going on to the next document; by default 0.8 for RBP, as in
        ir_measures, and 0.9 for rbp, as in trec_eval.
    importance : "vital" or "weighted", optional
        The nuggets that Coverage counts: vital ones alone, or okay ones by half; all alike by default.
    partial : float in [0, 1), default 0
        Coverage's credit for grades from 1 to below `rel`, such as partial support: 0.5 in TREC's RAG track.
    """

    family: Family
    cutoff: int | None = None
    rel: int = 1
    judged_only: bool = False
    p: float | None = None
    importance: Literal["vital", "weighted"] | None = None
    partial: float = 0.0

    def __post_init__(self) -> None:
        family, partial, level = self.family, self.partial, self.rel
        p = family.persistence if self.p is None else self.p
        # Filled in, so that RBP equals RBP(p=0.8).
        object.__setattr__(self, "p", p)
        taken = family.parameters
        defaults = {field.name: field.default for field in fields(self)}
        others = [name for name in PARAMETERS if name not in taken and getattr(self, name) != defaults[name]]
        faults = {
            f"rel must be at least 1, not {level}": level < 1,
            f"it takes {' and '.join(taken) or 'no parameter'}, and not {', '.join(others)}: leave that out": others,
            f"p must be between 0 and 1, not {p}": p is not None and not 0 < p < 1,
            f"importance is {self.importance!r:.40}: it must be {' or '.join(IMPORTANCES)}": self.importance
            not in (None, *IMPORTANCES),
            f"partial={partial:g} must be a credit in [0, 1), for grades below rel, as in "
            "Coverage(rel=2,partial=0.5)@10": partial and not (0 < partial < 1 and level > 1),
        }
        if fault := next((fault for fault, wrong in faults.items() if wrong), None):
            raise ParameterError(f"measure {family.name}: {fault}")

    def __str__(self) -> str:
        p = None if self.p == self.family.persistence else self.p
        given = {"judged_only": self.judged_only, "p": p, "importance": self.importance, "partial": self.partial}
        return spelling(self.family.name, self.cutoff, self.rel, **given)

    @property
    def range(self) -> tuple[float, float]:
        """The least and the greatest score that a query can have by the measure."""
        if self.p is None or self.cutoff is None or self.family.of_judging:
            return self.family.low, self.family.high
        return 0.0, 1 - self.p**self.cutoff  # of RBP, if all documents to the cut-off are relevant

    @property
    def trec_name(self) -> str:
        """The name in trec_eval (or ndeval), such as ``ndcg_cut_10``; the usual spelling if it has none there."""
        if self != Measure(self.family, self.cutoff):
            return str(self)
        template = self.family.whole if self.cutoff is None else self.family.cut
        return (template or str(self)).format(self.cutoff)


def spelling(name: str, cutoff: int | None, rel: int, **others: Any) -> str:
    """Spell a measure as `parse_measure` reads it, such as ``AP(rel=2)@10``; others that are false are left out."""
    values = {"rel": rel if rel > 1 else None, **others}
    parameters = [f"{parameter}={value}" for parameter, value in values.items() if value]
    base, at, recall = name.partition("@")  # as in IPrec@0.1
    if base.endswith(")"):  # as in nDCG(dcg='exp-log2')
        base, _, own = base[:-1].partition("(")
        parameters.insert(0, own)
    inside = f"({','.join(parameters)})" if parameters else ""
    return base + inside + at + recall + ("" if cutoff is None else f"@{cutoff}")


def expected_reciprocal_rank(grades: ArrayLike, top_grade: int) -> float:
    """Compute ERR = sum over ranks r of R_r / r prod over i < r of (1 - R_i), R_r = (2^grade_r - 1) / 2^top_grade."""
    # Chapelle, Metzler, Zhang and Grinspan, CIKM 2009, equations 4 and 5. Negative grades count as 0.
    relevance = np.exp2(np.maximum(grades, 0.0) - top_grade) - np.exp2(-float(top_grade))
    unsatisfied = np.cumprod(np.concatenate(([1.0], 1.0 - relevance)))[:-1]
    return float(np.sum(relevance * unsatisfied / np.arange(1, len(relevance) + 1)))


def _err(graded: Graded) -> float:
    return expected_reciprocal_rank(graded.ranked, graded.top_grade)


def _share_unjudged(graded: Graded) -> float:
    return sum(grade < 0 for grade in graded.ranked) / (graded.measure.cutoff or 1)


def _ndcg(graded: Graded) -> float:
    """Compute trec_eval's nDCG to the bit, without its memory and time, which are quadratic in the highest grade."""
    return _dcg(graded.ranked) / _dcg(graded.ideal) if graded.ideal else 0.0


def exponential_gains(grades: ArrayLike) -> FloatArray:
    """Compute 2^grade - 1, or 0 for negative grades; raise `ParameterError` for grades above `EXPONENT_LIMIT`."""
    positive = np.maximum(grades, 0)
    if (highest := positive.max(initial=0)) > EXPONENT_LIMIT:
        raise ParameterError(
            f"the judgements have grade {highest}, and {EXPONENTIAL} has gains of 2^grade - 1, for grades up to "
            f"{EXPONENT_LIMIT}: use nDCG, whose gains are grades"
        )
    return np.exp2(positive) - 1.0


def _exponential_ndcg(graded: Graded) -> float:
    """Compute nDCG with gains of 2^grade - 1 (Burges et al. 2005)."""
    ranked, ideal = (exponential_gains(grades).tolist() for grades in (graded.ranked, graded.ideal))
    return _ndcg(graded._replace(ranked=ranked, ideal=ideal))


def _dcg(grades: Sequence[float]) -> float:
    """Sum grade_r / log2(r + 1) over positive grades, in the order of ranks."""
    total = 0.0
    for rank, grade in enumerate(grades, 1):
        if grade > 0:
            total += grade / math.log2(rank + 1)
    return total


def _persisting(gains: Sequence[float], measure: Measure) -> float:
    """Compute RBP = (1 - p) times the sum over ranks r of gain_r p^(r-1) (Moffat and Zobel 2008, equation 3)."""
    p = measure.p or 0.0
    return (1 - p) * sum(gain * p**before for before, gain in enumerate(gains) if gain)


def _rbp_residual(graded: Graded) -> float:
    """Compute RBP's gain if all documents without judgements, and all below the ranking, were relevant."""
    # trec_eval 10 takes negative grades for none, too, and has 0 if all documents are judged.
    of_trec_eval = graded.measure.family.name == "rbp_resid"
    unjudged = [grade < 0 if of_trec_eval else grade == UNJUDGED for grade in graded.ranked]
    if of_trec_eval and not any(unjudged):
        return 0.0
    return _persisting(unjudged, graded.measure) + (graded.measure.p or 0.0) ** len(unjudged)


def _graded_rbp(graded: Graded) -> float:
    """Compute graded RBP, whose gains are grades divided by the query's highest."""
    # As trec_eval 10 intends it: 10.0 does not initialise the variable of the highest grade.
    highest = max(graded.ideal, default=1)
    return _persisting([max(grade, 0) / highest for grade in graded.ranked], graded.measure)


def _interpolated_precision(graded: Graded) -> float:
    """Average the highest precision at a rank with each recall or more, which trec_eval rounds to whole documents."""
    # trec_eval itself reads memory that it has not written if a query has no relevant document.
    levels, found = graded.measure.family.numbers, [*accumulate(graded.hits)]
    needed = [int(recall * _relevant(graded) + 0.5) for recall in levels]
    highest = (max((n / rank for rank, n in enumerate(found, 1) if n >= least), default=0.0) for least in needed)
    return sum(highest) / len(levels)


def _at_recall(recall: float) -> Family:
    names = f"IPrec@{recall:g}", f"iprec_at_recall_{recall:.2f}"
    return Family(*names, from_grades=_interpolated_precision, numbers=(recall,))


def _precision_at_multiple(graded: Graded) -> float:
    """Compute the precision at a multiple of the number of relevant documents, which trec_eval rounds up from .1."""
    end = int(graded.measure.family.numbers[0] * _relevant(graded) + 0.9)
    return sum(graded.hits[:end]) / end if end else 0.0


def _utility(graded: Graded) -> float:
    """Weigh the retrieved relevant, the other retrieved, and the other relevant documents."""
    hit, miss, lost, _ = graded.measure.family.numbers
    hits = sum(graded.hits)
    return hit * hits + miss * (len(graded.ranked) - hits) + lost * (_relevant(graded) - hits)


def _ndcg_of_gains(graded: Graded) -> float:
    """Compute nDCG with the gains that are given for some grades; those of others are the grades."""
    numbers = graded.measure.family.numbers
    gains = dict(zip(numbers[::2], numbers[1::2], strict=True))
    ranked, ideal = ([gains.get(grade, grade) for grade in grades] for grades in (graded.ranked, graded.ideal))
    best = _dcg(sorted(ideal, reverse=True))
    return _dcg(ranked) / best if best else 0.0


def _normalised_gain(graded: Graded) -> float:
    """Compute trec_eval's G: grades, discounted by the excess of an ideal ranking's gain (at least 1 per rank)."""
    ideal, lost, total = graded.ideal, 0, 0.0
    for rank, grade in enumerate(graded.ranked):
        lost += max(ideal[rank] if rank < len(ideal) else 0, 1) - max(grade, 0)
        total += grade / math.log2(2 + lost) if grade > 0 else 0
    return total / sum(ideal) if ideal else 0.0


def _ndcg_at_relevant(graded: Graded) -> float:
    """Average nDCG at the ranks of relevant documents; those not retrieved have the whole ranking's."""
    grades, ideal, *_ = graded
    gained, best, end = _cumulated(grades), _cumulated(ideal), max(len(ideal) - 1, 0)
    found = [gained[rank] / best[min(rank, end)] for rank, grade in enumerate(grades) if grade > 0] if ideal else []
    return (sum(found) + (len(ideal) - len(found)) * gained[-1] / best[-1]) / len(ideal) if found else 0.0


def _ndcg_at_levels(graded: Graded) -> float:
    """Average nDCG at the number of documents of each grade and above, and at the end if that is two ranks below."""
    grades, ideal, *_ = graded
    if not (ideal and grades):
        return 0.0
    gained, best = _cumulated(grades), _cumulated(ideal)
    levels = [rank for rank, grade in enumerate(ideal) if rank + 1 == len(ideal) or ideal[rank + 1] < grade]
    found = [gained[min(rank, len(grades) - 1)] / best[rank] for rank in levels]
    found += [gained[-1] / best[-1]] if len(grades) > len(ideal) + 1 else []
    return sum(found) / len(found)


def _cumulated(grades: Sequence[int]) -> list[float]:
    """Compute the discounted cumulative gain to each rank."""
    return [*accumulate(max(grade, 0) / math.log2(rank + 1) for rank, grade in enumerate(grades, 1))]


def _relevant(graded: Graded) -> int:
    """Count the relevant documents."""
    return sum(grade >= graded.measure.rel for grade in graded.ideal)


def _judged(graded: Graded) -> float:
    """Compute the share of the retrieved documents that are judged, with any grade."""
    return sum(grade > UNJUDGED for grade in graded.ranked) / max(len(graded.ranked), 1)


def _total(name: str, count: Callable[[Graded], int], **options: Any) -> Family:
    """Make a measure that is a sum over queries."""
    return Family(name, name, from_grades=lambda graded: float(count(graded)), summary="sum", high=math.inf, **options)


JUDGED = Family("Judged", None, "Judged@{}", from_grades=_judged, by_grade=True, of_judging=True)
RESIDUAL: dict[str, Any] = {"by_grade": True, "of_judging": True, "lower_is_better": True}
RECIPROCAL_RANK = Family("RR", "recip_rank", "RR@{}")
FAMILIES = (
    Family("AP", "map", "map_cut_{}"),
    Family("nDCG", "ndcg", "ndcg_cut_{}", from_grades=_ndcg, by_grade=True),
    Family(EXPONENTIAL, EXPONENTIAL, f"{EXPONENTIAL}@{{}}", from_grades=_exponential_ndcg, by_grade=True),
    Family("P", None, "P_{}"),
    Family("R", None, "recall_{}"),
    RECIPROCAL_RANK,
    Family("Rprec", "Rprec"),
    Family("bpref", "bpref"),
    Family("infAP", "infAP"),
    Family("Success", None, "success_{}"),
    Family("SetP", "set_P"),
    Family("SetR", "set_recall"),
    Family("SetF", "set_F"),
    Family("SetAP", "set_map"),
    Family("set_relative_P", "set_relative_P"),
    Family("relative_P", None, "relative_P_{}"),
    *map(_at_recall, RECALL_LEVELS),
    Family("11pt_avg", "11pt_avg", from_grades=_interpolated_precision, numbers=RECALL_LEVELS),
    *(Family(f"Rprec_mult@{multiple:g}", f"Rprec_mult_{multiple:.2f}") for multiple in MULTIPLES),
    Family("gm_map", "gm_map", summary="geometric mean"),
    Family("gm_bpref", "gm_bpref", summary="geometric mean"),
    Family("G", "G", from_grades=_normalised_gain, by_grade=True),
    Family("binG", "binG"),
    Family("ndcg_rel", "ndcg_rel", from_grades=_ndcg_at_relevant, by_grade=True),
    Family("Rndcg", "Rndcg", from_grades=_ndcg_at_levels, by_grade=True),
    Family("utility", "utility", low=-math.inf, high=math.inf),
    _total("num_q", lambda _: 1, by_grade=True),
    _total("num_ret", lambda graded: len(graded.ranked), by_grade=True),
    _total("num_rel", _relevant),
    _total("num_rel_ret", lambda graded: sum(graded.hits)),
    _total("num_nonrel_judged_ret", lambda one: sum(0 <= grade < one.measure.rel for grade in one.ranked)),
    Family("RBP", "RBP", "RBP@{}", from_grades=lambda one: _persisting(one.hits, one.measure), persistence=0.8),
    Family("RBP-residual", "RBP-residual", "RBP-residual@{}", from_grades=_rbp_residual, persistence=0.8, **RESIDUAL),
    Family("rbp", "rbp", from_grades=_graded_rbp, by_grade=True, persistence=0.9),
    Family("rbp_resid", "rbp_resid", from_grades=_rbp_residual, persistence=0.9, **RESIDUAL),
    Family("unj", None, "unj_{}", from_grades=_share_unjudged, **RESIDUAL),
    Family("ERR", "ERR", "ERR@{}", from_grades=_err, by_grade=True),
    JUDGED,
    Family("alpha-nDCG", None, "alpha-nDCG@{}", from_subtopics=diversity.alpha_ndcg, high=diversity.OVER_GREEDY),
    Family("ERR-IA", None, "ERR-IA@{}", from_subtopics=diversity.err_ia),
    Family("nERR-IA", None, "nERR-IA@{}", from_subtopics=diversity.nerr_ia, high=diversity.OVER_GREEDY),
    Family("alpha-DCG", None, "alpha-DCG@{}", from_subtopics=diversity.alpha_dcg),
    Family("NRBP", "NRBP", from_subtopics=diversity.nrbp),
    Family("nNRBP", "nNRBP", from_subtopics=diversity.nnrbp, high=diversity.OVER_GREEDY),
    Family("MAP-IA", "MAP-IA", from_subtopics=diversity.map_ia),
    Family("P-IA", None, "P-IA@{}", from_subtopics=diversity.p_ia),
    Family("S-recall", None, "strec@{}", from_subtopics=diversity.subtopic_recall),
    Family("Coverage", None, "Coverage@{}", from_subtopics=diversity.nugget_coverage, every_subtopic=True),
    Family("D-nDCG", None, "D-nDCG@{}", from_subtopics=diversity.d_ndcg, by_grade=True),
    Family("D#-nDCG", None, "D#-nDCG@{}", from_subtopics=diversity.d_sharp_ndcg, by_grade=True),
    Family("subtopic-loss", None, "subtopic-loss@{}", from_subtopics=diversity.subtopic_loss, lower_is_better=True),
)


_SAME_NAMES = "AP nDCG P R RR Rprec infAP Success SetP SetR SetF SetAP RBP NRBP nNRBP Judged".split()
IR_MEASURES_NAMES = {name: name for name in _SAME_NAMES} | {
    **{"Bpref": "bpref", "alpha_nDCG": "alpha-nDCG", "alpha_DCG": "alpha-DCG", "P_IA": "P-IA", "AP_IA": "MAP-IA"},
    **{"ERR_IA": "ERR-IA", "nERR_IA": "nERR-IA", "StRecall": "S-recall"},
    **{"NumQ": "num_q", "NumRel": "num_rel", "NumRet": "num_ret"},
}
"""The measures that ir_measures and greylag define alike, without parameters beyond `PARAMETERS`, by their names."""


class Parameter(NamedTuple):
    """A parameter of measures, an attribute of `Measure`."""

    spelt: str  # a regular expression
    read: Callable[[str], Any]
    taken_by: Callable[[Family], bool]


_FRACTION = r"[01]?\.?[0-9]{1,9}"
PARAMETERS: Mapping[str, Parameter] = {
    "rel": Parameter("[0-9]{1,9}", int, lambda family: not family.by_grade),
    "judged_only": Parameter(
        "True|False", "True".__eq__, lambda family: not (family.of_judging or family.from_subtopics)
    ),
    "p": Parameter(_FRACTION, float, lambda family: family.persistence is not None),
    "importance": Parameter("|".join(IMPORTANCES), str, lambda family: family.every_subtopic),
    "partial": Parameter(_FRACTION, float, lambda family: family.every_subtopic),
}
_SPELT = {name: parameter.spelt for name, parameter in PARAMETERS.items()}
_SPELT["dcg"] = r"(?P<quote>['\"]?)(exp-)?log2(?P=quote)"  # which names another measure
TRANSLATED_PARAMETERS = {"cutoff", "recall", *_SPELT}


def parse_measure(measure: Measure | str | Any, *, rel: int = 1) -> Measure:
    """Parse a measure, as greylag (``nDCG@10``), trec_eval (``ndcg_cut_10``), ir_measures and ranx (``mrr``) spell it.

    Names are case-insensitive, but for trec_eval's ``rbp`` and ir_measures' ``RBP``; ``-`` and ``_`` are
    interchangeable. A cut-off, any positive integer, follows ``@``, ``_``, ``_at_`` or ``.``. ``AP(rel=2)``,
    ``nDCG(judged_only=True)@10``, ``RBP(rel=2,p=0.95)@10`` and ``Coverage(importance=vital)@20`` give the parameters of
    `Measure`; ``map-l2`` is ranx's spelling of a level. Names that greylag lacks, such as ``SetP(relative=True)``, and
    measure objects are ir_measures', which computes the measure unless greylag defines it alike. Measures of
    subtopics are greylag's own.

    Parameters
    ----------
    measure : Measure, str or measure of ir_measures
    rel : int >= 1, default 1
        The relevance level of a name that gives none, if the measure has one.
    """
    if isinstance(measure, Measure):
        return measure
    if not isinstance(measure, str):
        return _from_ir_measures(measure, rel)
    name, (text, parameters) = measure, _split_parameters(measure.strip())
    # Names such as iprec_at_recall_0.10 end like a cut-off.
    numbered = None if _normalise(text) in _FAMILIES_BY_NAME else _with_numbers(text)
    cut = (
        None if numbered or _normalise(text) in _FAMILIES_BY_NAME else re.search(r"(?:(?i:_at_)|[@._])([0-9]+)$", text)
    )
    base = _normalise(text[: cut.start()] if cut else text)
    base = _normalise(EXPONENTIAL) if "exp" in parameters.get("dcg", "") else base
    family = numbered or (_CUTOFF_FAMILIES_BY_NAME if cut else _FAMILIES_BY_NAME).get(base)
    if family is None:
        known = base in _CUTOFF_FAMILIES_BY_NAME or base in _FAMILIES_BY_NAME
        foreign = None if known else named_in_ir_measures(measure.strip())
        if foreign is None:
            raise ParameterError(_explain_unknown(name, base))
        return _from_ir_measures(foreign, rel)
    if cut and not (len(cut[1]) <= len(str(CUTOFF_LIMIT)) and 1 <= int(cut[1]) <= CUTOFF_LIMIT):
        raise ParameterError(
            f"measure {name!r}: the cut-off must be between 1 and 10^9, as in {family.name}@10, not {cut[1]}"
        )
    values = {name: PARAMETERS[name].read(value) for name, value in parameters.items() if name != "dcg"}
    return Measure(family, int(cut[1]) if cut else None, **{"rel": 1 if family.by_grade else rel} | values)


def _with_numbers(text: str) -> Family | None:
    """Return a measure that trec_eval takes with other numbers than its own, such as ``iprec_at_recall_0.25``."""
    number = r"-?[0-9]{0,9}\.?[0-9]{1,9}"
    plain, graded = f"{number}(?:,{number})*", f"[1-9][0-9]{{0,8}}={number}(?:,[1-9][0-9]{{0,8}}={number})*"
    names = "iprec(?:_at_recall)?|rprec_mult|11pt_avg|utility"
    match = re.fullmatch(f"({names})[_.@]({plain})|(ndcg)[_.@]({graded})", text.lower())
    if match is None:
        return None
    name, given = match[1] or match[3], match[2] or match[4]
    numbers = tuple(map(float, re.split("[,=]", given)))
    spelt, least, most = f"{name}_{given}", min(numbers), max(numbers)
    if name == "utility" and len(numbers) == 4:
        if numbers[3]:
            raise ParameterError(f"measure {text!r}: the last number needs the size of the collection: give 0")
        return Family(spelt, spelt, from_grades=_utility, numbers=numbers, low=-math.inf, high=math.inf)
    if name == "ndcg" and least >= 0:
        return Family(spelt, spelt, from_grades=_ndcg_of_gains, numbers=numbers, by_grade=True)
    if name == "11pt_avg" and least >= 0 and most <= 1:
        return Family(spelt, spelt, from_grades=_interpolated_precision, numbers=numbers)
    if name == "rprec_mult" and len(numbers) == 1 and least > 0:
        both = f"Rprec_mult@{least:g}", f"Rprec_mult_{least:.2f}"
        known = _FAMILIES_BY_NAME.get(_normalise(both[0]))
        return known or Family(*both, from_grades=_precision_at_multiple, numbers=numbers)
    return _at_recall(least) if name.startswith("iprec") and len(numbers) == 1 and least >= 0 and most <= 1 else None


def _split_parameters(text: str) -> tuple[str, dict[str, str]]:
    """Split the parameters in brackets off a name; return the whole text if it has unknown ones."""
    if level := re.fullmatch(r"([^()]+)-l([0-9]{1,9})", text):  # ranx's spelling
        return level[1], {"rel": level[2]}
    match = re.fullmatch(r"([^()]*)\(([^()]*)\)([^()]*)", text)
    pairs = [part.replace(" ", "").partition("=") for part in match[2].split(",")] if match else []
    given = {name: value for name, _, value in pairs}
    if len(given) < len(pairs):
        raise ParameterError(f"measure {text!r} has a parameter twice: keep one")
    ours = all(name in _SPELT and re.fullmatch(_SPELT[name], value) for name, value in given.items())
    ours = ours and ("dcg" not in given or _normalise(match[1] if match else "") == "ndcg")
    return (match[1] + match[3], given) if match and ours else (text, {})


def parse_measures(measures: Iterable[Measure | str | Any] | str | Measure) -> tuple[Measure, ...]:
    """Parse names among `measures`, or the only name, once each; `SEVERAL` names stand for several measures."""
    # A string is a sequence of letters, each of which would be refused as a measure.
    if isinstance(measures, str | Measure):
        measures = [measures]
    check_sequences(measures=measures)
    several = (SEVERAL.get(_normalise(m.strip()), [m]) if isinstance(m, str) else [m] for m in measures)
    parsed = dict.fromkeys(map(parse_measure, chain.from_iterable(several)))
    if not parsed:
        raise ParameterError("no measures given; name at least one, such as AP")
    return tuple(parsed)


def named_in_ir_measures(name: str) -> Any:
    """Return ir_measures' measure of this name; None without ir_measures, or if it has none or numbers as in Python."""
    # It evaluates Python's literals, by which one measure would have many names.
    if re.search(r"=\s*[-+]?(0[xob]|[0-9.]+_)", name, re.IGNORECASE):
        return None
    try:
        import ir_measures

        measure: Any = ir_measures.parse_measure(name)
        measure.validate_params()
    except (ImportError, AssertionError, NameError, ValueError, SyntaxError, AttributeError, TypeError):
        return None
    return measure


def _from_ir_measures(measure: Any, rel: int) -> Measure:
    if type(measure).__module__.partition(".")[0] != "ir_measures" or not hasattr(measure, "params"):
        raise ParameterError(
            f"{type(measure).__name__} {measure!r:.60} is not a measure: pass a name, such as 'nDCG@10', or a measure "
            "of ir_measures"
        )
    name, cutoff = str(measure), measure.params.get("cutoff")
    ours = IR_MEASURES_NAMES.get(measure.NAME, "")
    ours = "num_rel_ret" if measure.NAME == "NumRet" and "rel" in measure.params else ours
    graded = measure.NAME == "RBP" and "rel" not in measure.params
    if (ours or measure.NAME == "IPrec") and measure.params.keys() <= TRANSLATED_PARAMETERS and not graded:
        at_recall = measure.NAME == "IPrec" and Measure(_at_recall(measure.params["recall"]), rel=rel)
        ours = EXPONENTIAL if measure.params.get("dcg") == "exp-log2" else ours
        agreed = at_recall or parse_measure(ours + ("" if cutoff is None else f"@{cutoff}"), rel=rel)
        given = {key: value for key, value in measure.params.items() if key in PARAMETERS}
        return replace(agreed, **given)
    if measure.NAME == "ERR":
        raise ParameterError(
            f"{name} of ir_measures has grades up to 4, by gdeval: for greylag's, pass the name {name!r}"
        )
    if type(measure.aggregator()).__name__ != "MeanAgg":
        raise ParameterError(f"{name} is not a mean over queries, but a total")
    if named_in_ir_measures(name) is None:  # such as RBP(p=inf), from p=1e400
        raise ParameterError(f"measure {name!r} has a parameter that ir_measures cannot read")
    return Measure(Family(name, name, from_ir_measures=True, high=diversity.OVER_GREEDY))  # of its alpha_nDCG


def _of_ir_measures(name: str) -> str:
    """Say how to write a measure of ir_measures that lacks quotes or the highest grade; "" if it is none of these."""
    quoted = re.sub(r"=([a-z][\w-]*)(?=[,)])", r"='\1'", name)
    if quoted != name and named_in_ir_measures(quoted):
        return quoted
    parts = re.fullmatch(r"(\w+)(?:\(([^()]*)\))?(?:@([0-9]+))?", name)
    try:
        import ir_measures

        known = getattr(ir_measures, parts[1]).SUPPORTED_PARAMS if parts else {}
    except (ImportError, AttributeError):
        return ""
    if parts is None or "max_rel" not in known:
        return ""
    given = dict(option.strip().partition("=")[::2] for option in (parts[2] or "").split(",") if option)
    given = {
        key: f"{value}.0" if getattr(known.get(key), "dtype", None) is float and value.isdigit() else value
        for key, value in given.items()
    }
    options = ",".join(f"{key}={value}" for key, value in ({"max_rel": "1"} | given).items())
    completed = f"{parts[1]}({options})" + (f"@{parts[3] or 10}" if "cutoff" in known else "")
    return f"{completed}, where max_rel is the highest grade" if named_in_ir_measures(completed) else ""


def _normalise(spelling: str) -> str:
    return spelling if spelling == "RBP" else spelling.lower().replace("-", "_")


def _explain_unknown(name: str, base: str) -> str:
    if theirs := _of_ir_measures(name):
        return f"measure {name!r} is one of ir_measures: write {theirs}"
    if base in _CUTOFF_FAMILIES_BY_NAME:
        return f"measure {name!r} needs a cut-off, as in {_CUTOFF_FAMILIES_BY_NAME[base].name}@10"
    if base in _FAMILIES_BY_NAME:
        return f"measure {name!r} takes no cut-off; write {_FAMILIES_BY_NAME[base].name}" + (
            ", or RBP@10, or RBP(p=0.95)" if base == "rbp" else ""
        )
    cut, glued = re.search(r"@[0-9]+$", name), re.fullmatch(r"([a-z]+)_?([0-9]+)", base)
    ours = INSTEAD.get(base, "").format(cut[0] if cut else "")
    if glued and glued[1] in _CUTOFF_FAMILIES_BY_NAME:
        ours = ours or f"{_CUTOFF_FAMILIES_BY_NAME[glued[1]].name}@{glued[2]}"
    if ours:
        return f"measure {name!r} is unknown: write {ours}"
    if reason := next((reason for names, reason in NONE.items() if re.fullmatch(names, base)), None):
        return f"{name!r} {reason}: leave it out"
    spellings = {**_FAMILIES_BY_NAME, **_CUTOFF_FAMILIES_BY_NAME}
    similar = difflib.get_close_matches(re.split("[@(]", base)[0], spellings, n=3)
    families = dict.fromkeys(spellings[spelling] for spelling in similar) or FAMILIES
    names = ", ".join(family.name + ("" if family.whole else "@k") for family in families)
    if len(re.split(r"[\s,]+", re.sub(r"\([^)]*\)", "", name.strip()))) > 1:
        remedy = "give each measure by itself, as in -m AP -m nDCG@10"
    else:
        remedy = f"did you mean {names}?" if similar else f"choose from {names}"
    return f"unknown measure {name!r}; {remedy}"


# The usual names, trec_eval's and ndeval's, in one table: no program's spelling has to be declared.
_FAMILIES_BY_NAME = {
    _normalise(name): family for family in FAMILIES if family.whole for name in (family.name, family.whole)
}
_CUTOFF_FAMILIES_BY_NAME = {
    _normalise(name): family
    for family in FAMILIES
    if family.cut
    for name in (family.name, family.whole or family.name, re.sub(r"[@_]\{\}$", "", family.cut))
}
_FAMILIES_BY_NAME |= {name: _FAMILIES_BY_NAME[_normalise(ours)] for name, ours in RANX_NAMES.items()}
_CUTOFF_FAMILIES_BY_NAME |= {
    name: _CUTOFF_FAMILIES_BY_NAME[_normalise(ours)] for name, ours in RANX_NAMES_WITH_CUTOFF.items()
}
_CUTOFF_FAMILIES_BY_NAME["i_rec"] = _CUTOFF_FAMILIES_BY_NAME["s_recall"]  # as NTCIR calls it

_CUTOFFS = 5, 10, 15, 20, 30, 100, 200, 500, 1000
_LEVELS = [f"iprec_at_recall_{recall:.2f}" for recall in RECALL_LEVELS]
_OFFICIAL = [
    *("num_q", "num_ret", "num_rel", "num_rel_ret", "map", "gm_map", "Rprec", "bpref", "recip_rank"), *_LEVELS,
    *(f"P_{cutoff}" for cutoff in _CUTOFFS),
]  # fmt: skip
_ALL = [
    *_OFFICIAL, *(f"recall_{cutoff}" for cutoff in _CUTOFFS), "infAP", "gm_bpref",
    *(f"Rprec_mult_{multiple:.2f}" for multiple in MULTIPLES),
    *("utility", "11pt_avg", "binG", "G", "ndcg", "ndcg_rel", "Rndcg"),
    *(f"{name}_{cutoff}" for name in ("ndcg_cut", "map_cut", "relative_P") for cutoff in _CUTOFFS),
    *("success_1", "success_5", "success_10", "set_P", "set_relative_P", "set_recall", "set_map", "set_F"),
    *("num_nonrel_judged_ret", "rbp", "rbp_resid", "unj_5", "unj_10", "unj_20"),
]  # fmt: skip
SEVERAL = {"iprec": _LEVELS, "iprec_at_recall": _LEVELS, "official": _OFFICIAL, "all_trec": _ALL}
"""The measures that trec_eval prints for a name, in its order."""
