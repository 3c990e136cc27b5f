"""Features from the incoming ranking and from other runs."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from greylag.errors import FormatError, ParameterError
from greylag.features.evidence import RunScore
from greylag.features.extract import FeatureExtractor
from greylag.features.spelling import parse_features
from greylag.index.positional import PositionalIndex
from greylag.ltr import LinearModel, MRFRanker
from greylag.ranking import Ranking, Run
from greylag.trec import write_run

INDEX = PositionalIndex.from_texts({"a": "cat", "b": "dog"})
RANKING = Ranking("q", "cat", ("b", "x", "a"), [7.0, 5.0, 5.0])


def test_scores_and_ranks_of_the_incoming_ranking(caplog: pytest.LogCaptureFixture) -> None:
    values = FeatureExtractor(INDEX, parse_features("score,reciprocal-rank,score@minmax"))(RANKING)
    assert values.T.tolist() == [[7.0, 5.0, 5.0], [1.0, 1 / 2, 1 / 3], [1.0, 0.0, 0.0]]
    assert not caplog.records, "x is not in the index, but these features do not need it"


def test_scores_of_another_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "dense.run"
    write_run(Run((Ranking("q", "", ("a", "b", "c"), [0.75, -0.5, -2.0]),)), path)
    extractor = FeatureExtractor(INDEX, parse_features(f"run:{path},run:{path}@minmax"))
    assert extractor(RANKING).T.tolist() == [[-0.5, -0.5, 0.75], [0.0, 0.0, 1.0]], "x has the least value of a and b"
    other = extractor(Ranking("p", "cat", ("a", "b"), np.zeros(2)))
    assert other.tolist() == [[0.0, 0.0], [0.0, 0.0]]
    assert caplog.messages == [
        f"query q: 1 of 3 documents of 1 queries are not in {path}, such as x (query q, with 1 of 3): "
        f"feature run:{path} gives them its least value",
        f"query p: 2 of 2 documents of 1 queries are of queries not in {path}, such as a (query p, with 2 of 2): "
        f"feature run:{path} is the same for all documents",
    ]


def test_one_warning_a_run(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    path = tmp_path / "dense.run"
    write_run(Run((Ranking("q1", "", ("a",), [0.75]), Ranking("q2", "", ("b",), [0.75]))), path)
    model = LinearModel((RunScore(str(path)),), (1.0,))
    rankings = [Ranking(f"q{n}", "cat", ("a", "b"), np.zeros(2)) for n in range(4)]
    MRFRanker(model, INDEX).run(rankings, n_jobs=2)
    assert len(caplog.messages) == 2, "one for documents, one for queries"
    assert "2 of 4 documents of 2 queries are not in" in caplog.text
    assert "4 of 4 documents of 2 queries are of queries not in" in caplog.text


def test_files_that_are_not_runs(tmp_path: Path) -> None:
    extractor = FeatureExtractor(INDEX, (RunScore(str(tmp_path / "none.run")),))
    with pytest.raises(FormatError, match=r"none\.run"):
        extractor(RANKING)
    for name in ("", "dense@z"):
        with pytest.raises(ParameterError, match="cannot name a run here; rename the file"):
            RunScore(name)
