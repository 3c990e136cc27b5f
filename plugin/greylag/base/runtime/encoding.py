"""Results as bytes and back: data, never code.

An archive of NumPy (npz): JSON, and the arrays that it numbers. JSON's scalars stand for themselves; everything else is
an object with one key, its kind. Records are greylag's frozen dataclasses and named tuples, which their constructors
make again: no module but greylag's is imported, and no other function is called.
"""

from __future__ import annotations

import io
import json
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from importlib import import_module
from typing import Any

import numpy as np

from greylag.base.runtime.archives import unpack

_PACKAGES = ("greylag", "greylag_papers")
_SCALARS = (type(None), bool, int, float, str)
_COLLECTIONS: dict[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


def encode(value: Any) -> bytes:
    """Encode a value as bytes; `TypeError` if it, or something in it, has another type."""
    arrays: list[Any] = []
    text = json.dumps(_encoded(value, arrays)).encode()
    file = io.BytesIO()
    np.savez(file, np.frombuffer(text, np.uint8), *arrays)
    return file.getvalue()


def decode(content: bytes) -> Any:
    """Decode such bytes; `ValueError` if they are something else."""
    try:
        text, *arrays = unpack(io.BytesIO(content))
        return _decoded(json.loads(text.tobytes()), arrays)
    except Exception as error:  # whatever zipfile, NumPy and the constructors of records raise
        raise ValueError(f"not a result: {error}") from None


def _encoded(value: Any, arrays: list[Any]) -> Any:
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind.__name__ in _COLLECTIONS and kind is _COLLECTIONS[kind.__name__]:
        return {kind.__name__: [_encoded(part, arrays) for part in value]}
    if kind is dict:
        return {"dict": [[_encoded(key, arrays), _encoded(part, arrays)] for key, part in value.items()]}
    if kind is bytes or (isinstance(value, np.generic | np.ndarray) and not value.dtype.hasobject):
        arrays.append(np.frombuffer(value, np.uint8) if kind is bytes else value)
        return {"bytes" if kind is bytes else "array" if kind is np.ndarray else "scalar": len(arrays) - 1}
    # By name, so that SciPy is not imported to find out that a value is none of its own.
    if kind.__name__ == "csr_matrix" and kind.__module__.startswith("scipy.sparse"):
        return {"csr": _encoded((value.data, value.indices, value.indptr, value.shape), arrays)}
    if _is_record(kind):
        names = [field.name for field in fields(kind) if field.init] if is_dataclass(kind) else kind._fields
        parts = {name: _encoded(getattr(value, name), arrays) for name in names}
        return {"record": [kind.__module__, kind.__name__, parts]}
    raise TypeError(f"{kind.__name__} is not data")


def _decoded(encoded: Any, arrays: list[Any]) -> Any:
    if not isinstance(encoded, dict):
        return encoded
    ((kind, content),) = encoded.items()
    if kind in _COLLECTIONS:
        return _COLLECTIONS[kind](_decoded(part, arrays) for part in content)
    if kind == "dict":
        return {_decoded(key, arrays): _decoded(part, arrays) for key, part in content}
    if kind in ("array", "scalar", "bytes"):
        array = arrays[content]
        return array if kind == "array" else array[()] if kind == "scalar" else array.tobytes()
    if kind == "csr":
        from scipy.sparse import csr_matrix

        *parts, shape = _decoded(content, arrays)
        return csr_matrix(tuple(parts), shape)
    module, name, parts = encoded["record"]
    # A resumed command finds results before it has loaded the modules that made them.
    record: Any = getattr(import_module(module), name) if module.partition(".")[0] in _PACKAGES else None
    if not _is_record(record) or record.__module__ != module:
        raise ValueError(f"{module}.{name} is not a record")
    return record(**{part: _decoded(value, arrays) for part, value in parts.items()})


def _is_record(kind: Any) -> bool:
    """Return whether this is a frozen dataclass or named tuple of greylag, at the top level of its module."""
    if not isinstance(kind, type) or kind.__module__.partition(".")[0] not in _PACKAGES:
        return False
    frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return (frozen or named) and kind.__qualname__ == kind.__name__
