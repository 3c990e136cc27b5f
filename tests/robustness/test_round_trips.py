"""Whatever a writer accepts, its reader reads back."""

from contextlib import suppress

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from greylag.base import ParameterError, Ranking, Run
from greylag.diversity import PRESETS
from greylag.diversity.model import DiversityModel
from greylag.evaluation import read_run, write_run
from greylag.features.spec import candidate_pool
from greylag.learning.letor import read_letor, write_features
from greylag.learning.model_files import Provenance
from greylag.rankers.model import RankingModel

TEXT = st.text(max_size=12)  # any Unicode but surrogates, with NUL, white space and control characters
FLOATS = st.floats(allow_nan=False, allow_infinity=False)
quick = settings(deadline=None, max_examples=60, database=None)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    return tmp_path_factory.mktemp("round-trips") / "file"


@quick
@given(tag=TEXT, docids=st.lists(TEXT, min_size=1, max_size=6, unique=True), data=st.data())
def test_runs(path, tag, docids, data):
    n = len(docids)
    scores = sorted(data.draw(st.lists(st.floats(-1e30, 1e30), min_size=n, max_size=n)), reverse=True)
    with suppress(ParameterError):
        write_run(Run((Ranking("1", "", tuple(docids), np.array(scores)),), tag), path)
        back = read_run(path)
        assert (back.tag, back["1"].docids) == (tag, tuple(docids))
        np.testing.assert_allclose(back["1"].scores, scores, rtol=1e-6, atol=1e-40)
        write_run(back, path.with_name("again"))
        assert path.with_name("again").read_bytes() == path.read_bytes()


@quick
@given(qid=TEXT, name=TEXT, docids=st.lists(TEXT, min_size=1, max_size=5, unique=True), data=st.data())
def test_features(path, qid, name, docids, data):
    number = st.floats(-1e100, 1e100)  # what training data may have
    values = data.draw(st.lists(st.tuples(number, number), min_size=len(docids), max_size=len(docids)))
    rows = [(Ranking(qid, "", tuple(docids), np.zeros(len(docids))), np.array(values))]
    with suppress(ParameterError):
        write_features(path, [name, "b"], rows)
        back = read_letor(path)
        assert (back.qids, back.docids, back.names) == ((qid,), tuple(docids), (name, "b"))
        np.testing.assert_array_equal(back.features, rows[0][1])


FREE_NAMES = TEXT.filter(lambda name: name not in Provenance.__annotations__)


@quick
@given(
    weights=st.lists(FLOATS, min_size=3, max_size=3),
    provenance=st.dictionaries(FREE_NAMES, TEXT | FLOATS | st.integers(-(10**18), 10**18) | st.lists(TEXT)),
)
def test_linear_models(path, weights, provenance):
    model = RankingModel(candidate_pool()[:3], tuple(weights), provenance=provenance)
    model.save(path)
    assert RankingModel.load(path) == model


@quick
@given(seed=st.integers(0, 10**6), members=st.integers(1, 3), k=st.integers(1, 50), titles=st.booleans())
def test_diversity_models(path, *, seed, members, k, titles):
    features = next(iter(PRESETS.values()))
    weights = np.random.default_rng(seed).normal(size=(members, features.n_features)).tolist()
    model = DiversityModel(features, tuple(map(tuple, weights)), k=k, titles=titles)
    model.save(path)
    assert DiversityModel.load(path) == model
