"""Calls that were guessed: what Python refuses is answered with the call that works."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from dis import opname
from functools import wraps
from inspect import Parameter, Signature, signature
from pathlib import Path
from typing import Any, NoReturn, TypeVar

from greylag.base.core.spelling import ATTRIBUTES, NAMES, close, meant

_F = TypeVar("_F", bound=Callable[..., Any])


def guided(named: _F) -> _F:
    """Decorate a function, or a class for its ``__init__`` and its makers: errors of wrong arguments name the call."""
    # Python names what is wrong, and not what is right: whoever guesses a keyword of another package would have to look
    # it up. Only Python's own refusal of the arguments is answered so; a call that is right costs a try.
    decorated: Any = named
    function = decorated.__init__ if isinstance(named, type) else decorated

    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            # Python refuses arguments in this frame; an error raised within the function has a frame more.
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:
                raise
            raise TypeError(f"{error}: {_instead(named, options)}") from None

    if not isinstance(named, type):
        return call  # type: ignore[return-value]
    decorated.__init__ = call
    for name, maker in list(vars(decorated).items()):
        if isinstance(maker, classmethod) and not name.startswith("_"):
            setattr(decorated, name, classmethod(guided(maker.__func__)))
    return named


def _instead(named: Any, options: dict[str, Any]) -> str:
    """Return what to write in place of unknown options, and the call."""
    # Only of a call that failed: signatures are slow to make.
    known = _parameters(named)
    wrong = [name for name in options if name not in known]
    ours = [f"write {new} for {name}" for name in wrong if (new := meant(name, known))]
    makers = [getattr(named, name) for name in dir(named) if name.startswith("from_")]
    # A class whose fields are all made by its makers is made by these.
    direct = [named] if not makers or any(field.kind is not field.KEYWORD_ONLY for field in known.values()) else []
    calls = [_call(maker.__qualname__, maker) for maker in [*direct, *makers]]
    return "; ".join([*ours, f"the call is {' or '.join(calls)}"])


def _parameters(named: Any) -> dict[str, Parameter]:
    own = [(name, field) for name, field in signature(named).parameters.items() if name not in ("self", "cls", "_")]
    return {name: field.replace(annotation=Parameter.empty) for name, field in own}


def _call(name: str, named: Any) -> str:
    return f"{name}{Signature([*_parameters(named).values()])}"


def refuse_attribute(value: Any, name: str) -> NoReturn:
    """Raise the `AttributeError` of a missing attribute, as ``__getattr__``, with the call of the one that is meant."""
    kind = type(value)
    ours = next((ours for ours in ATTRIBUTES.get(name, "").split() if hasattr(kind, ours)), "")
    there = getattr(kind, ours, None)
    if callable(there):
        call = f": the call is {_call(f'{kind.__name__}.{ours}', there)}"
    elif name.startswith("_"):  # Python asks for many of these
        call = ""
    else:
        call = f": write {ours or ', '.join(known for known in dir(kind) if known[0] != '_')}"
    raise AttributeError(f"{kind.__name__} has no attribute {name!r}{call}", name=name, obj=value)


def refuse_name(module: str, name: str) -> NoReturn:
    """Raise the error of a name that a module lacks, for its ``__getattr__``, with where it is or what to write."""
    public = dict[str, str]()
    for stub in sorted(Path(__file__).parents[2].glob("*/__init__.pyi")) if name[:1] != "_" else ():
        lines = stub.read_text(encoding="utf-8").partition("# isort: split")[0].splitlines()
        public |= {line.rpartition(" ")[2]: f"greylag.{stub.parent.name}" for line in lines if " import " in line}
    near = [name] if name in public else close(name, public)
    words = [] if near else re.findall("[A-Z]?[a-z]{3,}|[A-Z]{3,}", name)  # as Qrels of TrecQrels
    guess = next((word for word in (name, *words) if word in NAMES), "")
    ways = [NAMES[guess]] if guess else [f"from {public[ours]} import {ours}" for ours in near]
    way = f"; write {' or '.join(ways)}" if ways else ""
    # Python replaces the AttributeError of an import by an ImportError of its own words.
    frame = sys._getframe(1).f_back
    if way and frame and opname[frame.f_code.co_code[frame.f_lasti]] == "IMPORT_FROM":
        raise ImportError(f"cannot import name {name!r} from {module!r}{way}", name=name)
    raise AttributeError(f"module {module!r} has no attribute {name!r}{way}", name=name, obj=sys.modules[module])
