from __future__ import annotations

from pathlib import Path

import pytest

from greylag.cli.options import FeatureOptions, Reading
from greylag.errors import FormatError, ParameterError
from greylag.features.spec import candidate_pool
from greylag.features.spelling import parse_features
from greylag.features.weighting import FeatureParameters
from tests.greylag.cli.conftest import Refused


def test_the_default_parameters_are_the_librarys() -> None:
    assert FeatureOptions().parameters == FeatureParameters()


def test_parameters() -> None:
    options = FeatureOptions(mu=10.0, k1=2.0, b=0.1, profile="galago", max_clique=4, fb_docs=3, fb_terms=7)
    expected = FeatureParameters(mu=10.0, k1=2.0, b=0.1, profile="galago", max_clique=4, fb_docs=3, fb_terms=7)
    assert options.parameters == expected


def test_a_pool_then_named_features() -> None:
    prior = parse_features("prior:p.tsv")
    assert FeatureOptions().specs == candidate_pool()
    assert FeatureOptions(pool="sd").specs == candidate_pool(["SD"])
    assert FeatureOptions(features="prior:p.tsv").specs == prior
    assert FeatureOptions(features="prior:p.tsv", pool="fd").specs == (*candidate_pool(["FD"]), *prior)
    with pytest.raises(ParameterError, match="FI/term/LM"):
        _ = FeatureOptions(features="FI/term/LM", pool="sd").specs


def test_reading(tmp_path: Path) -> None:
    topics, run, qrels = tmp_path / "t.tsv", tmp_path / "r.run", tmp_path / "q.txt"
    topics.write_text("1\ttea\n2\tcoffee\n")
    run.write_text("1 Q0 d1 1 2.0 x\n2 Q0 d2 1 1.0 x\n")
    qrels.write_text("2 0 d2 1\n")
    reading = Reading()
    assert reading.topics(topics) == {"1": "tea", "2": "coffee"}
    assert [ranking.query for ranking in reading.run(run, topics).rankings] == ["tea", "coffee"]
    assert [ranking.query for ranking in reading.run(run, None).rankings] == ["", ""]
    assert reading.qrels(qrels, reading.run(run, None)) == {"2": {"d2": 1}}
    qrels.write_text("3 0 d2 1\n")
    with pytest.raises(FormatError, match=r"q\.txt: no query in common with the run, whose first query is '1'"):
        reading.qrels(qrels, reading.run(run, None))


@pytest.mark.parametrize("jobs", ["0", "-2", "1025", str(10**12), "1.5", "9" * 5000])
def test_numbers_of_threads(refused: Refused, jobs: str) -> None:
    told = refused("search", "--index", "i", "--topics", "t", "--out", "o", f"--jobs={jobs}")
    assert "--jobs" in told
    assert len(told) < 400
