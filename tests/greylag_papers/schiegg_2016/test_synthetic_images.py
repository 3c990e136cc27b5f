import numpy as np
import pytest

from greylag_papers.schiegg_2016.synthetic_images import SyntheticImages


def test_images_have_the_documented_colours():
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
        assert len(palette) == sizes.n_palette  # 120 patches show all 8 colours
        assert min(np.linalg.norm(np.array(colour) - own) for colour in palette) >= sizes.distance


def test_scenes_have_a_colour_for_each_class():
    sizes = SyntheticImages(1, 40, n_objects=(3, 6), n_classes=3, variation=0.0, lighting=0.0, noise=0.0)
    (images,) = sizes.draw()
    colours = {label: set() for label in range(4)}
    for image in images:
        for label, colour in zip(image.labels.tolist(), image.colours.reshape(-1, 3).tolist(), strict=True):
            colours[label].add(tuple(colour))
    assert [len(colours[label]) for label in (1, 2, 3)] == [1, 1, 1]
    own = np.array([next(iter(colours[label])) for label in (1, 2, 3)])
    palette = np.array(sorted(colours[0]))
    assert np.linalg.norm(palette[:, None] - own, axis=2).min() >= sizes.distance
    shares = np.bincount(np.concatenate([image.labels for image in images]))[1:]
    assert shares[0] > shares[1] > shares[2]


def test_noise_is_a_standard_deviation_and_the_seed_decides():
    plain, noisy = (SyntheticImages(n_categories=4, n_images=5, noise=noise) for noise in (0.0, 0.08))

    def spreads(data):
        """Standard deviations of object colours within images, for channels that are far from their limits."""
        drawn = [image.colours.reshape(-1, 3)[image.labels == 1] for images in data.draw() for image in images]
        return [float(part.std()) for colours in drawn for part in colours.T if 0.3 < part.mean() < 0.7]

    assert max(spreads(plain)) < 1e-12
    assert np.mean(spreads(noisy)) == pytest.approx(0.08, rel=0.05)
    for first, second in zip(plain.draw(), plain.draw(), strict=True):
        assert all(np.array_equal(a.colours, b.colours) for a, b in zip(first, second, strict=True))
