"""The study, run once for all test modules."""

import pytest

from greylag.studies import Context, load
from greylag.studies.runner import run_study
from greylag_papers.metzler_2007.learning import Settings
from greylag_papers.metzler_2007.study import open_first_stage
from tests.greylag.studies import samples as studies
from tests.greylag_papers.metzler_2007.samples import Done, write_config


@pytest.fixture(autouse=True)
def own_data(monkeypatch):
    """Experiment files name their own data."""
    monkeypatch.delenv("GREYLAG_DATA", raising=False)


@pytest.fixture(scope="session")
def done(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv("GREYLAG_DATA", raising=False)
        folder = tmp_path_factory.mktemp("mrf")
        study, settings = load(write_config(folder))
        finished = run_study(study, settings, folder / "out")
    assert isinstance(settings, Settings)
    opened = open_first_stage(settings, Context(folder / "out"))
    return Done(settings, opened, finished, folder / "out", studies.results(folder / "out"))
