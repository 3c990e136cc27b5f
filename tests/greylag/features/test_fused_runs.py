"""Features of fused runs: values, spellings, and what is refused."""

import numpy as np
import pytest

from greylag.base import FormatError, Ranking, Run
from greylag.evaluation import fuse_runs, read_run, write_run
from greylag.evaluation.fusion import FUSIONS
from greylag.features.extract import FeatureExtractor
from greylag.features.fused_runs import FusedRuns
from greylag.features.spelling import parse_feature, parse_features
from tests.refusals import refuses

ONE = Run((Ranking("1", "", ("a", "b"), [2.0, 1.0]), Ranking("2", "", ("e",), [1.0])), "one")
TWO = Run((Ranking("1", "", ("c", "b", "d"), [9.0, 8.0, 5.0]),), "two")
POOL = Ranking("1", "", ("z", "d", "c", "b", "a"), np.arange(5.0, 0.0, -1.0))


@pytest.fixture
def files(tmp_path):
    for run in (ONE, TWO):
        write_run(run, tmp_path / run.tag)
    return [str(tmp_path / "one"), str(tmp_path / "two")]


@pytest.mark.parametrize("method", FUSIONS)
def test_values_are_the_scores_of_the_fusion(method, files):
    feature = parse_feature(f"fused:{method}({','.join(files)})")
    fused = fuse_runs([read_run(file) for file in files], method)["1"]
    expected = dict(zip(fused.docids, fused.scores.tolist(), strict=True))
    extractor = FeatureExtractor(None, (feature,))
    assert extractor(POOL)[:, 0].tolist() == [expected.get(docid, 0.0) for docid in POOL.docids]
    assert extractor(Ranking("3", "", ("a",), [1.0])).tolist() == [[0.0]]  # a query that neither has


def test_documents_that_no_run_has_are_reported(files, caplog):
    feature = FusedRuns("rrf", tuple(files))
    FeatureExtractor(None, (feature,))(POOL)
    FeatureExtractor(None, (feature,))(Ranking("3", "", ("a", "b"), [2.0, 1.0]))  # of another run's topics
    for counts, message in zip(("1 of 5", "2 of 2"), caplog.messages, strict=True):
        assert counts in message
        assert f"not in {', '.join(files)}" in message
        assert f"feature {feature} is 0 for them" in message


def test_the_columns_of_one_run_by_hand(files):
    features = parse_features(f"fused:combsum({files[1]}),fused:rrf({files[1]})")
    expected = [[0, 0], [0, 1 / 63], [1, 1 / 61], [0.75, 1 / 62], [0, 0]]
    np.testing.assert_allclose(FeatureExtractor(None, features)(POOL), expected, rtol=1e-15)


def test_files_are_replaced(files):
    feature = FusedRuns("rrf", ("x.run", "y.run"))
    assert feature.files() == ["x.run", "y.run"]
    assert feature.place_files(dict(zip(feature.runs, files, strict=True)).__getitem__).runs == tuple(files)
    refuses(lambda: FeatureExtractor(None, (feature,))(POOL), FormatError, "x.run")
