"""Results as bytes and back: data, never code.

A line of JSON, and arrays in NumPy's own format (npy) after it. JSON's scalars stand for themselves; everything else is
an object with one key, its kind. Records are greylag's frozen dataclasses and named tuples, which their constructors
make again: nothing is imported, and no other function is called.
"""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from dataclasses import fields, is_dataclass
from threading import Lock
from typing import Any

import numpy as np

_PACKAGES = ("greylag", "greylag_papers")
# NumPy reads the header of an array by Python's parser. In Python 3.11 that may end in a SystemError about recursion if
# several threads do so at once.
_PARSING = Lock()
_SCALARS = (type(None), bool, int, float, str)
_COLLECTIONS: dict[str, Callable[[Any], Any]] = {"list": list, "tuple": tuple, "set": set, "frozenset": frozenset}


def encode(value: Any) -> bytes:
    """Encode a value as bytes; `TypeError` if it, or something in it, has another type."""
    arrays: list[bytes] = []
    return json.dumps(_encoded(value, arrays)).encode() + b"\n" + b"".join(arrays)


def decode(content: bytes) -> Any:
    """Decode such bytes; `ValueError` if they are something else."""
    line, _, rest = content.partition(b"\n")
    try:
        return _Decoder(rest).value(json.loads(line))
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError, ArithmeticError, MemoryError) as error:
        raise ValueError(f"not a result: {error}") from None


def _encoded(value: Any, arrays: list[bytes]) -> Any:  # noqa: PLR0911
    kind = type(value)
    if kind in _SCALARS:
        return value
    if kind.__name__ in _COLLECTIONS and kind is _COLLECTIONS[kind.__name__]:
        return {kind.__name__: [_encoded(part, arrays) for part in value]}
    if kind is dict:
        return {"dict": [[_encoded(key, arrays), _encoded(part, arrays)] for key, part in value.items()]}
    if kind is bytes:
        arrays.append(value)
        return {"bytes": len(value)}
    if isinstance(value, np.generic):
        return {"scalar": _encoded(np.asarray(value), arrays)}
    if kind is np.ndarray and not value.dtype.hasobject:
        file = io.BytesIO()
        np.lib.format.write_array(file, value, allow_pickle=False)
        arrays.append(file.getvalue())
        return {"array": len(arrays[-1])}
    # By name, so that SciPy is not imported to find out that a value is none of its own.
    if kind.__name__ == "csr_matrix" and kind.__module__.startswith("scipy.sparse"):
        return {"csr": _encoded((value.data, value.indices, value.indptr, value.shape), arrays)}
    if _is_record(kind):
        parts = {name: _encoded(getattr(value, name), arrays) for name in _parameters(kind)}
        return {"record": [kind.__module__, kind.__name__, parts]}
    raise TypeError(f"{kind.__name__} is not data")


class _Decoder:
    """Reads the arrays in the order in which they were encoded."""

    def __init__(self, rest: bytes) -> None:
        self._rest, self._at = rest, 0

    def value(self, encoded: Any) -> Any:  # noqa: PLR0911
        """Decode an element of the line."""
        if not isinstance(encoded, dict):
            return encoded
        ((kind, content),) = encoded.items()
        if kind in _COLLECTIONS:
            return _COLLECTIONS[kind](self.value(part) for part in content)
        if kind == "dict":
            return {self.value(key): self.value(part) for key, part in content}
        if kind == "bytes":
            return self._take(content)
        if kind == "scalar":
            return self.value(content)[()]
        if kind == "array":
            with _PARSING:
                return np.lib.format.read_array(io.BytesIO(self._take(content)), allow_pickle=False)
        if kind == "csr":
            from scipy.sparse import csr_matrix

            *parts, shape = self.value(content)
            return csr_matrix(tuple(parts), shape)
        if kind == "record":
            module, name, parts = content
            # Only of modules that are loaded: whoever requests the value has its class.
            record = getattr(sys.modules[module], name)
            if not _is_record(record) or record.__module__ != module:
                raise ValueError(f"{module}.{name} is not a record")
            return record(**{part: self.value(encoded) for part, encoded in parts.items()})
        raise ValueError(f"{kind!r} is not a kind of value")

    def _take(self, size: int) -> bytes:
        if not 0 <= size <= len(self._rest) - self._at:
            raise ValueError("an array is cut short")
        self._at += size
        return self._rest[self._at - size : self._at]


def _is_record(kind: Any) -> bool:
    """Return whether this is a frozen dataclass or named tuple of greylag, at the top level of its module."""
    if not isinstance(kind, type) or kind.__module__.partition(".")[0] not in _PACKAGES:
        return False
    frozen = is_dataclass(kind) and kind.__dataclass_params__.frozen  # type: ignore[attr-defined]
    named = issubclass(kind, tuple) and hasattr(kind, "_fields")
    return (frozen or named) and kind.__qualname__ == kind.__name__


def _parameters(kind: Any) -> list[str]:
    return [field.name for field in fields(kind) if field.init] if is_dataclass(kind) else list(kind._fields)
