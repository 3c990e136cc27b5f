"""The JSON of an earlier evaluation, whose scores are those of a run."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np

from greylag.errors import FormatError
from greylag.evaluation.agreement import few_names
from greylag.evaluation.measures import Measure
from greylag.evaluation.scores import Scores
from greylag.runtime.files import Faults, is_file, read_text


def digests(judgements: Mapping[str, Any]) -> dict[str, str]:
    """Return SHA-256 of the judged topics and of the judgements, whatever their order."""
    of = {"topics": sorted(judgements), "judgements": judgements}
    return {
        name: sha256(json.dumps(value, sort_keys=True, default=dict).encode()).hexdigest() for name, value in of.items()
    }


def is_evaluation(path: str | Path) -> bool:
    """Return whether a file is JSON, and not a run."""
    if not is_file(path):
        return False
    with open(path, "rb") as file:
        return file.read(1) == b"{"


def read_earlier(path: str | Path, name: str, judgements: Mapping[str, Any], measures: Sequence[Measure]) -> Scores:
    """Read the scores of the run of this name, or the only one beside the baseline, from an evaluation's JSON."""
    wanted, ours = [*map(str, measures)], digests(judgements)
    with Faults(path, lenient=False) as faults:
        text = read_text(path, faults)
    try:
        content = json.loads(text)
        if "parts" in content:
            raise FormatError(path, None, "is of several collections: evaluate each alone, without --collection")
        others = [one for one in content["runs"] if one != content.get("significance", {}).get("baseline")]
        chosen = name if name in content["runs"] else others[0]
        run, theirs = content["runs"][chosen], content["digests"]
        rows = [run["per_query"].get(qid, {}) for qid in judgements]
        values = np.array([[row.get(measure, np.nan) for measure in wanted] for row in rows], np.float64)
        missing, unjudged, empty = (tuple(run.get(key, ())) for key in ("missing", "unjudged", "empty"))
    except FormatError:
        raise
    except (ValueError, LookupError, TypeError, AttributeError):
        raise FormatError(path, None, "is neither a run nor what greylag evaluate --format json prints") from None
    if differing := [one for one in ours if ours[one] != theirs.get(one)]:
        raise FormatError(path, None, f"is by other {' and '.join(differing)}: evaluate both by the same")
    if {*wanted} != {*run["means"]}:
        raise FormatError(
            path, None, f"is by {', '.join(run['means'])}, not {', '.join(wanted)}: give the same measures"
        )
    if chosen != name and len(others) > 1:
        raise FormatError(path, None, f"has the runs {few_names(others)}: name one, as in {chosen}={path}")
    if np.isnan(values).any():
        raise FormatError(path, None, f"lacks scores of {chosen}: write it again")
    return Scores(tuple(measures), tuple(judgements), values, missing, unjudged, bool(run.get("seen")), empty)
