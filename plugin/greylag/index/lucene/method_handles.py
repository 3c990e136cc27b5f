"""Loops that run inside the JVM, assembled from `java.lang.invoke` method handles.

A call into Java costs microseconds, so a loop over a million postings must not run in Python. Java can assemble one at
run time: every handle of a `Routine` takes all of the routine's parameters, so that handles compose like expressions,
and the JVM compiles the result like any other loop. No Java compiler is needed. The routines of `bulk_calls` are
examples, each below the Java code that it is.

A handle is an expression, not a variable: it is evaluated wherever it is used. Nor has a loop an index. What a routine
has to remember is kept in an object among its parameters: a counter, or a cell with a value.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

from greylag.index.lucene.jvm import calls_java, java_class, others_call_java, pyjnius

Handle = Any  # java.lang.invoke.MethodHandle
_PRIMITIVES = {"int": "Integer", "long": "Long", "float": "Float", "boolean": "Boolean", "void": "Void"}


@calls_java
def method(owner: str, name: str, result: str, *parameters: str) -> Handle:
    """Find the public method `name` of the class `owner`; the handle's first parameter is the object."""
    # Types are class names (``java.lang.String``, ``[Ljava.lang.Object;`` for arrays) or primitives (``int``).
    return _lookup().findVirtual(_type(owner), name, _signature(_type(result), [_type(name) for name in parameters]))


def field(owner: str, name: str, result: str) -> Handle:
    """Make a getter for the public field `name` of the class `owner`."""
    return _lookup().findGetter(_type(owner), name, _type(result))


def length(array: str) -> Handle:
    """Make a handle that returns the length of an array of type `array`."""
    return _handles().arrayLength(_type(array))


def element(array: str) -> Handle:
    """Make a handle that takes an array of type `array` and an index and returns the element."""
    return _handles().arrayElementGetter(_type(array))


class Routine:
    """Builds handles that share one list of parameters, whose types are as in `method`."""

    def __init__(self, *parameters: str) -> None:
        self._parameters = [_type(name) for name in parameters]

    def arguments(self) -> list[Handle]:
        """Return, for each parameter, the handle that returns it."""
        return [
            self._arrange(_handles().identity(parameter), [position])
            for position, parameter in enumerate(self._parameters)
        ]

    def constant(self, kind: str, value: Any) -> Handle:
        """Return the handle that returns the constant `value` of type `kind`."""
        return self._arrange(_handles().constant(_type(kind), value), [])

    def call(self, function: Handle, *arguments: Handle) -> Handle:
        """Call `function` on the values of `arguments`, cast and unboxed to its parameter types."""
        function = function.asType(_signature(_result(function), [_result(argument) for argument in arguments]))
        # Each argument is itself a handle with all parameters of the routine. It takes the place of one parameter of
        # the function, from the last to the first, so that the positions before it stay right.
        for position in reversed(range(len(arguments))):
            function = _handles().collectArguments(function, position, arguments[position])
        # All arguments have the routine's parameters, one set after another, which become one set.
        return self._arrange(function, list(range(len(self._parameters))) * len(arguments))

    def sequence(self, *steps: Handle) -> Handle:
        """Run the steps in order and discard their results."""
        # `foldArguments(last, step)` runs step, then last, on the same parameters.
        *first, last = [step.asType(_signature(_type("void"), self._parameters)) for step in steps]
        for step in reversed(first):
            last = _handles().foldArguments(last, step)
        return last

    def repeat(self, count: Handle, body: Handle) -> Handle:
        """Run `body` `count` times; `count` is evaluated once."""
        # `countedLoop` wants a body whose first parameter is the index.
        signature = _signature(_type("void"), [_type("int"), *self._parameters])
        positions = range(1, len(self._parameters) + 1)
        # The loop passes its index first, which the body does not take.
        indexed = _handles().permuteArguments(self.sequence(body), signature, *positions)
        return _handles().countedLoop(count, None, indexed)

    def loop(self, condition: Handle, body: Handle) -> Handle:
        """Run `body` while `condition` is not null."""
        present = _lookup().findStatic(
            _type("java.util.Objects"), "nonNull", _signature(_type("boolean"), [_type("java.lang.Object")])
        )
        return _handles().whileLoop(None, self.call(present, condition), self.sequence(body))

    def _arrange(self, function: Handle, positions: list[int]) -> Handle:
        """Adapt `function` to the routine's parameters: it takes those at `positions`, in that order."""
        return _handles().permuteArguments(function, _signature(_result(function), self._parameters), *positions)


@calls_java
def run(function: Handle, *arguments: Any) -> Any:
    """Call a handle, and let other threads call Java while it runs."""
    # pyjnius sees every such call as a call of the single object `_dispatcher`, which is never freed.
    call, dispatcher = _list(function, _list(*arguments)), _dispatcher()
    with others_call_java():
        return dispatcher.invokeWithArguments(call)


@cache
def _dispatcher() -> Handle:
    """Make the handle that calls a given handle with a list of arguments."""
    return method("java.lang.invoke.MethodHandle", "invokeWithArguments", "java.lang.Object", "java.util.List")


def _list(*values: Any) -> Any:
    values_in_java = java_class("java.util.ArrayList")()
    for value in values:
        values_in_java.add(value)
    return values_in_java


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
