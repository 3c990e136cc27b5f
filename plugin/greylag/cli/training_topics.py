"""Warnings where a model ranks, or a run has, topics that the model was trained on.

A run file has no place for such a remark but its tag, so a command marks the tag that it makes up.
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Protocol

from greylag.ranking import Run

MARK = "+training-topics"
"""In the tag of a run with rankings of training topics."""

log = logging.getLogger(__name__)


def next_tag(tag: str, step: str) -> str:
    """The tag of what a step makes of a run: ``bm25-mmr`` for ``bm25``. The mark stays at the end."""
    return f"{tag.replace(MARK, '')}-{step}{MARK if MARK in tag else ''}"


class Trained(Protocol):
    """A trained model."""

    @property
    def fingerprint(self) -> str:
        """The fingerprint of the training collection."""

    @property
    def provenance(self) -> Mapping[str, Any]:
        """How the model was trained; ``queries`` are the training topics, and by ``validation`` C was chosen."""


def mark_training_topics(model: Trained, topics: Iterable[str], fingerprint: str, tag: str) -> str:
    """The tag of a run of these topics by a model, marked, with a warning, if the model was trained on some of them.

    The topics by which a parameter was chosen count as training topics.

    Parameters
    ----------
    model : Trained
    topics : iterable of str
    fingerprint : str
        That of the collection that is ranked. Topics of another collection may have the same identifiers.
    tag : str
        The tag, with or without the mark.
    """
    qids, made = list(topics), model.provenance
    trained = {*made.get("queries", ()), *made.get("validation", ())}
    seen = [qid for qid in qids if qid in trained]
    if not seen or fingerprint != model.fingerprint:
        return tag
    log.warning(
        f"{len(seen)} of {len(qids)} topics are among those that the model was trained on: their scores say nothing "
        f"about other topics; for held-out rankings, {_held_out_by(made)}"
    )
    return tag.replace(MARK, "") + MARK


def _held_out_by(provenance: Mapping[str, Any]) -> str:
    """How to rank topics by models that were not trained on them, for a model of this provenance."""
    if provenance.get("preset") == "stack":
        return "use greylag experiment with a file from --init stack"
    if "baseline" in provenance:
        return "use greylag tune --folds"
    if "learner" in provenance:
        return "use greylag train --folds"
    return "train on other topics"


def warn_of_training_topics(path: Path, run: Run) -> None:
    """Warn if a run is marked as one with training topics."""
    if MARK in run.tag:
        log.warning(f"{path}: its model was trained on topics of this run: its scores say nothing about other topics")
