"""The study of ensembles that segment images, small, and the images that it is made of."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

import greylag
from greylag.errors import ParameterError
from greylag.experiments.study import load
from greylag_papers.schiegg_2016.images import CSSVM, GREY, METHODS, Settings, image_tasks, mosaic, run
from greylag_papers.schiegg_2016.synthetic_images import SyntheticImages

CONFIG = Path(greylag.__file__).parents[2] / "configs" / "images.cssvm.yaml"
SMALL = Settings(
    name="small", study="cssvm_images", n_categories=2, n_images=3, n_validation=1, sizes=(1, 2), costs=(10.0,),
    ensemble_costs=(10.0,), alphas=(0.1,), diversities=(0.1,), spreads=(1.0,),
)  # fmt: skip


def test_drawn_images_are_what_the_docstring_says() -> None:
    sizes = SyntheticImages(n_categories=3, n_images=20, shape=(8, 9), variation=0.0, lighting=0.0, noise=0.0)
    categories = sizes.draw()
    assert [len(images) for images in categories] == [20] * 3
    for images in categories:
        own = images[0].colours.reshape(-1, 3)[images[0].labels == 1][0]
        palette = set()
        for image in images:
            flat = image.colours.reshape(-1, 3)
            assert image.colours.shape == (8, 9, 3)
            assert 0.1 <= image.labels.mean() <= 0.6
            assert (flat[image.labels == 1] == own).all()
            colours = {tuple(colour) for colour in flat[image.labels == 0]}
            assert len(colours) <= sizes.n_patches
            palette |= colours
        assert len(palette) == sizes.n_palette  # of 120 patches, none of 8 colours is missing
        assert min(np.linalg.norm(np.array(colour) - own) for colour in palette) >= sizes.distance


def test_deviations() -> None:
    plain = SyntheticImages(n_categories=4, n_images=5, noise=0.0)
    noisy = SyntheticImages(n_categories=4, n_images=5, noise=0.08)
    same = SyntheticImages(n_categories=4, n_images=5, noise=0.0)

    def spreads(data: SyntheticImages) -> list[float]:
        """Standard deviations of objects' colours within images, where no channel is near its limits."""
        drawn = [image.colours.reshape(-1, 3)[image.labels == 1] for images in data.draw() for image in images]
        return [float(part.std()) for colours in drawn for part in colours.T if 0.3 < part.mean() < 0.7]

    assert max(spreads(plain)) < 1e-12
    assert np.mean(spreads(noisy)) == pytest.approx(0.08, rel=0.05)
    for first, second in zip(plain.draw(), same.draw(), strict=True):
        assert all(np.array_equal(a.colours, b.colours) for a, b in zip(first, second, strict=True))


@pytest.mark.parametrize(
    "sizes",
    [
        {"n_images": 0},
        {"shape": (3, 9)},
        {"n_objects": (3, 2)},
        {"distance": 0.7},
        {"noise": -0.1},
        {"lighting": np.inf},
        {"seed": -1},
    ],
)
def test_sizes_outside_their_domain(sizes: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match="a size outside its domain"):
        SyntheticImages(**sizes)  # type: ignore[arg-type]


def test_each_image_trains_once_and_never_meets_itself() -> None:
    tasks = image_tasks("1.", SyntheticImages(n_categories=1, n_images=6).draw()[0], 2)
    assert [task.name for task in tasks] == [f"1.{number}" for number in range(1, 7)]
    assert [*tasks[4].test] == ["1.2", "1.3", "1.4"]
    for task in tasks:
        inputs = [x for x, _ in (*task.training, *task.validation, *task.test.values())]
        assert (len(task.training), len(task.validation), len(task.test)) == (1, 2, 3)
        assert len({id(x) for x in inputs}) == 6
        assert task.name not in task.test
    with pytest.raises(ParameterError, match="3 images leave none to test after 1 to train on and 2 to validate"):
        image_tasks("1.", SyntheticImages(n_categories=1, n_images=3).draw()[0], 2)


def test_study(tmp_path: Path) -> None:
    result = run(SMALL, tmp_path, n_jobs=1, say=lambda _: None)
    assert tuple(result.scores) == METHODS
    for method, scores in result.scores.items():
        assert scores["pick-best@1"] == scores["mean@1"]
        if method != "ssvm":
            assert scores["pick-best@2"] <= scores["mean@2"]
    assert result.scores["mcl"]["pick-best@1"] == result.scores["ssvm"]["pick-best@1"]  # of the same C
    assert result.scores[CSSVM]["pick-best@2"] < result.scores[CSSVM]["mean@2"] < 0.5
    found = json.loads((tmp_path / "results.json").read_text())
    assert found["scores"] == result.scores
    by_training = found["by training image"]["pick-best"]
    for method, chosen in found["chosen"].items():
        largest = "pick-best@1" if method == "ssvm" else "pick-best@2"
        assert by_training["runs"][method]["means"]["loss"] == pytest.approx(result.scores[method][largest])
        assert list(chosen) == ["1.1", "1.2", "1.3", "2.1", "2.2", "2.3"]
    assert [comparison["run"] for comparison in by_training["significance"]["comparisons"]] == [*METHODS[:-1]]
    assert (tmp_path / "report.html").read_text().count("<svg") == 3


def test_mosaic() -> None:
    black, white = np.zeros((2, 1, 3)), np.ones((2, 1, 3))
    assert mosaic([[black, white], [white]])[:, :, 0].tolist() == [
        [0.0, GREY, 1.0, GREY],
        [0.0, GREY, 1.0, GREY],
        [GREY] * 4,
        [1.0, GREY, GREY, GREY],
        [1.0, GREY, GREY, GREY],
        [GREY] * 4,
    ]


def test_experiment_file_is_valid() -> None:
    _, settings = load(CONFIG)
    assert settings.name == CONFIG.stem
    assert tuple(settings.expected) == METHODS
