"""What model files have in common: JSON with a kind, a schema version and the fingerprint of a collection."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from greylag.errors import FormatError, ModelError
from greylag.index.positional import PositionalIndex
from greylag.runtime.files import Faults, parse_json, read_text, write_text

_COMMON = {"parameters": dict, "fingerprint": str, "provenance": dict}


def write_model(path: str | Path, kind: str, schema: int, content: Mapping[str, Any]) -> None:
    """Write a model as JSON, atomically. Equal models give identical bytes.

    Parameters
    ----------
    path : str or Path
        The file.
    kind : str
        The kind of model.
    schema : int
        The version of its layout.
    content : mapping of str to JSON values
        The model, with at least ``parameters``, ``fingerprint`` and ``provenance``.

    Raises
    ------
    ParameterError
        If the file cannot be written.
    """
    write_text(path, json.dumps({"kind": kind, "schema": schema, **content}, indent=2) + "\n")


@contextmanager
def model_content(path: str | Path, kind: str, schema: int, command: str, **types: type) -> Iterator[dict[str, Any]]:
    """Yield the content of a file that `write_model` wrote, to the block that makes a model from it.

    Parameters
    ----------
    path : str or Path
        The file.
    kind, schema : str, int
        The expected kind and schema version.
    command : str
        The command that trains such a model, for messages.
    **types : type
        The types of the content's entries, besides those that every model has.

    Raises
    ------
    ModelError
        If the file cannot be read, is not such a model or has another schema version, or the block finds an entry
        missing or outside its domain. Always one line, which starts with the path.
    """
    content = _read(path)
    if content.get("kind") != kind:
        raise ModelError(f"{path}: not a {kind}; train one with `{command}`")
    if content.get("schema") != schema:
        found = f"{content.get('schema')!r:.20}"
        raise ModelError(f"{path}: schema {found}, but this version reads {schema}: train it again")
    try:
        for name, wanted in {**_COMMON, **types}.items():
            if type(content[name]) is not wanted:
                raise ModelError(f"{name} is {content[name]!r:.40}: it must be a {wanted.__name__}")
        yield content
    except KeyError as error:
        raise ModelError(f"{path}: the model lacks {error}") from None
    except (TypeError, ValueError, ArithmeticError, AttributeError, RecursionError, ModelError) as error:
        raise ModelError(f"{path}: {_line(error)}") from None


def read_kind(path: str | Path) -> str:
    """The kind of a model file, "" if it has none.

    Raises
    ------
    ModelError
        If the file cannot be read or is not JSON.
    """
    kind = _read(path).get("kind")
    return kind if isinstance(kind, str) else ""


def _read(path: str | Path) -> dict[str, Any]:
    """The content of a model file, empty if it is not an object."""
    try:
        with Faults(path, lenient=None) as faults:
            content = parse_json(read_text(path, faults))
    except FormatError as error:
        raise ModelError(str(error)) from None
    except (ValueError, RecursionError) as error:
        raise ModelError(f"{path}: not a model file: {_line(error)}") from None
    return content if isinstance(content, dict) else {}


def read_weight(value: object) -> float:
    """A weight of a model file; raises `ModelError` if it is not a number."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ModelError(f"weight {value!r:.40} is not a number")
    return float(value)


def check_collection(fingerprint: str, index: PositionalIndex, *, transfer: bool) -> None:
    """Check that a model is used on the collection that it was trained on.

    Parameters
    ----------
    fingerprint : str
        The fingerprint of the training collection; "" matches every collection.
    index : PositionalIndex
        The collection at hand.
    transfer : bool
        Whether another collection is acceptable.

    Raises
    ------
    ModelError
        If the collections differ and `transfer` is false.
    """
    if fingerprint and fingerprint != index.fingerprint and not transfer:
        raise ModelError(
            f"the model was trained on another collection (fingerprint {fingerprint[:12]}, this index has "
            f"{index.fingerprint[:12]}): train it on this one, or allow a transfer"
        )


def _line(error: Exception) -> str:
    return " ".join(str(error).split())[:300]
