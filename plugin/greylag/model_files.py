"""What model files have in common: JSON with a kind and a schema's version, and the collection that a model is for."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from greylag.errors import ModelError, ParameterError
from greylag.files import write_text
from greylag.index.positional import PositionalIndex


def write_model(path: str | Path, kind: str, schema: int, content: Mapping[str, Any]) -> None:
    """Write a model's content as JSON, atomically; the same content gives the same bytes."""
    write_text(path, json.dumps({"kind": kind, "schema": schema, **content}, indent=2) + "\n")


@contextmanager
def model_content(path: str | Path, kind: str, schema: int, command: str) -> Iterator[dict[str, Any]]:
    """The content that `write_model` wrote, for the block that makes a model of it.

    Parameters
    ----------
    command : what trains such a model, for the messages.

    Raises
    ------
    ModelError
        Where the file is no such model, of another schema, or the block finds an entry missing or outside its domain.
    """
    try:
        content = json.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        raise ModelError(f"{path}: the model cannot be read: {error.strerror}") from None
    except ValueError as error:
        raise ModelError(f"{path}: not a model file: {error}") from None
    if not isinstance(content, dict) or content.get("kind") != kind:
        raise ModelError(f"{path}: not a {kind}; train one with `{command}`")
    if content.get("schema") != schema:
        raise ModelError(f"{path}: schema {content.get('schema')}, but this version reads {schema}: train it again")
    try:
        yield content
    except KeyError as error:
        raise ModelError(f"{path}: the model lacks {error}") from None
    except (TypeError, ValueError, AttributeError, ParameterError, ModelError) as error:
        raise ModelError(f"{path}: {error}") from None


def check_collection(fingerprint: str, index: PositionalIndex, *, transfer: bool) -> None:
    """Raise `ModelError` where a model meets another collection than its own ("": any), unless `transfer`."""
    if fingerprint and fingerprint != index.fingerprint and not transfer:
        raise ModelError(
            f"the model was trained on another collection (fingerprint {fingerprint[:12]}, this index has "
            f"{index.fingerprint[:12]}): train it on this one, or ask for a transfer"
        )
