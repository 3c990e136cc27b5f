from greylag.studies.runner import run_study
from greylag_papers.schiegg_2016.categories import STUDY, Settings, fold_tasks
from greylag_papers.schiegg_2016.synthetic_images import SyntheticImages
from greylag_papers.schiegg_2016.trials import METHODS
from tests.greylag_papers.schiegg_2016.samples import ONE


def test_each_fold_is_trained_on_once_validated_on_twice_and_tested_twice():
    tasks = fold_tasks(SyntheticImages(n_categories=3, n_images=4).draw(), 1)
    uses = {}
    for task in tasks:
        for use, part in (("training", task.training), ("validation", task.validation), ("test", task.test.values())):
            for x, _ in part:
                uses.setdefault(id(x), []).append(use)
    assert len(tasks) == 5
    assert len(uses) == 12
    assert all(sorted(found) == ["test", "test", "training", "validation", "validation"] for found in uses.values())
    assert sorted({name for task in tasks for name in task.test}) == [
        f"{c}.{i}" for c in (1, 2, 3) for i in (1, 2, 3, 4)
    ]
    assert [[*task.test] for task in tasks] != [[*t.test] for t in fold_tasks(SyntheticImages(3, 4).draw(), 2)]


def test_study(tmp_path):
    settings = Settings(name="s", study="cssvm_categories", n_categories=2, n_images=3, sizes=(1, 2), **ONE)
    result = run_study(STUDY, settings, tmp_path).scores
    assert tuple(result)[: len(METHODS)] == METHODS
    for method in METHODS:
        scores = result[method]
        M = 1 if method == "ssvm" else 2
        assert scores[f"pick-best@{M}"] <= scores[f"mean@{M}"] < 1
    assert result["mcl"]["pick-best@1"] == result["ssvm"]["pick-best@1"]
    # Trained ensembles are the units, not the images that they are tested on.
    assert result["cssvm-best / ssvm, pick-best"]["n"] == 5
    assert (tmp_path / "report.html").read_text().count("<svg") == 1
