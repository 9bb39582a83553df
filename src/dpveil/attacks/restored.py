"""Reversal before recognition: an inverse of the method is learnt from releases, then people are named."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Final

import cv2
import numpy as np
from jaxtyping import Float64, Int64

from dpveil.attacks.base import Background, View
from dpveil.attacks.patches import TOP, coloured, largest_box, small
from dpveil.attacks.vectors import check_people
from dpveil.attacks.wrapped import Undo, Wrapped
from dpveil.postprocessing import Step, opens, parse


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
        step = f"{kind}:{Path(path).stem}" if self._own else self.step
        told = self.name if step == "denoiser" else f"{self.name}:{step}"
        return f"{told}({self.inner.label})"

    @property
    def opens(self) -> bool:
        """Whether the step takes a user's network, or the inner attack opens a file."""
        return self._own or self.inner.opens

    @property
    def _own(self) -> bool:
        return opens(self.step)

    @property
    def extras(self) -> tuple[str, ...]:
        """What the step and the inner attack need."""
        return super().extras if self.step.startswith("denoiser") else self.inner.extras

    @classmethod
    def of(cls, text: str) -> Denoised:
        """Return the attack with this step."""
        return cls(step=text)

    def undo(self, background: Background) -> Undo:
        """Return what runs the step; nothing is learnt."""
        step = parse(self.step)
        return lambda views: _stepped(views, step)


def _stepped(views: Sequence[View], step: Step) -> tuple[View, ...]:
    return tuple(_one(view, step) for view in views)


def _one(view: View, step: Step) -> View:
    box = largest_box(view)
    part = (slice(None), slice(None)) if box is None else box.slices
    inner = view.hidden[part] if box is not None else np.ones(view.hidden.shape, np.bool_)
    image = view.image.copy()
    image[part] = np.where(inner[..., None], step(np.ascontiguousarray(image[part])), image[part])
    return replace(view, image=image)


SIDE: Final = (46, 56)
"""Columns and rows of what the inverse reads and gives: half of AT&T's."""
RIDGE: Final = 0.1
"""Penalty of the inverse, relative to the mean variance of what it reads."""
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
        """Return the inverse that all photos of a background teach; raises `InvalidParameter`."""
        check_people(background)
        colour = coloured(background)
        seen, clean = (rows_of(views, colour=colour) for views in (background.released, background.originals))
        inverse = Inverse.of(seen, clean)
        return lambda views: _restored(views, inverse, colour=colour)

    def held_out(self, background: Background, undo: Undo) -> tuple[View, ...]:
        """Return own releases, each restored by an inverse learnt from other photos.

        These show the same people, as the attacker has photos of everybody whom releases show.
        """
        fold, colour = folds(background), coloured(background)
        seen, clean = (rows_of(views, colour=colour) for views in (background.released, background.originals))
        out = list(background.released)
        for one in np.unique(fold):
            rows = np.flatnonzero(fold == one)
            inverse = Inverse.of(seen[fold != one], clean[fold != one])
            done = _restored([out[row] for row in rows], inverse, colour=colour)
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
        """Return the regression of rows of `clean` on rows of `seen`."""
        rows = seen - seen.mean(axis=0)
        gram = rows @ rows.T
        size = max(float(np.trace(gram)) / len(gram), 1e-12)
        weights = np.linalg.solve(gram + RIDGE * size * np.eye(len(gram)), clean - clean.mean(axis=0))
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


def _restored(views: Sequence[View], inverse: Inverse, *, colour: bool) -> tuple[View, ...]:
    """Return views with what the inverse gives in their largest region, or in all of a photo without one."""
    levels = TOP * inverse.undo(rows_of(views, colour=colour)).reshape(
        -1, SIDE[1], SIDE[0], 3 if colour else 1
    )
    pictures = np.clip(np.rint(levels), 0, TOP).astype(np.uint8)
    return tuple(painted(view, picture) for view, picture in zip(views, pictures, strict=True))


def painted(view: View, picture: np.ndarray) -> View:
    """Return the view with a picture in its largest region, without colours if the photo has none."""
    box = largest_box(view)
    height, width = view.image.shape[:2] if box is None else (box.h, box.w)
    if view.image.shape[2] == 1 and picture.ndim == 3:
        picture = np.rint(picture.mean(axis=2)).astype(np.uint8)
    fitted = cv2.resize(picture, (width, height), interpolation=cv2.INTER_CUBIC).reshape(height, width, -1)
    image, part = view.image.copy(), (slice(None), slice(None)) if box is None else box.slices
    inner = np.ones((height, width), np.bool_) if box is None else view.hidden[part]
    image[part] = np.where(inner[..., None], fitted, image[part])
    return replace(view, image=image)
