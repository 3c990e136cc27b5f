"""Models and their files: JSON with a kind, a schema version and the fingerprint of a collection."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar, Self, TypedDict

import numpy as np

from greylag.base import (
    Faults,
    FormatError,
    ModelError,
    check_layout,
    is_file,
    parse_json,
    read_text,
    write_text,
)
from greylag.index import PositionalIndex

LIGHTGBM = "model of LightGBM"
"""The kind of a file in LightGBM's own text."""
XGBOOST = "model of XGBoost"
"""The kind of a file in XGBoost's own JSON."""
_UBJSON = b"{L"  # how XGBoost's begins; JSON has white space or a quote after the brace


class Provenance(TypedDict, total=False):
    """The types of those entries of a model's provenance that commands read; others are free."""

    learner: str
    baseline: str
    tuned: list[str]
    baselines: dict[str, dict[str, float]]
    training_score: float
    queries: list[str]
    validation: list[str]
    validation_score: float
    columns: list[str]
    spreads: list[float]
    held_out: dict[str, float]
    preset: str
    searched: bool
    collections: dict[str, int]
    average_length: float


class SavedModel(ABC):
    """A model that is kept as JSON. Equal models give identical bytes."""

    kind: ClassVar[str]
    schema: ClassVar[int]  # version of the layout
    command: ClassVar[str]  # that trains one, for messages
    layout: ClassVar[type]  # a `TypedDict` of a file's entries, all of which are checked
    provenance: Mapping[str, Any]  # how it was made, for summaries and for what is known of a loaded model alone

    @property
    def learner(self) -> str:
        """The class of its learner; "" if it is not known."""
        return str(self.provenance.get("learner", ""))

    @abstractmethod
    def as_dict(self) -> dict[str, Any]:
        """Return the entries of the file, as JSON values."""

    @classmethod
    @abstractmethod
    def from_dict(cls, content: Mapping[str, Any]) -> Self:
        """Make the model of these entries, whose types are those of the layout."""

    def save(self, path: str | Path) -> None:
        """Write the model as JSON, atomically."""
        write_text(path, self.as_json())

    def as_json(self) -> str:
        """Return the text of the model's file."""
        content = {"kind": self.kind, "schema": self.schema, **self.as_dict()}
        return json.dumps(content, indent=2, default=np.generic.item) + "\n"  # options may be numbers of NumPy

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a model written by `save`; `ModelError` if the file is something else."""
        return cls.of_content(path, read_content(path))

    @classmethod
    def of_content(cls, path: str | Path, content: Mapping[str, Any]) -> Self:
        """Load from the content of the file, as `load` does."""
        if content.get("kind") != cls.kind:
            other = f", but {content['kind']!r:.40}" if "kind" in content else ""
            raise ModelError(f"{path}: not a {cls.kind}{other}; train one with `{cls.command}`")
        if content.get("schema") != cls.schema:
            other = f"{content.get('schema')!r:.20}"
            raise ModelError(f"{path}: schema {other}, but this version reads {cls.schema}: train it again")
        try:
            check_layout(cls.layout, content)
            model = cls.from_dict(content)
            # An entry that is lacking, left out of the model, or named by a digest of other values.
            written = {"kind": cls.kind, "schema": cls.schema, **model.as_dict()}
            # Texts of trees are compared in a twentieth of the time of their values.
            text = json.dumps(content)
            same = text == json.dumps(written) and "NaN" not in text  # which no number equals
            if difference := None if same else _difference(written, content):
                raise ModelError(f"{difference}: the file was changed after `save`, or made by other means")
            return model
        except (ValueError, TypeError, ArithmeticError, ModelError) as error:  # values outside their domains
            known = " is unknown to this version: train the model again, or update greylag"
            message = re.sub(r"\S+ got an unexpected keyword argument ('.*')", rf"entry \1{known}", str(error))
        raise ModelError(f"{path}: {_line(message)}")


def read_content(path: str | Path) -> dict[str, Any]:
    """Read a model file, empty if it is not an object; LightGBM's has its ``text``, and XGBoost's gets a ``kind``."""
    try:
        with Faults(path, lenient=None) as faults:
            text = read_text(path, faults)
        content = {"kind": LIGHTGBM, "text": text.decode()} if text.startswith(b"tree\n") else parse_json(text)
    except FormatError as error:
        message = str(error)
        if is_file(path):
            with open(path, "rb") as file:
                is_ubjson = file.read(2) == _UBJSON
            if is_ubjson:
                message = f"{path}: XGBoost's UBJSON, which is not read: save JSON, by booster.save_model('model.json')"
        raise ModelError(message) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a model file, JSON or LightGBM's text: {_line(str(error))}") from None
    if not isinstance(content, dict):
        return {}
    return {**content, "kind": XGBOOST} if "learner" in content and "kind" not in content else content


def trained_topics(provenance: Any) -> frozenset[str]:
    """Return the topics that a model of this provenance was trained on, or that chose among models."""
    names = (provenance.get(key) for key in ("queries", "validation")) if isinstance(provenance, Mapping) else ()
    return frozenset(qid for qids in names if isinstance(qids, list) for qid in qids if isinstance(qid, str))


def check_collection(fingerprint: str, index: PositionalIndex, *, transfer: bool) -> None:
    """Check by fingerprint ("" for any) that a model is used on its collection, or that `transfer` allows others."""
    if fingerprint and fingerprint != index.fingerprint and not transfer:
        raise ModelError(
            f"the model was trained on another collection (fingerprint {fingerprint[:12]}, this index has "
            f"{index.fingerprint[:12]}): train it on this one, or allow a transfer (--transfer, transfer=True)"
        )


def _difference(written: Any, read: Any, place: str = "") -> str | None:
    """Say where JSON that was read first differs from what is written."""
    at = place or "the file"
    if isinstance(written, Mapping) and isinstance(read, Mapping):
        if lacking := written.keys() - read.keys():
            return f"{at} lacks {min(lacking)!r}"
        if unknown := read.keys() - written.keys():
            return f"{at} has {min(unknown)!r:.60}, which has no meaning there"
        pairs = {str(key): (written[key], read[key]) for key in written}
    elif isinstance(written, list | tuple) and isinstance(read, list | tuple) and len(written) == len(read):
        pairs = {str(number): both for number, both in enumerate(zip(written, read, strict=True))}
    else:  # true is 1 for Python
        same = written == read and isinstance(written, bool) == isinstance(read, bool)
        return None if same else f"{at} is {read!r:.40} where `save` writes {written!r:.40}"
    prefix = f"{place}." if place else ""
    return next((found for key, both in pairs.items() if (found := _difference(*both, f"{prefix}{key}"))), None)


def _line(message: str) -> str:
    return " ".join(message.split())[:300]
