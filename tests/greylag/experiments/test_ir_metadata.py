"""Descriptions of runs in the ir_metadata format."""

from __future__ import annotations

import platform
import sys
from importlib.metadata import version

import pytest
import yaml

from greylag.experiments.ir_metadata import describe
from greylag.ranking import Run


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
