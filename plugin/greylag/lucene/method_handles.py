"""Loops that run inside the JVM, put together from `java.lang.invoke` method handles.

A call into Java costs microseconds, so a loop over a million postings must not run in Python. Java can assemble one at
run time: every handle of a `Routine` takes the routine's parameters, all of them, so that handles combine as
expressions do, and the JVM compiles the result like any loop. `bulk` writes its transfers with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from greylag.lucene.jvm import calls_java, java_class, others_call_java, pyjnius

Handle = Any  # java.lang.invoke.MethodHandle
_PRIMITIVES = {"int": "Integer", "long": "Long", "float": "Float", "boolean": "Boolean", "void": "Void"}


@calls_java
def method(owner: str, name: str, result: str, *parameters: str) -> Handle:
    """The public method `name` of the class `owner`; its first parameter is the object.

    Types are class names (``java.lang.String``, ``[Ljava.lang.Object;`` for arrays) or primitives (``int``).
    """
    return _lookup().findVirtual(_type(owner), name, _signature(_type(result), [_type(name) for name in parameters]))


def field(owner: str, name: str, result: str) -> Handle:
    """The public field `name` of the class `owner`, as a method of the object."""
    return _lookup().findGetter(_type(owner), name, _type(result))


def length(array: str) -> Handle:
    """The length of an array of type `array`."""
    return _handles().arrayLength(_type(array))


def element(array: str) -> Handle:
    """An array of type `array` and an index, to the element there."""
    return _handles().arrayElementGetter(_type(array))


class Routine:
    """A maker of handles that share one list of parameters.

    Parameters
    ----------
    parameters : the parameters' types.
    """

    def __init__(self, *parameters: str) -> None:
        self._parameters = [_type(name) for name in parameters]

    def arguments(self) -> list[Handle]:
        """For each parameter the handle that returns it."""
        return [
            self._arrange(_handles().identity(parameter), [place]) for place, parameter in enumerate(self._parameters)
        ]

    def constant(self, kind: str, value: Any) -> Handle:
        """The handle that returns `value`, of type `kind`."""
        return self._arrange(_handles().constant(_type(kind), value), [])

    def call(self, function: Handle, *arguments: Handle) -> Handle:
        """`function` of the arguments' values, which are cast and unboxed as its parameters need."""
        function = function.asType(_signature(_result(function), [_result(argument) for argument in arguments]))
        for place in reversed(range(len(arguments))):
            function = _handles().collectArguments(function, place, arguments[place])
        return self._arrange(function, list(range(len(self._parameters))) * len(arguments))

    def sequence(self, *steps: Handle) -> Handle:
        """The steps, one after another; their results are dropped."""
        *first, last = [step.asType(_signature(_type("void"), self._parameters)) for step in steps]
        for step in reversed(first):
            last = _handles().foldArguments(last, step)
        return last

    def repeat(self, count: Handle, body: Handle) -> Handle:
        """`body`, `count` times (evaluated once)."""
        signature = _signature(_type("void"), [_type("int"), *self._parameters])
        places = range(1, len(self._parameters) + 1)
        return _handles().countedLoop(count, None, _handles().permuteArguments(self.sequence(body), signature, *places))

    def loop(self, condition: Handle, body: Handle) -> Handle:
        """`body` for as long as `condition` is not null."""
        present = _lookup().findStatic(
            _type("java.util.Objects"), "nonNull", _signature(_type("boolean"), [_type("java.lang.Object")])
        )
        return _handles().whileLoop(None, self.call(present, condition), self.sequence(body))

    def _arrange(self, function: Handle, places: list[int]) -> Handle:
        """Give `function` the routine's parameters, those at `places` in the order of its own."""
        return _handles().permuteArguments(function, _signature(_result(function), self._parameters), *places)


@calls_java
def run(function: Handle, *arguments: Any) -> Any:
    """Call a handle, and let other threads call Java while it works.

    That is safe because every such call is, to pyjnius, a call of the one object `_dispatcher`, which is never freed.
    """
    call, dispatcher = _list(function, _list(*arguments)), _dispatcher()
    with others_call_java():
        return dispatcher.invokeWithArguments(call)


@cache
def _dispatcher() -> Handle:
    """The handle that calls the handle which it is given, on a list of arguments."""
    return method("java.lang.invoke.MethodHandle", "invokeWithArguments", "java.lang.Object", "java.util.List")


def _list(*values: Any) -> Any:
    made = java_class("java.util.ArrayList")()
    for value in values:
        made.add(value)
    return made


def _handles() -> Any:
    return java_class("java.lang.invoke.MethodHandles")


def _lookup() -> Any:
    return _handles().publicLookup()


def _type(name: str) -> Any:
    if name in _PRIMITIVES:
        return java_class(f"java.lang.{_PRIMITIVES[name]}").TYPE
    return java_class("java.lang.Class").forName(name)


def _signature(result: Any, parameters: Sequence[Any]) -> Any:
    return java_class("java.lang.invoke.MethodType").methodType(result, list(parameters))


def _result(function: Handle) -> Any:
    return pyjnius().cast("java.lang.Class", function.type().returnType())
