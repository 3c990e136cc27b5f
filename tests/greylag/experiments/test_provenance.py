"""What results depend on, and descriptions of runs in the ir_metadata format."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version
from pathlib import Path

import pytest
import yaml

from greylag import Run
from greylag.experiments.provenance import describe
from greylag.runtime.software import code, versions


def test_versions_are_those_of_the_required_packages() -> None:
    found = versions()
    assert list(found)[:2] == ["Python", "greylag"]
    assert found["Python"] == platform.python_version()
    assert {name: found[name] for name in ("numpy", "scipy", "numba", "joblib", "pyserini")} == {
        name: version(name) for name in ("numpy", "scipy", "numba", "joblib", "pyserini")
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


def test_a_description(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "argv", ["/some/where/greylag", "experiment", "my file.yaml"])
    step = {"name": "search", "method": "BM25Similarity", "k1": 0.9}
    content = yaml.safe_load(
        describe(
            Run((), "tag"),
            {
                "retrieval": [step],
                "measures": ["AP", "nDCG@10"],
                "baselines": ("bm25",),
                "collection": {"name": "cacm", "topics": "t", "qrels": "q"},
            },
        )
    )
    assert list(content) == ["tag", "platform", "research goal", "implementation", "method", "data"]
    assert content["tag"] == "tag"
    evaluation = content["research goal"]["evaluation"]
    assert evaluation["reported measures"] == ["map", "ndcg_cut_10"]
    assert evaluation["baseline"] == ["bm25"]
    assert content["implementation"]["executable"]["cmd"] == "greylag experiment 'my file.yaml'"
    assert content["method"]["retrieval"] == [step]
    assert content["data"]["test collection"] == {"name": "cacm", "topics": "t", "qrels": "q"}
    libraries = content["platform"]["software"]["libraries"]["python"]
    assert {f"numpy=={version('numpy')}", f"python=={platform.python_version()}"} <= set(libraries)
