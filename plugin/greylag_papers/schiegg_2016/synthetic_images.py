"""Generated images of objects in front of clutter, by category, with a known label for each superpixel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from greylag import ParameterError
from greylag.base import FloatArray, IntArray


@dataclass(frozen=True, eq=False)
class LabelledImage:
    """A grid of superpixels."""

    colours: FloatArray  # shape (rows, columns, 3): red, green and blue
    labels: IntArray  # shape (rows * columns,): row by row; 1, 2, ... for the classes of objects, 0 for the background


@dataclass(frozen=True)
class SyntheticImages:
    """How images are drawn: ellipses of one colour in front of patches of other colours.

    A category has one colour for each class of objects, uniform in [0.2, 0.8]³, and a palette for its backgrounds,
    uniform in [0, 1]³ at a distance of at least `distance` from all of them. An image has between `n_objects[0]` and
    `n_objects[1]` objects, uniformly, of random classes: class k, counted from 1, has a probability in proportion to
    1 / k. Later objects cover earlier ones. The background consists of `n_patches` patches, the Voronoi cells of as
    many random points, each in a colour of the palette, so that an image shows only some of the colours that the
    objects of its category must be distinguished from. Colours of objects and patches deviate by `variation`. Each
    channel of an image is multiplied by exp(`lighting` z), and the colour of each superpixel deviates by `noise`; z and
    all deviations are normal.

    Ellipses have semi-axes between 0.1 and 0.2 of the image's diagonal. They are redrawn until they cover between 0.1
    and 0.6 of the image.
    """

    n_categories: int = 5
    n_images: int = 10  # images per category
    shape: tuple[int, int] = (12, 16)  # rows and columns
    n_objects: tuple[int, int] = (2, 4)  # minimum and maximum number of objects
    n_patches: int = 6  # background patches per image
    n_palette: int = 8  # background colours per category
    n_classes: int = 1  # classes of objects
    # Euclidean distance. The balls of this radius around the classes' colours must not fill the cube, so that colours
    # at this distance exist: at most 0.6 for one class, 0.36 for five
    distance: float = 0.3
    variation: float = 0.08  # variation, lighting, noise: standard deviations
    lighting: float = 0.15
    noise: float = 0.08
    seed: int = 0

    def __post_init__(self) -> None:
        if not self.n_classes * 4 / 3 * np.pi * self.distance**3 < 1:  # or no colour of the palette may be found
            raise ParameterError(f"{self.n_classes} classes leave no colours at a distance of {self.distance}")

    def draw(self) -> list[list[LabelledImage]]:
        """Draw the images of each category."""
        rng = np.random.default_rng(self.seed)
        return [self._draw_category(rng) for _ in range(self.n_categories)]

    def _draw_category(self, rng: np.random.Generator) -> list[LabelledImage]:
        objects = rng.uniform(0.2, 0.8, (self.n_classes, 3))
        palette: list[FloatArray] = []
        while len(palette) < self.n_palette:
            colour = rng.uniform(0.0, 1.0, 3)
            if np.linalg.norm(colour - objects, axis=1).min() >= self.distance:
                palette.append(colour)
        return [self._draw_image(rng, objects, np.array(palette)) for _ in range(self.n_images)]

    def _draw_image(self, rng: np.random.Generator, objects: FloatArray, palette: FloatArray) -> LabelledImage:
        grid = np.indices(self.shape).reshape(2, -1).T.astype(np.float64)
        labels = self._draw_objects(rng, grid)
        # Voronoi cells: each superpixel belongs to the nearest of a few random points.
        points = rng.uniform(0.0, self.shape, (self.n_patches, 2))
        patch = ((grid[:, None] - points) ** 2).sum(axis=2).argmin(axis=1)
        plain = np.vstack([palette[rng.integers(self.n_palette, size=self.n_patches)], objects])
        varied = plain + self.variation * rng.standard_normal(plain.shape)
        colours = varied[np.where(labels > 0, self.n_patches + labels - 1, patch)]
        lit = colours * np.exp(self.lighting * rng.standard_normal(3))
        noisy = lit + self.noise * rng.standard_normal(lit.shape)
        return LabelledImage(np.clip(noisy, 0.0, 1.0).reshape(*self.shape, 3), labels)

    def _draw_objects(self, rng: np.random.Generator, grid: FloatArray) -> IntArray:
        shares = 1.0 / np.arange(1, self.n_classes + 1)
        while True:
            labels = np.zeros(len(grid), dtype=np.int64)
            for _ in range(rng.integers(*self.n_objects, endpoint=True)):
                offsets = grid - rng.uniform(0.0, self.shape)
                angle = rng.uniform(0.0, np.pi)
                turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
                axes = np.hypot(*self.shape) * rng.uniform(0.1, 0.2, 2)
                inside = ((offsets @ turn / axes) ** 2).sum(axis=1) <= 1.0
                labels[inside] = 1 if self.n_classes == 1 else 1 + rng.choice(self.n_classes, p=shares / shares.sum())
            if 0.1 <= np.mean(labels > 0) <= 0.6:
                return labels
