"""Generated images of objects before clutter, by category, whose truth is known for every superpixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from greylag.errors import ParameterError
from greylag.ranking import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LabelledImage:
    """A grid of superpixels.

    Parameters
    ----------
    colours : red, green and blue in [0, 1], shape (rows, columns, 3).
    labels : row by row, 1 for objects and 0 for the background, shape (rows * columns,).
    """

    colours: FloatArray
    labels: IntArray


@dataclass(frozen=True)
class SyntheticImages:
    """How images are drawn: ellipses of one colour before patches of others.

    A category has a colour, uniform in [0.2, 0.8]³, for its objects, and a palette, uniform in [0, 1]³ at least
    `distance` from it, for its backgrounds. An image has from `n_objects[0]` to `n_objects[1]` objects, each number as
    likely, of the same colour, and `n_patches` patches of background, each of a colour of the palette, that are divided
    by the nearest of as many points; objects and patches deviate from their colours by `variation`. So an image shows
    only part of what its category's objects have to be told from. Each channel of an image is then multiplied by
    exp(`lighting` z), and each superpixel's colour deviates by `noise`, for standard normal deviates.

    Ellipses have half-axes from 0.1 to 0.2 of the image's diagonal, and are drawn anew until they cover from 0.1 to 0.6
    of the image.

    Parameters
    ----------
    n_categories, n_images : categories, and images of each.
    shape : rows and columns, at least 4 each.
    n_objects : least and most objects.
    n_patches, n_palette : patches in an image, and colours that they have in a category.
    distance : Euclidean, in [0, 0.6], so that there always are colours at that distance.
    variation, lighting, noise : standard deviations, >= 0.
    seed : of the generator, >= 0.
    """

    n_categories: int = 5
    n_images: int = 10
    shape: tuple[int, int] = (12, 16)
    n_objects: tuple[int, int] = (2, 4)
    n_patches: int = 6
    n_palette: int = 8
    distance: float = 0.3
    variation: float = 0.08
    lighting: float = 0.15
    noise: float = 0.08
    seed: int = 0

    def __post_init__(self) -> None:
        sizes = (self.n_categories, self.n_images, self.n_patches, self.n_palette, self.n_objects[0])
        deviations = (self.variation, self.lighting, self.noise)
        if (
            min(sizes) < 1
            or min(self.shape) < 4
            or self.n_objects[1] < self.n_objects[0]
            or not 0 <= self.distance <= 0.6
            or not all(0 <= deviation < np.inf for deviation in deviations)
            or self.seed < 0
        ):
            raise ParameterError(f"{self} has a size outside its domain")

    def draw(self) -> list[list[LabelledImage]]:
        """The images of each category."""
        rng = np.random.default_rng(self.seed)
        return [self._draw_category(rng) for _ in range(self.n_categories)]

    def _draw_category(self, rng: np.random.Generator) -> list[LabelledImage]:
        own = rng.uniform(0.2, 0.8, 3)
        palette: list[FloatArray] = []
        while len(palette) < self.n_palette:
            colour = rng.uniform(0.0, 1.0, 3)
            if np.linalg.norm(colour - own) >= self.distance:
                palette.append(colour)
        return [self._draw_image(rng, own, np.array(palette)) for _ in range(self.n_images)]

    def _draw_image(self, rng: np.random.Generator, own: FloatArray, palette: FloatArray) -> LabelledImage:
        places = np.indices(self.shape).reshape(2, -1).T.astype(np.float64)
        labels = self._draw_objects(rng, places)
        points = rng.uniform(0.0, self.shape, (self.n_patches, 2))
        patch = ((places[:, None] - points) ** 2).sum(axis=2).argmin(axis=1)
        plain = np.vstack([palette[rng.integers(self.n_palette, size=self.n_patches)], own])
        varied = plain + self.variation * rng.standard_normal(plain.shape)
        colours = varied[np.where(labels == 1, self.n_patches, patch)]
        lit = colours * np.exp(self.lighting * rng.standard_normal(3))
        noisy = lit + self.noise * rng.standard_normal(lit.shape)
        return LabelledImage(np.clip(noisy, 0.0, 1.0).reshape(*self.shape, 3), labels)

    def _draw_objects(self, rng: np.random.Generator, places: FloatArray) -> IntArray:
        while True:
            covered = np.zeros(len(places), dtype=bool)
            for _ in range(rng.integers(*self.n_objects, endpoint=True)):
                offsets = places - rng.uniform(0.0, self.shape)
                angle = rng.uniform(0.0, np.pi)
                turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
                axes = np.hypot(*self.shape) * rng.uniform(0.1, 0.2, 2)
                covered |= ((offsets @ turn / axes) ** 2).sum(axis=1) <= 1.0
            if 0.1 <= covered.mean() <= 0.6:
                return covered.astype(np.int64)
