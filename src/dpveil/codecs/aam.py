"""Active appearance model: where the parts of a face are, and how they look there."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, Final, Self

import numpy as np
from jaxtyping import Float64

from dpveil.training.aam import Marker, all_marks, at_rest, only, regressions, space_of, texture_of
from dpveil.codecs.pair_distances import apart_of, checked_apart
from dpveil.codecs.base import (
    CHUNK,
    PERCENTILES,
    Canvas,
    Card,
    Codec,
    Codes,
    Crops,
    Source,
    checked_quantiles,
    quantiles_of,
)
from dpveil.training.checkpoint import NOWHERE, Checkpoint, Later, Tensors
from dpveil.codecs.fitting import STAGES, ShapeSpace, Steps
from dpveil.codecs.mesh import Mesh
from dpveil.codecs.pca import PCA
from dpveil.core.parameters import check_count
from dpveil.errors import ModelError, UsageError

OF_SHAPE: Final = 8
"""One of so many coordinates is of shape, the others are of texture."""
TEXTURE: Final = "texture."
"""How the names of what a file keeps of texture begin."""


@dataclass(frozen=True, eq=False)
class AAM(Codec):
    """A code is a face's shape, then its texture: principal components of each, learned from public crops.

    Shape is in pixels along the components of `space`, found by a fixed number of regressions from the mean
    shape, without landmarks. Texture is what `texture`, eigenfaces in the mean shape, makes of the crop moved
    there; the whole crop is moved, so that background and hair are texture, too. W_m of a shape coordinate is
    that of its linearisation at the mean face: it weighs a budget, and no promise rests on it.
    Source: Cootes, Edwards & Taylor 2001; Matthews & Baker 2004 (piecewise-affine warp).
    """

    name: ClassVar[str] = "aam"
    summary: ClassVar[str] = "active appearance model: shape, and texture in the mean shape"
    source: ClassVar[str] = "Cootes, Edwards & Taylor 2001; Matthews & Baker 2004"
    passes: ClassVar[int] = 1 + STAGES + 1 + PCA.passes + 1

    space: ShapeSpace
    steps: Steps
    texture: PCA
    sides: Float64[np.ndarray, "2 percentiles m"]
    between: Float64[np.ndarray, "measures percentiles shares"]
    canvas: Canvas
    card: Card

    @property
    def length(self) -> int:
        """Coordinates of shape and of texture."""
        return self.of_shape + self.texture.length

    @property
    def of_shape(self) -> int:
        """Coordinates of shape, the first ones of a code."""
        return len(self.space.basis)

    @property
    def column_energy(self) -> Float64[np.ndarray, " m"]:
        """Of shape, in squared levels for a pixel, linearised at the mean face; of texture about 1."""
        return np.concatenate([self._shape_energy, self.texture.column_energy])

    @cached_property
    def _shape_energy(self) -> Float64[np.ndarray, " k"]:
        levels = self.texture.mean.reshape(self.canvas).astype(np.float64)
        down, right = (np.asarray(g).reshape(-1, levels.shape[2]) for g in np.gradient(levels, axis=(0, 1)))
        at_rest = self.space.mesh.rest
        far = self.space.mesh.moved(at_rest + self.space.basis.reshape(-1, *at_rest.shape))
        moves = far - self.space.mesh.pixels
        found = [np.sum((move[:, :1] * right + move[:, 1:] * down) ** 2) for move in moves]
        return np.array(found)

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

    @classmethod
    def train(
        cls,
        source: Source,
        *,
        card: Card,
        seed: int,
        length: int = 100,
        checkpoint: Checkpoint = NOWHERE,
        landmarks: Marker | None = None,
    ) -> Self:
        """Return a model of `length` coordinates, one in `OF_SHAPE` of them of shape.

        `landmarks` finds at least 12 of them in each crop; crops where it is not sure are left out. They are
        not needed after training. `passes` passes over `source`, in the memory of a batch, the landmarks, and
        what `PCA.train` needs. Raises `UsageError` without landmarks; `InvalidParameter` where crops are too
        few or too much alike.
        """
        check_count(length, "length")
        if landmarks is None:
            raise UsageError(
                "aam needs 68 landmarks of every crop; five say where a face is, and not its shape",
                hint="allow a file of them: --landmarks-68 package, or your own file",
            )
        marks, canvas = all_marks(source, landmarks, length, checkpoint)
        sure = np.isfinite(marks).all(axis=(1, 2))
        space, true = space_of(marks[sure], length, max(1, length // OF_SHAPE), canvas)
        kept = only(source, sure)
        steps = regressions(kept, space, true, checkpoint)
        found = np.concatenate([space.fit(crops, steps) for crops in kept()])
        card = replace(card, settings={**card.settings, "images_with_landmarks": int(sure.sum())})
        moved, after = at_rest(kept, space, found), Later(checkpoint, 1 + STAGES)
        texture = texture_of(moved, card, seed, length, length - len(space.basis), after)
        codes = np.concatenate(
            [found, np.concatenate([texture.codes_of(crops) for crops in moved()])], axis=1
        )
        sides = quantiles_of(codes)
        return cls(space, steps, texture, sides, apart_of(codes, sides, seed), canvas, card)

    def tensors(self) -> dict[str, np.ndarray]:
        """Return shape, regressions and texture, and the quantiles of both."""
        mesh = self.space.mesh
        return {
            **{TEXTURE + name: value for name, value in self.texture.tensors().items()},
            "rest": mesh.rest,
            "triangles": mesh.triangles,
            "basis": self.space.basis,
            "reach": self.space.reach,
            "steps": self.steps,
            "quantiles": self.sides,
            "apart": self.between,
        }

    @classmethod
    def of_tensors(cls, tensors: Tensors, canvas: Canvas, card: Card) -> Self:
        """Return the codec of a file."""
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
        texture = PCA.of_tensors(own, canvas, card)
        sides = checked_quantiles(tensors, len(basis) + texture.length)
        between = checked_apart(tensors, len(PERCENTILES), len(basis) + texture.length)
        return cls(space, steps, texture, sides, between, canvas, card)
