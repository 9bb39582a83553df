"""Active appearance model: the shape of a face, and its texture in the mean shape."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Self

import numpy as np
from jaxtyping import Float64

from dpveil.assets.cards import Card
from dpveil.assets.store import Tensors
from dpveil.codecs.base import CHUNK, Canvas, Crops
from dpveil.codecs.files import StoredCodec, canvas_of
from dpveil.codecs.fitting import ShapeSpace, Steps
from dpveil.codecs.mesh import Mesh
from dpveil.codecs.pca import PCA
from dpveil.codecs.statistics import Codes, Statistics
from dpveil.errors import ModelError

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
