"""Pages on writing stages and learners: what they build is installed in a folder, and used on the command line."""

import shutil
import sys

import pytest

from greylag.evaluation import read_run
from greylag.rankers import RankingModel
from tests.docs import DOCS, lay_out, run_page
from tests.processes import python

MODULES = "my_stages", "my_diversifiers", "my_learners"


@pytest.fixture
def site(indexed, tmp_path, monkeypatch):
    """A folder that packages are installed in, below the working folder, which has an index and BM25's run."""
    lay_out(tmp_path)
    shutil.copytree(indexed, tmp_path, dirs_exist_ok=True)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("GREYLAG_DATA", raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    folder = tmp_path / "site"
    # pip reads its options from these; isolation is "no" by a 0.
    for name, value in {"TARGET": folder, "NO_DEPS": 1, "NO_BUILD_ISOLATION": 0, "NO_INDEX": 1}.items():
        monkeypatch.setenv(f"PIP_{name}", str(value))
    monkeypatch.setenv("PYTHONPATH", str(folder))
    yield folder
    for name in MODULES:
        sys.modules.pop(name, None)


@pytest.mark.long
def test_a_distribution_with_stages(site, tmp_path):
    run_page(DOCS / "tutorials" / "stage.md", here=False)
    assert list(site.glob("my_stages-1.0.dist-info"))
    assert read_run("named.run").rankings == read_run("own.run").rankings != read_run("bm25.run").rankings

    def greylag(*words):
        return python("-m", "greylag", "rerank", "--run", "bm25.run", "--out", "new.run", *words, cwd=site)

    for name in ("bm25.run", "index"):
        (site / name).symlink_to(tmp_path / name)
    refused = greylag("--index", "index", "--stage", "interpolated")
    assert (refused.returncode, refused.stdout, refused.stderr.count("\n")) == (2, "", 1)
    assert "give --topics: interpolated" in refused.stderr


@pytest.mark.long
def test_a_diversifier(site):
    run_page(DOCS / "how-to" / "diversifier.md", here=False)
    spread = read_run("spread.run")
    assert spread.tag.lower().endswith("spread")
    assert spread.rankings != read_run("bm25.run").rankings


@pytest.mark.long
def test_a_distribution_with_a_learner(site):
    run_page(DOCS / "how-to" / "learner.md", here=False)
    assert list(site.glob("my_learners-1.0.dist-info"))
    model = RankingModel.load("ridge.json")
    assert len(model.weights) == len(model.features) > 20
    assert read_run("ridge.run").rankings != read_run("bm25.run").rankings
