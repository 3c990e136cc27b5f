"""The study of the stack, on the demonstration collection."""

from __future__ import annotations

from pathlib import Path

import pytest

from greylag_papers.beyond.stack import file_name
from tests.greylag.experiments.samples import CONFIGS, results, run_file

SMALL = """
training:
  max_features: 2
  folds: 2
  inner_folds: 2
  depth: 50
  alphas: [0.6]
  grid: {k1: [0.9], b: [0.4], mu: [1000], fb_docs: [5], fb_terms: [10], original_weight: [0.5]}
"""


def test_file_names() -> None:
    assert file_name("stack, then PM-2") == "stack-then-pm-2"


@pytest.mark.slow
def test_the_demonstration_collection(tmp_path: Path) -> None:
    text = (CONFIGS / "demo.stack.yaml").read_text()
    head, _, tail = text.partition("training:")
    tail = tail[tail.index("diversify:") :]
    data = CONFIGS.parent / "plugin" / "greylag" / "demo"
    small = f"{head}{SMALL}{tail}".replace("../plugin/greylag/demo", str(data))
    (tmp_path / "small.yaml").write_text(small)
    finished = run_file(tmp_path / "small.yaml", tmp_path / "out")
    assert finished.scores["stack"]["AP"] > finished.scores["BM25"]["AP"]
    assert finished.scores["stack, then xQuAD"]["alpha-nDCG@10"] > finished.scores["stack"]["alpha-nDCG@10"]
    found = results(tmp_path / "out")
    assert len(found["chosen"]) == len(found["features"]) == 2
    assert all(1 <= len(chosen) <= 2 * 2 for chosen in found["features"])
    assert (tmp_path / "out" / "stack.run").exists()
    assert (tmp_path / "out" / "models" / "stack" / "fold-2.json").exists()
