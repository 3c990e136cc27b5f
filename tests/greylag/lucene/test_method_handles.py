"""Calls through method handles, and loops assembled from them."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from greylag.lucene import jvm
from greylag.lucene.method_handles import Routine, element, length, method, run


def test_other_threads_call_java_while_java_runs() -> None:
    barrier = jvm.java_class("java.util.concurrent.CyclicBarrier")(3)
    seconds = jvm.java_class("java.util.concurrent.TimeUnit").SECONDS
    wait = method("java.util.concurrent.CyclicBarrier", "await", "int", "long", "java.util.concurrent.TimeUnit")
    with ThreadPoolExecutor(3) as pool:
        arrivals = [pool.submit(run, wait, barrier, 10, seconds) for _ in range(3)]
        assert sorted(arrival.result() for arrival in arrivals) == [0, 1, 2]


def test_a_failing_call_releases_the_lock() -> None:
    substring = method("java.lang.String", "substring", "java.lang.String", "int")
    for _ in range(3):
        with pytest.raises(jvm.pyjnius().JavaException, match="StringIndexOutOfBounds"):
            run(substring, "x", 9)
    assert run(substring, "goose", 3) == "se"


def test_a_routine_loops_over_an_array() -> None:
    objects, listed, buffer = "[Ljava.lang.Object;", "java.util.ArrayList", "java.lang.StringBuilder"
    counter = "java.util.concurrent.atomic.AtomicInteger"
    routine = Routine(listed, buffer, counter)
    words, out, number = routine.arguments()
    array = routine.call(method(listed, "toArray", objects), words)
    word = routine.call(element(objects), array, routine.call(method(counter, "getAndIncrement", "int"), number))
    append = routine.call(method(buffer, "append", buffer, "java.lang.Object"), out, word)
    made, joined = jvm.java_class(listed)(), jvm.java_class(buffer)()
    for text in ("grey", "lag", "goose"):
        made.add(text)
    run(routine.repeat(routine.call(length(objects), array), append), made, joined, jvm.java_class(counter)())
    assert joined.toString() == "greylaggoose"


def test_a_routine_loops_while_a_value_is_not_null() -> None:
    queue, buffer, anything = "java.util.ArrayDeque", "java.lang.StringBuilder", "java.lang.Object"
    routine = Routine(queue, buffer)
    values, out = routine.arguments()
    poll, peek = (routine.call(method(queue, name, anything), values) for name in ("poll", "peek"))
    append = routine.call(method(buffer, "append", buffer, anything), out, poll)
    pending, joined = jvm.java_class(queue)(), jvm.java_class(buffer)()
    for value in "abc":
        pending.add(value)
    run(routine.loop(peek, append), pending, joined)
    assert joined.toString() == "abc"
