"""The experiment files of the studies, and the scores that they expect."""

import pytest

from greylag.studies import deviations, load
from greylag.studies.config import shipped_file, shipped_files
from greylag.studies.runner import run_study
from greylag_papers.schiegg_2016 import images, scenes, subsets
from greylag_papers.schiegg_2016.trials import METHODS
from greylag_papers.yue_joachims_2008.collection import COMPARED, RELEVANT_ONLY
from greylag_papers.yue_joachims_2008.collection import Settings as CollectionSettings
from tests.greylag_papers.metzler_2007.samples import SYSTEMS as MRF_SYSTEMS

SYSTEMS = {
    "cssvm_categories": METHODS,
    "cssvm_images": images.METHODS,
    "cssvm_scenes": (scenes.UNARIES, scenes.LINEAR, *METHODS),
    "cssvm_subsets_collection": subsets.SHOWN,
    "cssvm_subsets_synthetic": subsets.SHOWN,
}
JUDGING = {"p", "share", "of"}  # rows that claims are judged by, which are not systems
MEASURED = [
    "reuters21578.mmr", "rec_newsgroups.mmr", "rec_newsgroups.manifold", "usps.manifold",
    "ambient.svmdiv", "div400.svmdiv",
]  # fmt: skip


@pytest.mark.parametrize("name", [name for name in shipped_files() if name != "demo"])
def test_expected_systems_are_those_of_the_study(name):
    _, settings = load(shipped_file(name))
    systems = {row for row, values in settings.expected.items() if not JUDGING & values.keys() and ", " not in row}
    if settings.study == "mrf":
        assert systems <= set(MRF_SYSTEMS)
    elif settings.study in SYSTEMS:
        assert systems in (set(SYSTEMS[settings.study]), set())  # all or, before they are measured, none
    elif isinstance(settings, CollectionSettings):
        assert systems == {*COMPARED, *settings.spaces}
        assert all(set(settings.expected[name]) == set(RELEVANT_ONLY) for name in systems)


@pytest.mark.slow
@pytest.mark.parametrize("name", MEASURED)
def test_expected_scores(data, tmp_path, monkeypatch, name):
    collection = name.partition(".")[0].replace("div400", "div400_dev")
    monkeypatch.setenv("GREYLAG_DATA", str(data(collection).parent))
    study, settings = load(shipped_file(name))
    assert settings.expected
    assert deviations(run_study(study, settings, tmp_path, n_jobs=2).scores, settings.expected) == []
