"""The study, run once for all test modules."""

from types import SimpleNamespace

import pytest

from greylag.rankers import RankingModel
from greylag.studies import Context, load
from greylag.studies.runner import run_study
from greylag_papers.metzler_2007.study import open_first_stage
from tests.greylag.studies import samples as studies
from tests.greylag_papers.metzler_2007.samples import write_config


@pytest.fixture(autouse=True)
def own_data(monkeypatch):
    """Experiment files name their own data."""
    monkeypatch.delenv("GREYLAG_DATA", raising=False)


@pytest.fixture(scope="session")
def done(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GREYLAG_DATA", raising=False)
        folder = tmp_path_factory.mktemp("mrf")
        out = folder / "out"
        study, settings = load(write_config(folder))
        finished = run_study(study, settings, out)

    def models(tag):
        return [RankingModel.load(out / "models" / tag / f"fold-{fold}.json") for fold in (1, 2, 3)]

    opened = open_first_stage(settings, Context(out))
    return SimpleNamespace(
        settings=settings, opened=opened, finished=finished, out=out, results=studies.results(out), models=models
    )
