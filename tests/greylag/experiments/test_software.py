"""What software results depend on."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from pathlib import Path

import pytest

from greylag.experiments.software import code, versions


def test_versions_are_those_of_the_required_packages() -> None:
    found = versions()
    assert list(found)[:2] == ["Python", "greylag"]
    assert found["Python"] == platform.python_version()
    assert {name: found[name] for name in ("numpy", "scipy", "numba", "clarabel", "pyserini")} == {
        name: version(name) for name in ("numpy", "scipy", "numba", "clarabel", "pyserini")
    }
    assert all(found.values())


def test_the_code_of_both_packages_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code()
    package = tmp_path / "greylag_papers"
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "greylag_papers", raising=False)
    code.cache_clear()
    assert code() != before
    code.cache_clear()
