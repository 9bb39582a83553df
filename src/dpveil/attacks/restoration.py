"""Attackers who restore releases before they look: by a denoiser, or by a linear inverse that they learn."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

import numpy as np

from dpveil.attacks.base import Background, View
from dpveil.attacks.patches import TOP, has_colour, largest_box, small
from dpveil.attacks.preprocessing import Undo, Wrapped
from dpveil.attacks.vectors import check_people
from dpveil.core.array_types import Float64, Int64
from dpveil.opencv import cv2
from dpveil.postprocessing import opens, parse


@dataclass(frozen=True)
class Denoised(Wrapped):
    """Runs a post-processing step on the largest region, by default the denoiser, before `inner` looks.

    `step` is written as in `dpveil obfuscate --post-processing`: "denoiser", "median:3". Raises as
    `postprocessing.parse` does. Source: Reilly & Fan 2021 §3.4 (median); docs, "Post-processing".
    """

    name: ClassVar[str] = "denoised"
    summary: ClassVar[str] = "the denoiser's guess at the face under the noise, then another attack"
    needs: ClassVar[str] = "models"

    step: str = "denoiser"

    @property
    def label(self) -> str:
        """Its name, with a step that is not the usual one, and the inner attack."""
        kind, _, path = self.step.partition(":")
        step = f"{kind}:{Path(path).stem}" if opens(self.step) else self.step
        told = self.name if step == "denoiser" else f"{self.name}:{step}"
        return f"{told}({self.inner.label})"

    @property
    def opens(self) -> bool:
        return opens(self.step) or self.inner.opens

    @property
    def extras(self) -> tuple[str, ...]:
        return super().extras if self.step.startswith("denoiser") else self.inner.extras

    @classmethod
    def of(cls, text: str) -> Denoised:
        return cls(step=text)

    def undo(self, background: Background) -> Undo:
        step = parse(self.step)

        def denoise(levels: np.ndarray) -> np.ndarray:
            return step(np.ascontiguousarray(levels))

        return lambda views: tuple(_change_region(view, denoise) for view in views)


def _change_region(view: View, change: Callable[[np.ndarray], np.ndarray]) -> View:
    """Return a view with the hidden pixels of its largest region changed; all pixels if it has none."""
    box, image = largest_box(view), view.image.copy()
    part = (slice(None), slice(None)) if box is None else box.slices
    inner = np.ones(view.hidden.shape, np.bool_) if box is None else view.hidden[part]
    image[part] = np.where(inner[..., None], change(image[part]), image[part])
    return replace(view, image=image)


SIDE: Final = (46, 56)  # columns and rows of what the inverse reads and gives: half of AT&T's
INVERSE_RIDGE: Final = 0.1  # penalty of the inverse, relative to the mean variance of what it reads
FOLDS: Final = 5
"""Parts of the photos of which each is restored by an inverse that was learnt from the others."""


@dataclass(frozen=True)
class Restored(Wrapped):
    """Learns the linear map that takes releases nearest to their photos; `inner` sees what it gives.

    The map is a ridge regression of clean regions on released ones, by the attacker's own photos: the linear
    case of learning to undo a method before recognition (Todt, Hanisch & Strufe 2024, "Fantômas"). What the
    inner attack learns from is restored by inverses of other photos, as the map knows its own too well.
    """

    name: ClassVar[str] = "restored"
    summary: ClassVar[str] = "linear inverse of the method, learnt from releases, then another attack"

    def undo(self, background: Background) -> Undo:
        check_people(background)
        colour = has_colour(background)
        seen, clean = (rows_of(views, colour=colour) for views in (background.released, background.originals))
        inverse = Inverse.of(seen, clean)
        return lambda views: _invert_views(views, inverse, colour=colour)

    def held_out(self, background: Background, undo: Undo) -> tuple[View, ...]:
        """Return own releases, each restored by an inverse learnt from other photos.

        These show the same people, as the attacker has photos of everybody whom releases show.
        """
        fold, colour = folds(background), has_colour(background)
        seen, clean = (rows_of(views, colour=colour) for views in (background.released, background.originals))
        out = list(background.released)
        for one in np.unique(fold):
            rows = np.flatnonzero(fold == one)
            inverse = Inverse.of(seen[fold != one], clean[fold != one])
            done = _invert_views([out[row] for row in rows], inverse, colour=colour)
            for row, view in zip(rows, done, strict=True):
                out[row] = view
        return tuple(out)


@dataclass(frozen=True, eq=False)
class Inverse:
    """A ridge regression of clean pictures on released ones, by inner products with the known releases."""

    seen: Float64[np.ndarray, " d"]
    clean: Float64[np.ndarray, " d"]
    rows: Float64[np.ndarray, "n d"]
    weights: Float64[np.ndarray, "n d"]

    @classmethod
    def of(cls, seen: Float64[np.ndarray, "n d"], clean: Float64[np.ndarray, "n d"]) -> Inverse:
        rows = seen - seen.mean(axis=0)
        gram = rows @ rows.T
        size = max(float(np.trace(gram)) / len(gram), 1e-12)
        weights = np.linalg.solve(gram + INVERSE_RIDGE * size * np.eye(len(gram)), clean - clean.mean(axis=0))
        return cls(seen.mean(axis=0), clean.mean(axis=0), rows, weights)

    def undo(self, vectors: Float64[np.ndarray, "n d"]) -> Float64[np.ndarray, "n d"]:
        """Return the clean pictures that releases come from, as nearly as the map knows."""
        return np.asarray(self.clean + (vectors - self.seen) @ self.rows.T @ self.weights)


def folds(background: Background) -> Int64[np.ndarray, " n"]:
    """Return the part of each photo, such that those of other parts show everybody, if there are more."""
    fold = background.places % FOLDS
    if not fold.any():  # one photo of each person
        fold = background.owners % min(FOLDS, len(background.names))
    return fold


def rows_of(views: Sequence[View], *, colour: bool = False) -> Float64[np.ndarray, "n d"]:
    """Return the levels of what is seen, 0 to 1, in `SIDE` columns and rows, grey or of three channels."""
    return small(views, SIDE, colour=colour).reshape(len(views), -1)


def _invert_views(views: Sequence[View], inverse: Inverse, *, colour: bool) -> tuple[View, ...]:
    """Return views with what the inverse gives in their largest region, or in all of a photo without one."""
    levels = TOP * inverse.undo(rows_of(views, colour=colour)).reshape(
        -1, SIDE[1], SIDE[0], 3 if colour else 1
    )
    pictures = np.clip(np.rint(levels), 0, TOP).astype(np.uint8)
    return tuple(paste_picture(view, picture) for view, picture in zip(views, pictures, strict=True))


def paste_picture(view: View, picture: np.ndarray) -> View:
    """Return the view with a picture in its largest region, without colours if the photo has none."""
    if view.image.shape[2] == 1 and picture.ndim == 3:
        picture = np.rint(picture.mean(axis=2)).astype(np.uint8)

    def fitted(levels: np.ndarray) -> np.ndarray:
        size = levels.shape[1::-1]
        return cv2.resize(picture, size, interpolation=cv2.INTER_CUBIC).reshape(*levels.shape[:2], -1)

    return _change_region(view, fitted)
