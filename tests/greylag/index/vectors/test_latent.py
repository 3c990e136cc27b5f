"""Latent semantic analysis, against the dense decomposition, and its feature and stages."""

import gc
import os
import random
import weakref
from dataclasses import replace

import numpy as np
import pytest

from greylag.base import Ranking
from greylag.base.runtime.cache import Cache
from greylag.features.extract import FeatureExtractor
from greylag.features.spelling import parse_features
from greylag.features.stage_registry import StageStep
from greylag.index import ArrayVectors, LatentVectors, TfidfVectors
from greylag.index.positional import PositionalIndex
from greylag.index.vectors import latent
from tests.greylag.index.samples import make_index
from tests.processes import python

RNG = random.Random(3)
WORDS = [f"{first}{last}" for first in "bdfgk" for last in ("ar", "el", "im", "on", "ut")]
TEXTS = {f"d{i:03d}": " ".join(RNG.choices(WORDS[(5 * i) % 20 :], k=12)) for i in range(40)} | {"empty": ""}
QUERY = "bar del del fim nowhere"
RANKING = Ranking("q", QUERY, (*TEXTS, "elsewhere"), np.linspace(1, 0, len(TEXTS) + 1))


@pytest.fixture
def index(monkeypatch):
    """An index whose vectors have ten of its 25 dimensions."""
    monkeypatch.setattr(latent, "DIMENSIONS", 10)
    return PositionalIndex.from_texts(TEXTS)


def by_definition(index, docids, sample):
    """Cosines with the query, by the dense decomposition of the sample's vectors, of terms that two of them have."""
    vectors = TfidfVectors(index)
    rows = vectors.documents(sample).toarray()
    terms = (rows > 0).sum(axis=0) > 1
    right = np.linalg.svd(rows[:, terms])[2][: latent.DIMENSIONS].T
    documents, query = (x.toarray()[:, terms] @ right for x in (vectors.documents(docids), vectors.query("", QUERY)))
    lengths = np.linalg.norm(documents, axis=1) * np.linalg.norm(query)
    return np.divide((documents @ query.T).ravel(), lengths, out=np.zeros(len(docids)), where=lengths > 0)


def test_cosines_are_those_of_the_dense_decomposition(index):
    values = FeatureExtractor(index, parse_features("latent"))(RANKING)[:-1, 0]
    expected = by_definition(index, [*TEXTS], [*TEXTS])
    np.testing.assert_allclose(values, expected, atol=1e-12)
    assert values[-1] == 0
    assert np.ptp(values) > 0.1


def test_documents_outside_the_sample_are_folded_in(index, monkeypatch):
    monkeypatch.setattr(latent, "SAMPLE", 25)
    drawn = np.sort(np.random.default_rng(0).permutation(len(TEXTS))[:25])
    sample = [sorted(TEXTS)[number] for number in drawn]
    values = FeatureExtractor(index, parse_features("latent"))(RANKING)[:-1, 0]
    np.testing.assert_allclose(values, by_definition(index, [*TEXTS], sample), atol=1e-12)


def test_the_order_of_documents_does_not_change_a_bit(index):
    backward = PositionalIndex.from_texts(dict(reversed(TEXTS.items())))
    first, second = (LatentVectors(one).documents([*TEXTS]) for one in (index, backward))
    assert first.tobytes() == second.tobytes()


def test_vectors_are_kept_beside_the_index(tmp_path, monkeypatch):
    folder = make_index(tmp_path, TEXTS)
    index = PositionalIndex.from_lucene(folder)
    first = LatentVectors(index).documents(["d001"])
    monkeypatch.setattr(latent, "decompose", None)
    assert LatentVectors(PositionalIndex.from_lucene(folder)).documents(["d001"]).tobytes() == first.tobytes()
    assert Cache(index.folder / "latent.sqlite").path.exists()


def test_an_index_that_nobody_has_is_let_go():
    """A service that swaps its passages would otherwise keep all that it ever had, or the last four."""
    index = PositionalIndex.from_texts(TEXTS)
    LatentVectors(index).documents(["d001"])
    seen = weakref.ref(index)
    del index
    gc.collect()
    assert seen() is None


@pytest.mark.parametrize("texts", [[], [""], ["heat"], ["heat", "cold"], ["heat", "heat"], ["heat wave"] * 3])
def test_small_collections_have_few_dimensions(texts):
    texts = {f"d{n}": text for n, text in enumerate(texts)}
    vectors = LatentVectors(PositionalIndex.from_texts(texts))
    documents, query = vectors.documents([*texts]), vectors.query("q", "heat wave")
    assert len(documents) == len(texts)
    assert query.shape == (1, documents.shape[1])
    assert np.isfinite(documents).all()


@pytest.mark.parametrize("name", ["mmr", "msd", "dpp", "manifold"])
def test_stages_rank_by_latent_vectors(name, index):
    vectors = LatentVectors(index)
    array = ArrayVectors([*TEXTS], vectors.documents([*TEXTS]), {"q": vectors.query("q", QUERY)[0]})
    stage = StageStep.parse(f"{name}(latent=true)")
    kind = stage.stage
    expected = kind(vectors=array)(RANKING)
    assert stage.make(index)(RANKING) == expected
    assert stage.make(index)(RANKING) != StageStep.parse(name).make(index)(RANKING)


DEGENERATE = {
    "pairs": [f"title {i // 2} thing{i // 2}" for i in range(500)],
    "blocks": [f"w{i // 2:04d} v{i // 2:04d}" for i in range(700)],
    "templates": [f"the price of item{i % 40} in shop{i % 7} is {i}" for i in range(600)],
    "rank three": ["alpha beta", "beta gamma", "gamma delta"] * 120 + [f"only{i}" for i in range(300)],
    "rank of 50": [" ".join(f"t{i % 50}x{k} t{i * 7 % 49 + 1}x{k}" for k in range(6)) for i in range(500)],
    "ties beyond 60": [f"w{i // 2:04d} v{i // 2:04d}" for i in range(500)]
    + [" ".join(f"u{(i * k) % 61}" for k in range(1, 9)) for i in range(300)],
    "one text": ["same words in all"] * 300,
    "empty": [""] * 250,
    "tiny": ["cat", "cat dog"],
}
PROGRAM = """
import sys
from greylag import rerank
from tests.greylag.index.vectors.test_latent import DEGENERATE
for texts in DEGENERATE.values():
    for query in ("thing3 thing7 title", "w0003 v0009 item3 shop5 price", "alpha delta same cat t1x2 u7"):
        print([(passage.position, passage.score.hex()) for passage in rerank(query, texts)])
"""


@pytest.mark.long
def test_the_general_model_ranks_degenerate_collections_alike_in_every_process():
    """Nothing is drawn from the operating system, and no order depends on hashes or on the number of threads."""
    printed = set()
    for seed, threads in (("0", "1"), ("1", "2"), ("random", "2")):
        of_threads = {"OPENBLAS_NUM_THREADS": threads, "NUMBA_NUM_THREADS": threads}
        environment = {**os.environ, "PYTHONHASHSEED": seed, **of_threads}
        printed.add(python("-c", PROGRAM, check=True, env=environment).stdout)
    assert len(printed) == 1
    assert len(printed.pop().splitlines()) == 3 * len(DEGENERATE)


@pytest.mark.parametrize("name", ["pairs", "blocks", "templates", "rank three", "rank of 50", "ties beyond 60"])
def test_dimensions_of_degenerate_collections_are_those_of_the_dense_decomposition(name):
    """Projections, which do not depend on the basis that a decomposition gives of equal singular values."""
    index = PositionalIndex.from_texts({f"{i:03d}": text for i, text in enumerate(DEGENERATE[name])})
    terms, right = latent.decompose(index)
    rows = TfidfVectors(index).documents([f"{i:03d}" for i in range(len(DEGENERATE[name]))]).toarray()[:, terms]
    _, values, of_all = np.linalg.svd(rows, full_matrices=False)
    limit = values[latent.DIMENSIONS] * (1 + 1e-8) if len(values) > latent.DIMENSIONS else 0.0
    expected = of_all[: latent.DIMENSIONS][values[: latent.DIMENSIONS] > max(limit, 1e-9 * values[0])].T
    assert right.shape == expected.shape
    np.testing.assert_allclose(right @ right.T, expected @ expected.T, atol=1e-8)


def _planted(terms, right):
    """Rows that have a right checksum and are none of `decompose`."""
    spoilt = right.copy()
    spoilt[0, 0] = np.nan
    far, negative = terms.copy(), terms.copy()
    far[-1], negative[0] = 1 << 40, -1
    twice = terms.copy()
    twice[1] = twice[0]
    return {
        "nothing": [],
        "number": 5,
        "few rows": [terms, right[:1]],
        "no columns": [terms, right[:, :0]],
        "NaN": [terms, spoilt],
        "huge": [terms, right * 1e300],
        "far term": [far, right],
        "negative term": [negative, right],
        "a term twice": [twice, right],
        "descending": [terms[::-1].copy(), right],
        "int32": [terms.astype(np.int32), right],
        "without terms": [terms[:0], np.full((1, 1), np.nan)],
    }


def test_planted_projections_are_computed_again(tmp_path, monkeypatch):
    index = replace(PositionalIndex.from_texts(TEXTS), folder=tmp_path)
    expected = LatentVectors(index).documents([*TEXTS]).tobytes()
    loaded = _planted(*latent.decompose(index))
    for name, row in loaded.items():
        with monkeypatch.context() as patch:
            patch.setattr(Cache, "load", lambda self, key, row=row: row)
            assert LatentVectors(replace(index)).documents([*TEXTS]).tobytes() == expected, name
    # The one that was kept is used.
    monkeypatch.setattr(latent, "decompose", None)
    assert LatentVectors(replace(index)).documents([*TEXTS]).tobytes() == expected


def test_projections_of_other_versions_are_not_used(tmp_path, monkeypatch):
    index = replace(PositionalIndex.from_texts(TEXTS), folder=tmp_path)
    terms, right = latent.decompose(index)
    Cache(tmp_path / "latent.sqlite").save(
        f"{index.fingerprint} {latent.DIMENSIONS} {latent.SAMPLE}".encode(), [terms, right[:, :1].copy()]
    )
    assert LatentVectors(index).documents(["d001"]).shape == (1, right.shape[1])
