"""The JSON of an earlier evaluation: its scores are those of a run, or make an `Evaluation` again."""

from __future__ import annotations

import json
import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any, NotRequired, TypedDict

import numpy as np

from greylag import __version__
from greylag.base import (
    TREC_EVAL,
    Faults,
    FormatError,
    ParameterError,
    check_layout,
    is_file,
    naming,
    parse_json,
    read_text,
)
from greylag.evaluation.reports.evaluation import Evaluation
from greylag.evaluation.reports.scores import Unretrieved
from greylag.evaluation.scoring.agreement import few_names
from greylag.evaluation.scoring.measures import Measure, parse_measures
from greylag.evaluation.scoring.scores import Scores
from greylag.evaluation.scoring.significance import Correction, Design, Test, compare_collections
from greylag.evaluation.trec.json_tables import is_table

HEAD_BYTES = 1 << 16  # from which a run in JSON is known
_log = logging.getLogger("greylag")
ROUNDING = 1e-9  # by which a score may be outside of a measure's range


class _Run(TypedDict):
    means: dict[str, float]
    per_query: dict[str, dict[str, float]]
    missing: NotRequired[list[str]]
    unjudged: NotRequired[list[str]]
    empty: NotRequired[list[str]]
    seen: NotRequired[bool]


class _Comparison(TypedDict):
    baseline: str
    margin: float | None


class _Tests(TypedDict):
    baseline: str | None
    test: Test
    correction: Correction
    all_pairs: bool
    comparisons: list[_Comparison]


class _Unretrieved(TypedDict):
    documents: int
    relevant: int
    judged: int
    runs: int


class _Content(TypedDict):
    """The entries that are read, of those that `Evaluation.to_dict` has."""

    runs: dict[str, _Run]
    digests: dict[str, str]
    significance: NotRequired[_Tests]
    unjudged_at_10: NotRequired[dict[str, float]]
    best_of: NotRequired[dict[str, str]]
    release: NotRequired[str]
    teams: NotRequired[dict[str, str]]
    unretrieved: NotRequired[_Unretrieved]


@dataclass(frozen=True)
class Earlier:
    """What an earlier evaluation printed as JSON."""

    path: Path
    content: Mapping[str, Any]  # as `_Content` lays it out

    @property
    def measures(self) -> tuple[Measure, ...]:
        """The measures that all its runs are scored by."""
        with naming(self.path):
            return parse_measures([*next(iter(self.content["runs"].values()))["means"]])

    def scores(self, name: str, judgements: Mapping[str, Any], measures: Sequence[Measure]) -> Scores:
        """Return the scores of the run of this name, or of the only one beside the baseline."""
        runs, ours, theirs = self.content["runs"], digests(judgements), self.content["digests"]
        if differing := [what for what in ours if ours[what] != theirs.get(what)]:
            raise FormatError(self.path, None, f"is by other {' and '.join(differing)}: evaluate both by the same")
        others = [run for run in runs if run != self.content.get("significance", {}).get("baseline")] or [*runs]
        chosen = name if name in runs else others[0]
        if chosen != name and len(others) > 1:
            reason = f"has the runs {few_names(others)}: name one, as in {chosen}={self.path}"
            raise FormatError(self.path, None, reason)
        run = runs[chosen]
        if lacking := [measure for measure in map(str, measures) if measure not in run["means"]]:
            reason = f"is by {', '.join(run['means'])}, not {', '.join(lacking)}: give measures that it has"
            raise FormatError(self.path, None, reason)
        for what, version in {"greylag": __version__, **TREC_EVAL}.items():
            earlier = self.content.get(what, version)
            if str(earlier).split(".")[:2] != version.split(".")[:2]:  # patches change no figures
                text = "%s: is by %s %s, and runs are scored by %s: if measures have changed, evaluate it again"
                _log.warning(text, self.path, what, earlier, version)
        return self.scores_of(chosen, judgements, measures)

    def scores_of(self, name: str, qids: Iterable[str], measures: Sequence[Measure]) -> Scores:
        """Return the scores of a run on some topics."""
        run, rows = self.content["runs"][name], tuple(qids)
        values = np.array([[self._score(name, qid, measure) for measure in measures] for qid in rows])
        missing, unjudged, empty = (tuple(run.get(key, ())) for key in ("missing", "unjudged", "empty"))
        scores = Scores(tuple(measures), rows, values, missing, unjudged, run.get("seen", False), empty)
        if rows == tuple(run["per_query"]):
            for measure, mean in zip(map(str, measures), scores.means.tolist(), strict=True):
                if not abs(run["means"][measure] - mean) <= ROUNDING * max(1.0, abs(mean)):
                    reason = f"{name} has {measure} {run['means'][measure]:g}, but its scores {mean:g}: write it again"
                    raise FormatError(self.path, None, reason)
        return scores

    def _score(self, name: str, qid: str, measure: Measure) -> float:
        """Return a score that the measure can have."""
        score = self.content["runs"][name]["per_query"].get(qid, {}).get(str(measure))
        if score is None:
            raise FormatError(self.path, None, f"lacks scores of {name}, such as {measure} of {qid}: write it again")
        low, high = measure.range
        if not (math.isfinite(score) and low - ROUNDING <= score <= high + ROUNDING):
            reason = f"{measure} of {qid} in {name} is {score:g}, not between {low:g} and {high:g}: write it again"
            raise FormatError(self.path, None, reason)
        return float(score)


def read_evaluation(path: str | Path) -> Evaluation:
    """Read what ``greylag evaluate --format json``, or `Evaluation.format`, wrote of one collection.

    Differences are tested again; views that need documents are left out. `FormatError` for what `compare` refuses, too.
    """
    earlier = read_earlier(path)
    content, runs, measures = earlier.content, earlier.content["runs"], earlier.measures
    qids = [*next(iter(runs.values()))["per_query"]]
    with naming(earlier.path):
        evaluation = Evaluation(
            {name: earlier.scores_of(name, qids, measures) for name in runs},
            unjudged=content.get("unjudged_at_10"),
            teams=content.get("teams", content.get("best_of")),
            best_of_teams="best_of" in content,
            unretrieved=Unretrieved(**content["unretrieved"]) if "unretrieved" in content else None,
            digests=content["digests"],
            release=content.get("release", ""),
        )
        if (tests := content.get("significance")) is None:
            return evaluation
        comparisons, all_pairs = tests["comparisons"], tests["all_pairs"]
        margin = next((comparison["margin"] for comparison in comparisons), None)
        design = Design(tests["test"], correction=tests["correction"], margin=margin, all_pairs=all_pairs)
        baselines = [] if all_pairs else list(dict.fromkeys(c["baseline"] for c in comparisons))
        return evaluation.tested(compare_collections({"": evaluation.scores}, None, baselines, design)[""])


def digests(judgements: Mapping[str, Any]) -> dict[str, str]:
    """Return SHA-256 of the judged topics and of the judgements, whatever their order."""
    parts = {"topics": sorted(judgements), "judgements": judgements}
    texts = {name: json.dumps(value, sort_keys=True, default=dict) for name, value in parts.items()}
    return {name: sha256(text.encode()).hexdigest() for name, text in texts.items()}


def is_evaluation(path: str | Path) -> bool:
    """Return whether a file is JSON, and not a run."""
    if not is_file(path):
        return False
    with open(path, "rb") as file:
        head = file.read(HEAD_BYTES)
    return head[:1] == b"{" and not is_table(head)


def earlier_measures(runs: Iterable[Any]) -> tuple[Measure, ...] | None:
    """Return the measures of the first earlier evaluation among runs; None if there is none."""
    paths = (run for run in runs if isinstance(run, str | Path) and is_evaluation(run))
    return next((read_earlier(path).measures for path in paths), None)


def read_earlier(path: str | Path) -> Earlier:
    """Read the JSON of an evaluation; `FormatError` for any other."""
    with Faults(path, lenient=False) as faults:
        text = read_text(path, faults)
    try:
        content = parse_json(text)
        if "parts" in content:
            raise FormatError(path, None, "is of several collections: evaluate each alone, without --collection")
        check_layout(_Content, content)
    except FormatError:
        raise
    except (ValueError, TypeError, ArithmeticError, RecursionError) as error:
        where = f" ({error})" if isinstance(error, ParameterError) else ""
        reason = f"is neither a run nor what greylag evaluate --format json prints{where}"
        raise FormatError(path, None, " ".join(reason.split())) from None
    if contradiction := _contradiction(content):
        raise FormatError(path, None, f"{contradiction}: write it again")
    return Earlier(Path(path), content)


def _contradiction(content: _Content) -> str | None:
    """Say what an evaluation cannot have, though each of its entries is of the right type."""
    runs, tests = content["runs"], content.get("significance")
    if not runs or not all(run["per_query"] for run in runs.values()):
        return "has no runs, or one without topics"
    first = next(iter(runs.values()))
    for name, run in runs.items():
        if run["per_query"].keys() != first["per_query"].keys():
            return f"the topics of {name} are not those of the other runs"
        if any(row.keys() != first["means"].keys() for row in (run["means"], *run["per_query"].values())):
            return f"{name} has means or scores by other measures than {', '.join(first['means'])}"
    named = [tests["baseline"], *(one["baseline"] for one in tests["comparisons"])] if tests else []
    strange = [name for name in named if name is not None and name not in runs]
    return f"the baseline {strange[0]} is not among the runs" if strange else None
