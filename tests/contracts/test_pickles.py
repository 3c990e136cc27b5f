"""The contract of pickles: a step is sent as its parameters, and what is in a folder as its name, in at most 100 kB."""

import inspect
import pickle
from importlib import import_module
from pathlib import Path

import joblib
import numpy as np
import pytest

import greylag
from greylag.base import Pipeline, Query, Ranking, Run
from greylag.base.pipeline import Composable, Source
from greylag.diversity import MMR, PRESETS, CandidateMaker, DiversityModel, DiversityStage, VectorStage
from greylag.evaluation import PooledSources
from greylag.evaluation.fusion import GivenRun
from greylag.features.extract import FeatureExtractor
from greylag.features.spelling import parse_features
from greylag.index import (
    BM25,
    ArrayVectors,
    LuceneIndex,
    PositionalIndex,
    QueryLikelihood,
    RM3Search,
    VectorSearch,
    build_index,
)
from greylag.passages import PyseriniSource, PyTerrierSource, PyTerrierStage
from greylag.rankers import ModelRanker, RankingModel
from greylag.rankers.manifold.stage import ManifoldRanker
from greylag.recipes import HybridSearch
from tests.contracts.test_stages import MAKERS, STAGES
from tests.greylag.diversity import samples
from tests.test_structure import public_names

SMALL = 100_000  # bytes

DOCS = Path(greylag.__file__).parent / "demo" / "docs.jsonl"
FEATURES = parse_features("FI/term/BM25,SD/ordered/LM-O-4,FD/unordered/LM-U-8,score@z")
QUERY = Query("q", "wind power for houses")


class Folder:
    """An index in a folder, and what is made over it."""

    def __init__(self, path):
        build_index(DOCS, path)
        self.lucene = LuceneIndex(path)
        self.index = PositionalIndex.from_lucene(self.lucene)
        self.exported = sum(file.stat().st_size for file in Path(f"{path}.greylag").rglob("*") if file.is_file())
        self.ranking = self.lucene.bm25(30)(QUERY)
        self.model = RankingModel(FEATURES, (0.4, 0.3, 0.2, 0.1)).for_collection(self.index)

    @property
    def extractor(self):
        return FeatureExtractor(self.index, FEATURES)

    @property
    def vectors(self):
        docids = self.index.docids_of(np.arange(self.index.n_documents))
        rows = np.random.default_rng(0).standard_normal((len(docids) + 1, 4))
        return ArrayVectors(docids, rows[1:], {QUERY.qid: rows[0]})


SAMPLES = {
    BM25: lambda f: f.lucene.bm25(30),
    QueryLikelihood: lambda f: f.lucene.ql(30),
    RM3Search: lambda f: RM3Search(f.lucene.bm25(30)),
    PooledSources: lambda f: PooledSources((f.lucene.bm25(30), f.lucene.ql(30))),
    VectorSearch: lambda f: VectorSearch(f.vectors, f.index, k=10),
    HybridSearch: lambda f: HybridSearch(f.index, f.vectors, k=10),
    GivenRun: lambda f: GivenRun(Run((f.ranking,))),
    Pipeline: lambda f: f.lucene.bm25(30) >> ModelRanker(f.model, f.index) >> ManifoldRanker(f.index) >> MMR(f.index),
    **{type(STAGES[name]): lambda f, make=make: make(f.index) for name, make in MAKERS.items() if "dense" not in name},
}
FOREIGN = {PyseriniSource, PyTerrierSource, PyTerrierStage}
"""Steps around objects of other packages, which pickle as these packages say, or are refused."""


def steps():
    """All public classes of sources and stages."""
    public = [getattr(import_module(module), name) for module, _, name in (n.rpartition(".") for n in public_names())]
    classes = {kind for kind in public if inspect.isclass(kind) and issubclass(kind, Composable)}
    return {kind for kind in classes if not inspect.isabstract(kind)} - {DiversityStage, VectorStage}  # bases


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return Folder(tmp_path_factory.mktemp("pickles") / "index")


def test_every_public_step_has_a_sample():
    assert steps() <= set(SAMPLES) | FOREIGN


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: kind.__name__)
def test_steps_pickle_by_reference(kind, folder):
    step = SAMPLES[kind](folder)
    assert type(step) is kind
    new = pickle.dumps(step)
    given = QUERY if isinstance(step, Source) or kind is Pipeline else folder.ranking
    expected = step(given)
    used = pickle.dumps(step)  # what it has opened and cached does not go with it
    assert used == new
    assert len(new) <= SMALL < folder.exported
    assert pickle.loads(new)(given) == expected


def test_extractors_models_and_makers_pickle_by_reference(folder):
    extractor, make = folder.extractor, CandidateMaker(folder.index, PRESETS["svmdiv"])
    expected = extractor(folder.ranking)
    assert np.array_equal(pickle.loads(pickle.dumps(extractor))(folder.ranking), expected)
    candidates = make(folder.ranking)
    again = pickle.loads(pickle.dumps(make))(folder.ranking)
    assert (again.coverage != candidates.coverage).nnz == 0
    for model in (folder.model, samples.MODEL, samples.ENSEMBLE):
        assert pickle.loads(pickle.dumps(model)) == model
        assert isinstance(model, RankingModel | DiversityModel)
    for value in (extractor, make, folder.model, folder.lucene, folder.index, samples.MODEL):
        assert len(pickle.dumps(value)) <= SMALL


def test_values_that_are_given_go_apart(folder):
    """Runs, titles, judgements and lists of topics have no file to name; see `greylag.base.runtime.parallel`."""
    run = Run(tuple(Ranking(str(n), "wind", folder.ranking.docids, folder.ranking.scores) for n in range(600)))
    union = PooledSources((GivenRun(run), folder.lucene.bm25(30)))
    assert len(pickle.dumps(union)) > SMALL
    pipeline = union >> ModelRanker(folder.model, folder.index)
    once, twice = pickle.loads(pickle.dumps(pipeline)), pickle.loads(pickle.dumps(pipeline))
    assert once.steps[1].index is twice.steps[1].index
    topics = {str(n): "wind power" for n in range(40)}
    expected = pipeline.run(topics)
    with joblib.parallel_config("loky", n_jobs=2):
        assert pipeline.run(topics) == expected
