"""Which packages that are slow to import each command loads."""

import shutil

import pytest

from greylag import PositionalIndex, read_run
from greylag.features.spelling import parse_features
from greylag.rankers import RankingModel
from greylag.recipes import GeneralRanker
from tests.processes import python
from tests.test_structure import HEAVY

LOADED = (
    "import sys; from greylag.cli import main; sys.argv = ['greylag', *sys.argv[1:]]\n"
    "try: main()\nfinally: print(*sys.modules, file=open('loaded', 'w'))"
)
GIVEN = "--index index --topics topics.tsv"
COMPILED = {"numba", "scipy"}
SPARSE = COMPILED | {"scipy.linalg", "scipy.sparse"}
SLOW = HEAVY | {"asyncio", "jinja2", "joblib", "numpy.f2py.crackfortran", "scipy.linalg", "scipy.sparse", "scipy.stats"}
MAY_LOAD = {
    "evaluate --qrels qrels.txt bm25.run general.run": set[str](),
    "evaluate --qrels qrels.txt bm25.run --format html": {"jinja2"},
    "fuse --run bm25.run --run general.run --out out.run": set(),
    f"explain sd.json {GIVEN} --run bm25.run --qid 1 --docid demo-013": COMPILED,
    f"search {GIVEN} --out out.run": {"jnius"},
    f"rerank {GIVEN} --run bm25.run --out out.run": COMPILED,
    f"rerank {GIVEN} --run bm25.run --model sd.json --out out.run": COMPILED,
    f"rerank {GIVEN} --run bm25.run --stage mmr --out out.run": SPARSE,
    f"rerank {GIVEN} --run bm25.run --stage manifold --out out.run": SPARSE,
    f"train {GIVEN} --run bm25.run --qrels qrels.txt --model mrf --out model.json": SPARSE,
}
"""Beside NumPy, which all of them need: scikit-learn and pandas none, Java only what searches."""


@pytest.fixture(scope="module")
def folder(made):
    """The files of `made`, a second run and a model; the general model has ranked, so that words are counted."""
    index = PositionalIndex.from_lucene(made / "index")
    GeneralRanker(index)(read_run(made / "bm25.run", made / "topics.tsv")["1"])
    model = RankingModel(parse_features("SD/ordered/LM-O-4,FI/term/LM"), (0.5, 0.5)).for_collection(index)
    model.save(made / "sd.json")
    shutil.copy(made / "bm25.run", made / "general.run")
    return made


@pytest.mark.parametrize("line", MAY_LOAD)
def test_a_command_loads_only_what_it_needs(line, folder):
    python("-c", LOADED, *line.split(), cwd=folder, check=True)
    loaded = set((folder / "loaded").read_text().split())
    assert SLOW & loaded - {"numpy"} <= MAY_LOAD[line]
