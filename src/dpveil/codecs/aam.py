"""Active appearance model: the shape of a face, and its texture in the mean shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np
from jaxtyping import Float32, Float64, Int64

from dpveil.assets.cards import Card
from dpveil.assets.store import Tensors
from dpveil.codecs.base import CHUNK, Canvas, Crops, StoredCodec, canvas_of
from dpveil.codecs.mesh import Mesh, Shapes
from dpveil.codecs.pca import PCA
from dpveil.codecs.statistics import Codes, Statistics
from dpveil.errors import ModelError

STAGES: Final = 4
"""Number of regressions in the cascade: fixed, so that a shape is a function of its crop alone."""
SEEN: Final = 36
"""Longer side, in pixels, of the downscaled crop from which features are computed."""

Parameters = Float64[np.ndarray, "n k"]
Steps = Float32[np.ndarray, "stages k features"]
"""Coefficients of the regressions."""


@dataclass(frozen=True, eq=False)
class ShapeSpace:
    """Shapes as the mean shape plus `parameters` times the orthonormal rows of `basis`, in pixels.

    `basis` is k × 2·points, x before y for each point. `reach` are the least and the largest parameters of
    public training shapes, to which fits are clipped.
    """

    mesh: Mesh
    basis: Float64[np.ndarray, "k coordinates"]
    reach: Float64[np.ndarray, "2 k"]

    def parameters(self, shapes: Shapes) -> Parameters:
        """Return the least-squares parameters of shapes."""
        moves = (shapes - self.mesh.rest).reshape(len(shapes), self.basis.shape[1])
        found: Parameters = moves @ self.basis.T
        return found

    def shapes(self, parameters: Parameters) -> Shapes:
        """Return the shapes of parameters, made valid by `Mesh.sound`."""
        moves = (parameters @ self.basis).reshape(len(parameters), *self.mesh.rest.shape)
        return self.mesh.sound(self.mesh.rest + moves)

    def fit(self, crops: Crops, steps: Steps) -> Parameters:
        """Return the parameters of crops after the regressions in `steps`."""
        starts = range(0, len(crops), CHUNK)
        parts = [self._fit(crops[at : at + CHUNK], steps) for at in starts]
        return np.concatenate([*parts, np.empty((0, len(self.basis)))])

    def _fit(self, crops: Crops, steps: Steps) -> Parameters:
        small = _small(crops, *self._seen)
        found = np.zeros((len(crops), len(self.basis)))
        for step in steps:
            moved = found + self._features(small, found) @ step.T
            found = np.clip(moved, *self.reach)
        return found

    def features(self, crops: Crops, parameters: Parameters) -> Float32[np.ndarray, "n features"]:
        """Return the features of crops warped from their current shapes; the last feature is 1.

        They are gradients of the grey levels divided by their length plus its mean, and so hardly depend on
        brightness and contrast. Source: Cootes & Taylor 2001, normalised gradients.
        """
        return self._features(_small(crops, *self._seen), parameters)

    def _features(
        self, small: Float32[np.ndarray, "n h w"], parameters: Parameters
    ) -> Float32[np.ndarray, "n features"]:
        rows, columns = self._seen
        there = self.mesh.moved(self.shapes(parameters), self._weights) + 0.5
        x = there[..., 0] * (columns / self.mesh.width) - 0.5
        y = there[..., 1] * (rows / self.mesh.height) - 0.5
        patch = _bilinear(small, x, y).reshape(len(small), rows, columns)
        down, right = np.gradient(patch, axis=(1, 2))
        size = np.hypot(down, right)
        scale = size + size.mean(axis=(1, 2), keepdims=True) + np.float32(1)
        parts = (down / scale, right / scale, np.ones((len(small), 1, 1), np.float32))
        return np.concatenate([part.reshape(len(small), -1) for part in parts], axis=1)

    @property
    def features_seen(self) -> int:
        """The number of features of a crop."""
        rows, columns = self._seen
        return 2 * rows * columns + 1

    @property
    def _seen(self) -> tuple[int, int]:
        """Rows and columns of the downscaled crop from which features are computed."""
        ratio = min(1.0, SEEN / max(self.mesh.height, self.mesh.width))
        return max(2, round(ratio * self.mesh.height)), max(2, round(ratio * self.mesh.width))

    @cached_property
    def _weights(self) -> tuple[Int64[np.ndarray, "p 3"], Float64[np.ndarray, "p 3"]]:
        rows, columns = self._seen
        x = (np.arange(columns) + 0.5) * (self.mesh.width / columns) - 0.5
        y = (np.arange(rows) + 0.5) * (self.mesh.height / rows) - 0.5
        return self.mesh.weights(np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1))


def _small(crops: Crops, rows: int, columns: int) -> Float32[np.ndarray, "n h w"]:
    """Return the crops in grey, downscaled to this size in pixels."""
    import cv2

    out = np.empty((len(crops), rows, columns), np.float32)
    for crop, small in zip(crops, out, strict=True):
        grey = crop[..., 0] if crop.shape[2] == 1 else cv2.cvtColor(crop, cv2.COLOR_RGB2GRAY)
        small[...] = cv2.resize(grey.astype(np.float32), (columns, rows), interpolation=cv2.INTER_AREA)
    return out


def _bilinear(
    pictures: Float32[np.ndarray, "n h w"], x: Float64[np.ndarray, "n p"], y: Float64[np.ndarray, "n p"]
) -> Float32[np.ndarray, "n p"]:
    count, height, width = pictures.shape
    x, y = np.clip(x, 0, width - 1), np.clip(y, 0, height - 1)
    left, top = np.minimum(x.astype(np.int64), width - 2), np.minimum(y.astype(np.int64), height - 2)
    u, v = (x - left).astype(np.float32), (y - top).astype(np.float32)
    flat = pictures.reshape(-1)
    at = np.arange(count)[:, None] * (height * width) + top * width + left
    upper = flat[at] * (1 - u) + flat[at + 1] * u
    lower = flat[at + width] * (1 - u) + flat[at + width + 1] * u
    return np.asarray(upper * (1 - v) + lower * v, np.float32)


TEXTURE: Final = "texture."
"""Prefix of the names of texture arrays in a file."""


@dataclass(frozen=True, eq=False)
class AAM(StoredCodec):
    """A code is a face's shape followed by its texture: principal components of each, from public crops.

    Shape is in pixels along the components of `space`, fitted by a fixed number of regressions from the mean
    shape, without landmarks. Texture is the code, by the eigenfaces `texture`, of the crop warped to the mean
    shape; the whole crop is warped, so background and hair are texture too. W_m of a shape coordinate is that
    of its linearisation at the mean face; it weights the division of a budget, and no guarantee depends on
    it. Source: Cootes, Edwards & Taylor 2001; Matthews & Baker 2004 (piecewise-affine warp).
    """

    name: ClassVar[str] = "aam"
    summary: ClassVar[str] = "active appearance model: shape, and texture in the mean shape"
    source: ClassVar[str] = "Cootes, Edwards & Taylor 2001; Matthews & Baker 2004"

    space: ShapeSpace
    steps: Steps
    texture: PCA
    statistics: Statistics
    canvas: Canvas
    card: Card

    @property
    def length(self) -> int:
        """The number of coordinates, of shape and texture together."""
        return self.of_shape + self.texture.length

    @property
    def of_shape(self) -> int:
        """The number of coordinates of shape, which come first in a code."""
        return len(self.space.basis)

    def _encode(self, crops: Crops) -> Codes:
        starts = range(0, len(crops), CHUNK)
        parts = [self._encoded(crops[at : at + CHUNK]) for at in starts]
        return np.concatenate([*parts, np.empty((0, self.length))])

    def _encoded(self, crops: Crops) -> Codes:
        found = self.space.fit(crops, self.steps)
        moved = self.space.mesh.to_rest(crops, self.space.shapes(found))
        return np.concatenate([found, self.texture.codes_of(moved)], axis=1)

    def _decode(self, codes: Codes) -> Crops:
        shapes = self.space.shapes(codes[:, : self.of_shape])
        return self.space.mesh.from_rest(self.texture.decode(codes[:, self.of_shape :]), shapes)

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays of the file: shapes, regressions, texture, and statistics."""
        mesh = self.space.mesh
        return {
            **{TEXTURE + name: value for name, value in self.texture.tensors().items()},
            "rest": mesh.rest,
            "triangles": mesh.triangles,
            "basis": self.space.basis,
            "reach": self.space.reach,
            "steps": self.steps,
            **self.statistics.tensors(),
        }

    @classmethod
    def of_file(cls, facts: Mapping[str, Any], tensors: Tensors, card: Card) -> Self:
        """Return the codec stored in a file; raises `ModelError` for contents that do not fit together."""
        canvas = canvas_of(facts)
        rest, basis, reach = (tensors[name].astype(np.float64) for name in ("rest", "basis", "reach"))
        triangles, steps = tensors["triangles"].astype(np.int64), tensors["steps"].astype(np.float32)
        fits = rest.ndim == triangles.ndim == 2 and (rest.shape[1], triangles.shape[1]) == (2, 3)
        fits = fits and basis.ndim == 2 and basis.shape[1:] == (rest.size,) and len(basis) > 0
        if not fits or reach.shape != (2, len(basis)):
            raise ModelError("the file's shapes do not fit together")
        if not all(np.isfinite(each).all() for each in (rest, basis, reach, steps)):
            raise ModelError("the file's shapes or regressions are not finite")
        mesh = Mesh(rest, triangles, canvas[0], canvas[1])
        mesh.check()
        space = ShapeSpace(mesh, basis, reach)
        if steps.ndim != 3 or steps.shape[1:] != (len(basis), space.features_seen):
            raise ModelError("the file's regressions do not fit its canvas")
        kept = {name for name in tensors if name.startswith(TEXTURE)}
        own = {name.removeprefix(TEXTURE): value for name, value in tensors.items() if name in kept}
        texture = PCA.of_file(facts, own, card)
        statistics = Statistics.of_tensors(tensors, energy_of(space, texture))
        return cls(space, steps, texture, statistics, canvas, card)


def energy_of(space: ShapeSpace, texture: PCA) -> Float64[np.ndarray, " m"]:
    """Return W_m (`Statistics.column_energy`): of shape, linearised at the mean face, then of texture."""
    levels = texture.mean.reshape(texture.canvas).astype(np.float64)
    down, right = (np.asarray(g).reshape(-1, levels.shape[2]) for g in np.gradient(levels, axis=(0, 1)))
    at_rest = space.mesh.rest
    moves = space.mesh.moved(at_rest + space.basis.reshape(-1, *at_rest.shape)) - space.mesh.pixels
    found = [np.sum((move[:, :1] * right + move[:, 1:] * down) ** 2) for move in moves]
    return np.concatenate([np.array(found), texture.statistics.column_energy])
