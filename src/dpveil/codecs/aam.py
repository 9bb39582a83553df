"""Active appearance model: the shape of a face, and its texture in the mean shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any, ClassVar, Final, Self

import numpy as np

from dpveil.assets.model_cards import Card
from dpveil.assets.trained_files import Tensors, arrays_of
from dpveil.codecs.base import CHUNK, Canvas, Crops, StoredCodec, canvas_of
from dpveil.codecs.pca import PCA
from dpveil.codecs.statistics import Codes, Statistics
from dpveil.core.array_types import Float32, Float64, Int64
from dpveil.errors import InvalidParameter, ModelError
from dpveil.opencv import cv2

ON_A_SIDE: Final = 3  # fixed points on each side of a crop, besides its corners
AROUND: Final = 0.15
"""Distance of the border outside the crop, relative to its sides: chins and temples may extend beyond it."""
INSIDE: Final = 0.01  # distance that other points keep from the border, relative to the crop's sides
LEAST_AREA: Final = 0.05  # fraction of its area in the mean shape that a triangle keeps in any shape
EDGE: Final = 1e-9  # tolerance for areas and barycentric coordinates
FEWEST: Final = 12
"""Least number of points of a mesh: five landmarks locate a face but do not describe its shape."""

Points = Float64[np.ndarray, "n 2"]
Shapes = Float64[np.ndarray, "n k 2"]


@dataclass(frozen=True, eq=False)
class Mesh:
    """Triangles over a crop of `height` × `width` pixels and a border `AROUND` it.

    `rest` are the points of the mean shape, (x, y) in pixels, integers at the centres of pixels. Rows of
    `triangles` are indices of these points, followed by those of the border, which never move.
    """

    rest: Points
    triangles: Int64[np.ndarray, "t 3"]
    height: int
    width: int

    @classmethod
    def over(cls, rest: Points, height: int, width: int) -> Self:
        """Return the Delaunay mesh of a mean shape; raises `InvalidParameter` for fewer than 12 points."""
        from scipy.spatial import Delaunay

        if len(rest) < FEWEST:
            problem = f"are fewer than {FEWEST}, which make no mesh"
            raise InvalidParameter("landmarks", len(rest), problem, hint="give dlib's 68")
        rest = _clip_to_border(rest, height, width)
        found = Delaunay(np.concatenate([rest, _border(height, width)])).simplices.astype(np.int64)
        mesh = cls(rest, found, height, width)
        turned = mesh.areas(rest[None])[0]
        found = np.where((turned < 0)[:, None], found[:, ::-1], found)
        return cls(rest, found[np.abs(turned) > EDGE], height, width)

    def check(self) -> None:
        """Raise `ModelError` unless the triangles cover the crop in the mean shape and none is flipped."""
        known = self.triangles.min(initial=0) >= 0 and self.triangles.max(initial=0) < len(self._ends)
        areas = self.areas(self.rest[None])[0] if known else np.zeros(1)
        whole = float(np.ptp(self._ends[len(self.rest) :], axis=0).prod())
        if not known or not (areas > 0).all() or abs(areas.sum() / 2 - whole) > 1e-6 * whole:
            raise ModelError("the file's triangles do not cover its canvas")

    @cached_property
    def _ends(self) -> Points:
        return np.concatenate([self.rest, _border(self.height, self.width)])

    @cached_property
    def pixels(self) -> Points:
        """The position (x, y) of every pixel of the crop, row by row."""
        x, y = np.meshgrid(np.arange(self.width, dtype=np.float64), np.arange(self.height, dtype=np.float64))
        return np.stack([x.ravel(), y.ravel()], axis=1)

    @cached_property
    def _at_pixels(self) -> tuple[Int64[np.ndarray, "p 3"], Float64[np.ndarray, "p 3"]]:
        return self.weights(self.pixels)

    def areas(self, shapes: Shapes) -> Float64[np.ndarray, "n t"]:
        """Return twice the signed area of every triangle of every shape, negative if it is flipped."""
        a, b, c = (self._with_border(shapes)[:, self.triangles[:, i]] for i in range(3))
        return _cross(b - a, c - a)

    def make_valid(self, shapes: Shapes) -> Shapes:
        """Return valid shapes: within the border, with every triangle at least `LEAST_AREA` of its mean area.

        Points beyond the border are clipped to it. If triangles are still too small or flipped, all points
        are interpolated towards the mean shape by the smallest fraction that avoids it.
        """
        inside = _clip_to_border(shapes, self.height, self.width)
        a, b, c = (self._ends[self.triangles[:, i]] for i in range(3))
        moves = self._with_border(inside) - self._ends
        da, db, dc = (moves[:, self.triangles[:, i]] for i in range(3))
        # The area is quadratic in the fraction of the way: constant, linear and square coefficients.
        square = _cross(db - da, dc - da)
        linear = _cross(b - a, dc - da) + _cross(db - da, c - a)
        constant = np.broadcast_to((1 - LEAST_AREA) * _cross(b - a, c - a), square.shape)
        part = _first_root(square, linear, constant).min(axis=1, initial=1.0)
        return np.asarray(self.rest + part[:, None, None] * (inside - self.rest))

    def weights(self, points: Points) -> tuple[Int64[np.ndarray, "p 3"], Float64[np.ndarray, "p 3"]]:
        """Return the triangles (corner indices) of points in the mean shape, and barycentric coordinates."""
        a, b, c = (self._ends[self.triangles[:, i]] for i in range(3))
        at = points[:, None]
        sides = [_cross(f - at, g - at) for f, g in ((b, c), (c, a), (a, b))]
        parts = np.stack(sides, axis=2) / _cross(b - a, c - a)[:, None]
        best = parts.min(axis=2).argmax(axis=1)
        return self.triangles[best], parts[np.arange(len(points)), best]

    def map_points(
        self, shapes: Shapes, at: tuple[Int64[np.ndarray, "p 3"], Float64[np.ndarray, "p 3"]] | None = None
    ) -> Float64[np.ndarray, "n p 2"]:
        """Return the positions in `shapes` of points in the mean shape.

        `at` are the points' `weights`; None means every pixel.
        """
        corners, parts = self._at_pixels if at is None else at
        whole = self._with_border(shapes)
        a, b, c = (parts[:, i, None] * whole[:, corners[:, i]] for i in range(3))
        return np.asarray(a + b + c)

    def to_rest(self, crops: Crops, shapes: Shapes) -> Float32[np.ndarray, "n h w c"]:
        """Return crops warped from their shapes to the mean shape, with float levels."""
        out = np.empty(crops.shape, np.float32)
        for crop, shape, moved in zip(crops, shapes, out, strict=True):
            moved[...] = _sample_bilinear(crop, self.map_points(shape[None])[0])
        return out

    def from_rest(self, crops: Crops, shapes: Shapes) -> Crops:
        """Return crops warped from the mean shape to `shapes`, which must be valid (`make_valid`).

        Every pixel then lies in a triangle, because a continuous map that fixes the border is onto.
        """
        out = np.empty_like(crops)
        for crop, shape, moved in zip(crops, shapes, out, strict=True):
            moved[...] = np.rint(_sample_bilinear(crop, self._sources(shape)))
        return out

    def _sources(self, shape: Points) -> Float64[np.ndarray, "p 2"]:
        """Return the position in the mean shape of every pixel of a crop with this shape."""
        ends = np.concatenate([shape, _border(self.height, self.width)])[self.triangles]
        rest = self._ends[self.triangles]
        last = np.array([self.width, self.height]) - 1
        low = np.maximum(np.ceil(ends.min(axis=1) - EDGE), 0).astype(np.int64)
        high = np.minimum(np.floor(ends.max(axis=1) + EDGE), last).astype(np.int64)
        sides = np.maximum(high - low + 1, 0)
        counts = sides.prod(axis=1)
        which = np.repeat(np.arange(len(ends)), counts)
        number = np.arange(len(which)) - np.repeat(np.cumsum(counts) - counts, counts)
        down, right = np.divmod(number, sides[which, 0])
        x, y = low[which, 0] + right, low[which, 1] + down
        (ax, ay), (bx, by), (cx, cy) = (ends[:, i].T for i in range(3))
        whole = (bx - ax) * (cy - ay) - (by - ay) * (cx - ax)
        # Barycentric coordinates are affine in the pixel: two coefficients and a constant for each corner.
        second = np.stack([(cy - ay) / whole, (ax - cx) / whole, (ay * cx - ax * cy) / whole])
        third = np.stack([(ay - by) / whole, (bx - ax) / whole, (ax * by - ay * bx) / whole])
        s = second[0, which] * x + second[1, which] * y + second[2, which]
        t = third[0, which] * x + third[1, which] * y + third[2, which]
        inside = (s >= -EDGE) & (t >= -EDGE) & (s + t <= 1 + EDGE)
        which, s, t = which[inside], s[inside, None], t[inside, None]
        out = self.pixels.copy()
        a, b, c = rest[which, 0], rest[which, 1], rest[which, 2]
        out[y[inside] * self.width + x[inside]] = a + s * (b - a) + t * (c - a)
        return out

    def _with_border(self, shapes: Shapes) -> Shapes:
        ends = np.broadcast_to(self._ends[len(self.rest) :], (len(shapes), 4 * (ON_A_SIDE + 1), 2))
        return np.concatenate([shapes, ends], axis=1)


def _border(height: int, width: int) -> Points:
    along = np.arange(ON_A_SIDE + 1) / (ON_A_SIDE + 1)
    zero, one = np.zeros_like(along), np.ones_like(along)
    x = np.concatenate([along, one, 1 - along, zero])
    y = np.concatenate([zero, along, one, 1 - along])
    parts = np.stack([x, y], axis=1) * (1 + 2 * AROUND) - AROUND
    return np.asarray(parts * [width, height] - 0.5)


def _clip_to_border(points: np.ndarray, height: int, width: int) -> np.ndarray:
    size = np.array([width, height])
    return np.asarray(np.clip(points, (INSIDE - AROUND) * size - 0.5, (1 + AROUND - INSIDE) * size - 0.5))


def _cross(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    return np.asarray(a[..., 0] * b[..., 1] - a[..., 1] * b[..., 0])


def _first_root(square: np.ndarray, linear: np.ndarray, constant: np.ndarray) -> np.ndarray:
    """Return the least positive root of square·x² + linear·x + constant > 0 at 0; infinity without one."""
    inner = linear * linear - 4 * square * constant
    # This form avoids cancellation and allows square = 0.
    below = -linear + np.sqrt(np.maximum(inner, 0))
    with np.errstate(divide="ignore", invalid="ignore"):
        first, second = 2 * constant / below, 2 * constant / (-linear - np.sqrt(np.maximum(inner, 0)))
    first = np.where((inner >= 0) & (first > 0), first, np.inf)
    second = np.where((inner >= 0) & (second > 0), second, np.inf)
    return np.asarray(np.minimum(first, second))


def _sample_bilinear(picture: np.ndarray, at: np.ndarray) -> Float32[np.ndarray, "h w c"]:
    x, y = at.astype(np.float32).T.reshape(2, *picture.shape[:2])
    levels = picture.astype(np.float32)
    found = cv2.remap(levels, x, y, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
    return np.asarray(found, np.float32).reshape(picture.shape)


STAGES: Final = 4
"""Number of regressions in the cascade: fixed, so that a shape is a function of its crop alone."""
SEEN: Final = 36  # longer side, in pixels, of the downscaled crop from which features are computed

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
        moves = (shapes - self.mesh.rest).reshape(len(shapes), self.basis.shape[1])
        return np.asarray(moves @ self.basis.T)

    def shapes(self, parameters: Parameters) -> Shapes:
        moves = (parameters @ self.basis).reshape(len(parameters), *self.mesh.rest.shape)
        return self.mesh.make_valid(self.mesh.rest + moves)

    def fit(self, crops: Crops, steps: Steps) -> Parameters:
        """Return the parameters of crops after the regressions in `steps`."""
        found = np.zeros((len(crops), len(self.basis)))
        for at in range(0, len(crops), CHUNK):
            small, part = _small(crops[at : at + CHUNK], *self._feature_size), found[at : at + CHUNK]
            for step in steps:
                part[...] = np.clip(part + self._features(small, part) @ step.T, *self.reach)
        return found

    def features(self, crops: Crops, parameters: Parameters) -> Float32[np.ndarray, "n features"]:
        """Return the features of crops warped from their current shapes; the last feature is 1.

        They are gradients of the grey levels divided by their length plus its mean, and so hardly depend on
        brightness and contrast. Source: Cootes & Taylor 2001, normalised gradients.
        """
        return self._features(_small(crops, *self._feature_size), parameters)

    def _features(
        self, small: Float32[np.ndarray, "n h w"], parameters: Parameters
    ) -> Float32[np.ndarray, "n features"]:
        rows, columns = self._feature_size
        there = self.mesh.map_points(self.shapes(parameters), self._weights) + 0.5
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
        rows, columns = self._feature_size
        return 2 * rows * columns + 1

    @property
    def _feature_size(self) -> tuple[int, int]:
        ratio = min(1.0, SEEN / max(self.mesh.height, self.mesh.width))
        return max(2, round(ratio * self.mesh.height)), max(2, round(ratio * self.mesh.width))

    @cached_property
    def _weights(self) -> tuple[Int64[np.ndarray, "p 3"], Float64[np.ndarray, "p 3"]]:
        rows, columns = self._feature_size
        x = (np.arange(columns) + 0.5) * (self.mesh.width / columns) - 0.5
        y = (np.arange(rows) + 0.5) * (self.mesh.height / rows) - 0.5
        return self.mesh.weights(np.stack([part.ravel() for part in np.meshgrid(x, y)], axis=1))


def _small(crops: Crops, rows: int, columns: int) -> Float32[np.ndarray, "n h w"]:
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


TEXTURE: Final = "texture."  # prefix of the names of texture arrays in a file


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
        return self.of_shape + self.texture.length

    @property
    def of_shape(self) -> int:
        """The number of coordinates of shape, which come first in a code."""
        return len(self.space.basis)

    def _encode(self, crops: Crops) -> Codes:
        out = np.empty((len(crops), self.length))
        for at in range(0, len(crops), CHUNK):
            part = crops[at : at + CHUNK]
            found = self.space.fit(part, self.steps)
            moved = self.space.mesh.to_rest(part, self.space.shapes(found))
            out[at : at + CHUNK] = np.concatenate([found, self.texture._encode(moved)], axis=1)
        return out

    def _decode(self, codes: Codes) -> Crops:
        shapes = self.space.shapes(codes[:, : self.of_shape])
        return self.space.mesh.from_rest(self.texture.decode(codes[:, self.of_shape :]), shapes)

    def tensors(self) -> dict[str, np.ndarray]:
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
        canvas = canvas_of(facts)
        shapes = {"rest": "points 2", "basis": "k coordinates", "reach": "2 k"}
        rest, basis, reach = arrays_of(tensors, {"2": 2}, np.float64, **shapes)
        (steps,) = arrays_of(tensors, {"k": len(basis)}, np.float32, steps="stages k features")
        triangles = tensors["triangles"].astype(np.int64)
        if basis.shape[1] != rest.size or not len(basis) or triangles.shape[1:] != (3,):
            raise ModelError("the file's shapes do not fit together")
        mesh = Mesh(rest, triangles, canvas[0], canvas[1])
        mesh.check()
        space = ShapeSpace(mesh, basis, reach)
        if steps.shape[2] != space.features_seen:
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
    moves = space.mesh.map_points(at_rest + space.basis.reshape(-1, *at_rest.shape)) - space.mesh.pixels
    found = [np.sum((move[:, :1] * right + move[:, 1:] * down) ** 2) for move in moves]
    return np.concatenate([np.array(found), texture.statistics.column_energy])
