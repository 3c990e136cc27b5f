"""Which packages that are slow to import each command loads."""

from pathlib import Path

import pytest

from tests.golden import Writer
from tests.processes import python
from tests.test_structure import HEAVY

LOADED = (
    "import sys; from greylag.cli import main; sys.argv = ['greylag', *sys.argv[1:]]\n"
    "try: main()\nfinally: print(*sys.modules, file=open('loaded', 'w'))"
)
GIVEN = "--index index --topics topics.tsv"
COMPILED = {"numba", "scipy"}
SPARSE = COMPILED | {"scipy.linalg", "scipy.sparse"}
SLOW = HEAVY | {"jinja2", "scipy.linalg", "scipy.sparse", "scipy.stats"}
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
"""Beside NumPy and pydantic, which all of them need: scikit-learn and pandas none, Java only what searches."""


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the demonstration's index, runs and a model."""
    writer = Writer(tmp_path_factory.mktemp("loading"))
    for name in ("general.run", "sd.json"):  # the first has the words, which are read through Java once, too
        writer.write(name)
    return writer.folder


@pytest.mark.parametrize("line", MAY_LOAD)
def test_a_command_loads_only_what_it_needs(line: str, made: Path) -> None:
    python("-c", LOADED, *line.split(), cwd=made, check=True)
    loaded = set((made / "loaded").read_text().split())
    assert SLOW & loaded - {"numpy", "pydantic"} <= MAY_LOAD[line]
