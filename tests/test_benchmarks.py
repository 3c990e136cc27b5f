"""Benchmarks can be imported: no type checker reads them, and names change."""

from importlib import import_module

import pytest

from benchmarks.__main__ import TOPICS


@pytest.mark.parametrize("topic", [*TOPICS, "growth"])
def test_a_benchmark_has_what_it_imports(topic):
    import_module(f"benchmarks.{topic}")
