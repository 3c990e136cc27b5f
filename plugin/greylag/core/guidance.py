"""Calls that were guessed: what Python refuses is answered with the call that works."""

from __future__ import annotations

from abc import ABCMeta
from collections.abc import Callable
from functools import wraps
from inspect import Parameter, Signature, signature
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from greylag.core.spelling import OTHER_OPTIONS

_F = TypeVar("_F", bound=Callable[..., Any])
_SEARCH = "with bm25 = lucene.bm25(k), bm25(text) ranks for one query, and bm25.run(topics) for all"
_SETTINGS = "a source has its parameters: lucene.bm25(k, k1=0.9, b=0.4), lucene.ql(k, mu=1000)"
INSTEAD = {
    **dict.fromkeys(("search", "batch_search"), _SEARCH),
    **dict.fromkeys(("set_bm25", "set_qld"), _SETTINGS),
    **dict.fromkeys(("set_rm3", "rm3"), "use greylag.index.RM3Search"),
    **dict.fromkeys(("transform", "predict"), "use .run(run), or .run(topics) of a source"),
    "from_prebuilt_index": "use LuceneIndex(name)",
    "from_file": "use greylag.read_run(path)",
    "save": "use greylag.write_run(run, path)",
    "load": "use ModelRanker(path, index)",
    "fit": "use greylag.train(run, qrels, index)",
}
"""What works in place of methods that other packages have."""


class Guided(ABCMeta):
    """The class of classes that answer missing attributes, theirs and their instances', by `refuse_attribute`."""

    if not TYPE_CHECKING:

        def __new__(cls, name: str, bases: tuple[type, ...], members: dict[str, Any], **options: Any) -> type:
            """Make a class."""
            return super().__new__(cls, name, bases, {"__getattr__": refuse_attribute, **members}, **options)

        def __getattr__(cls, name: str) -> NoReturn:
            refuse_attribute(cls, name)


def guided(named: _F) -> _F:
    """Decorate a function, or a class for its ``__init__``: errors of wrong arguments name the call."""
    if isinstance(named, type):
        kind: Any = named
        kind.__init__ = _guided(kind.__init__, kind)
        return named
    function: _F = _guided(named, named)
    return function


def _guided(function: Callable[..., Any], named: Any) -> Any:
    @wraps(function)
    def call(*args: Any, **options: Any) -> Any:
        try:
            return function(*args, **options)
        except TypeError as error:
            if error.__traceback__ is None or error.__traceback__.tb_next is not None:  # raised within the function
                raise
            raise TypeError(f"{error}: {_instead(named, options)}") from None

    return call


def _instead(named: Any, options: dict[str, Any]) -> str:
    """Return what to write in place of unknown options, and the call."""
    known, call = _parameters(named), _call(named)
    ours = [
        f"write {next(new for new in OTHER_OPTIONS[old] if new in known)} for {old}"
        for old in options
        if old not in known and known.keys() & OTHER_OPTIONS.get(old, ())
    ]
    if isinstance(named, type):
        makers = [call, *(_call(getattr(named, one)) for one in dir(named) if one.startswith("from_"))]
        # Fields that only makers know
        call = " or ".join(makers[all(one.kind is one.KEYWORD_ONLY for one in known.values()) :] or makers)
    return "; ".join([*ours, f"the call is {call}"])


def _parameters(named: Any) -> dict[str, Parameter]:
    given = signature(named).parameters.items()
    return {name: one.replace(annotation=Parameter.empty) for name, one in given if name not in ("self", "cls", "_")}


def _call(named: Any) -> str:
    return f"{named.__qualname__}{Signature([*_parameters(named).values()])}"


def refuse_attribute(value: Any, name: str) -> NoReturn:
    """Raise the `AttributeError` of a missing attribute, with what works."""
    kind = value if isinstance(value, type) else type(value)
    message = f"{kind.__name__} has no attribute {name!r}"
    if not name.startswith("_"):  # those that programs ask for
        known = ", ".join(one for one in dir(kind) if not one.startswith("_"))
        message += f": {INSTEAD.get(name, f'it has {known}')}"
    raise AttributeError(message, name=name, obj=value)
