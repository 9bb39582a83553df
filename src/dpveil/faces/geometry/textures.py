"""Background and clothes around a painted head, in the textures of the photo: patches of it are copied."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Bool, Float32, Int64

from dpveil.faces import patches
from dpveil.faces.geometry.background import continued_from
from dpveil.faces.geometry.layout import BACKGROUND, CLOTHES
from dpveil.noise.backend import LOAD_COST
from dpveil.noise.backend import loops as compiled_loops

LEVELS: Final = ((4, 2, 5), (2, 2, 3), (1, 1, 1))
"""Sides of a pixel, in pixels of the frame, from the coarsest on; how often patches are searched and copied
there, and the rounds of each search."""
GUIDED: Final = 3.0
"""How much a difference of blurred levels counts beside that of the patches' levels: textures follow the
colours that the network painted."""
BLUR: Final = 4.0
"""Standard deviation of that blur, in pixels of the frame."""
NEAR: Final = 0.05
"""What the square of a distance counts beside that of levels, in pixels of the frame."""
WEIGHTS: Final = (5, 2)
"""Weights of the levels of a patch, where they are known and where they are made."""
HALF: Final = 0.5
"""Share of a class from which on a pixel shows it."""
MORE: Final = 2
"""Pixels by which textures go on behind the outline of a head."""
FEW: Final = (20, 0.05)
"""Least number of patches to copy, alone and for each pixel of their class that is to be made."""
OUTLINE: Final = 0.8
"""Standard deviation of the blur of the outline of a head, in pixels of the frame."""
OTHER: Final = (30.0, 55.0)
"""Levels between which clothes that were painted unlike any that are seen, such as a white collar, stay."""
SLACK: Final = 20.0
"""Least distance of patches at which they count about as much as identical ones."""
Levels = Float32[np.ndarray, "_ _ 3"]
Mask = Bool[np.ndarray, "_ _"]


@dataclass(frozen=True, eq=False)
class Textures:
    """Textures behind and below a head: `levels` 0..255 of the frame, where `alpha` from 0 to 1 shows them.

    `sources` are the places (y, x) of the frame that each pixel was copied from, and -1 where none was.
    """

    levels: Levels
    alpha: Float32[np.ndarray, "s s"]
    sources: Int64[np.ndarray, "s s 2"]

    def over(self, painted: Levels) -> Levels:
        """Return a painted head before and above the textures."""
        return np.asarray(painted + self.alpha[..., None] * (self.levels - painted), np.float32)


def textures(
    painted: Levels, light: Levels, known: Mask, layout: Float32[np.ndarray, "4 s s"]
) -> Textures | None:
    """Return textures for what a network painted of background and clothes, or None if there are none.

    `light` are the levels of the photo where they are `known`; `layout` are the shares of the classes. Every
    pixel is made of patches of the same class that are wholly known: of those that fit what is known around
    it, and what was painted, best. From coarse to fine, patches are searched and copied in turns.
    Source: Wexler, Shechtman & Irani 2007, "Space-time completion of video", section 3, with the search of
    `patches`.
    """
    share = layout[BACKGROUND] + layout[CLOTHES]
    shown = share > HALF
    whole = np.where(known[..., None], light, painted).clip(0, 255)
    whole = np.where(shown[..., None], whole, continued_from(whole, shown.astype(np.float32)))
    kinds = np.where(layout[BACKGROUND] >= layout[CLOTHES], 1, 2)
    behind = _dilated(shown, MORE) & ~known
    here: _Level | None = None
    for size, times, rounds in LEVELS:
        here = _Level.of(whole, known & shown, kinds, behind, size, here)
        if here is not None:
            here.improve(times, rounds)
    if here is None:
        return None
    import cv2

    alpha = np.where(here.made, cv2.GaussianBlur(share.astype(np.float32), (0, 0), OUTLINE), 0)
    off = cv2.GaussianBlur(np.abs(here.picture - whole).mean(axis=2), (0, 0), BLUR)
    worn = np.clip((off - OTHER[0]) / (OTHER[1] - OTHER[0]), 0, 1) * (kinds == 2)
    alpha *= 1 - cv2.GaussianBlur(worn.astype(np.float32), (0, 0), OUTLINE)
    return Textures(here.picture, np.asarray(alpha.clip(0, 1), np.float32), here.found)


@dataclass(eq=False)
class _Level:
    """One level of the pyramid: what is made of which patches so far."""

    picture: Levels
    guide: Levels
    sources: Int64[np.ndarray, "h w"]
    weights: Int64[np.ndarray, "h w"]
    made: Mask
    found: Int64[np.ndarray, "h w 2"]
    size: int

    @classmethod
    def of(
        cls,
        whole: Levels,
        known: Mask,
        kinds: Int64[np.ndarray, "s s"],
        behind: Mask,
        size: int,
        coarser: _Level | None,
    ) -> _Level | None:
        """Return a level that begins with what the coarser one has, or None if there is nothing to copy."""
        import cv2

        small = tuple(length // size for length in known.shape)
        picture = cv2.resize(whole, small[::-1], interpolation=cv2.INTER_AREA)
        sure = _small(known, size) > 1 - 1e-3
        made = (_small(behind, size) > 0) & ~sure
        kind = np.where(_small(kinds == 1, size) >= HALF, 1, 2)
        inner = np.ones((2 * patches.REACH + 1, 2 * patches.REACH + 1), np.uint8)
        full = cv2.erode(sure.astype(np.uint8), inner, borderValue=0) > 0
        sources = np.where(full, kind, 0)
        for one in (1, 2):
            own = made & (kind == one)
            if (sources == one).sum() < max(FEW[0], FEW[1] * own.sum()):
                made &= ~own
        if not made.any():
            return None
        guide = np.float32(GUIDED**0.5) * cv2.GaussianBlur(picture, (0, 0), BLUR / size)
        if coarser is not None:
            again = made & _larger(coarser.made, made.shape)
            picture[again] = cv2.resize(coarser.picture, small[::-1], interpolation=cv2.INTER_LINEAR)[again]
        weights = np.where(sure, WEIGHTS[0], np.where(made, WEIGHTS[1], 0))
        found = _begun(made, kind, sources, coarser)
        return cls(np.asarray(picture, np.float32), guide, sources, weights, made, found, size)

    def improve(self, times: int, rounds: int) -> None:
        """Search the patches that fit best, and make every pixel of those that hold it, in turns."""
        for _ in range(times):
            self._once(rounds)

    def _once(self, rounds: int) -> None:
        import cv2

        loops = compiled_loops((patches,), LOAD_COST + 1)  # the interpreter takes minutes
        reach, side = patches.REACH, 2 * patches.REACH + 1
        padded = cv2.copyMakeBorder(self.picture, reach, reach, reach, reach, cv2.BORDER_REPLICATE)
        picture = np.ascontiguousarray(np.rint(padded), np.int32).reshape(len(padded), -1)
        weights = np.pad(self.weights, reach).astype(np.int32)
        sums = cv2.boxFilter(weights.astype(np.float32), -1, (side, side), normalize=False)[
            reach:-reach, reach:-reach
        ]
        shares = np.asarray(1 / np.maximum(sums, 1), np.float32)
        targets = np.ascontiguousarray(np.argwhere(self.made))
        apart = np.zeros(self.made.shape)
        loops.search(
            picture,
            np.repeat(weights, 3, axis=1),
            np.ascontiguousarray(shares),
            self.guide,
            float(NEAR * self.size**2),
            self.sources,
            targets,
            self.found,
            apart,
            rounds,
            max(self.made.shape) // 2,
        )
        slack = max(float(np.percentile(apart[self.made], 75)), SLACK)
        along = np.exp(-2 * (np.arange(-reach, reach + 1) / reach) ** 2)
        votes = np.zeros((*padded.shape[:2], 4))
        counts = np.exp(-apart / slack) + 1e-6
        loops.vote(picture, targets, self.found, counts, np.outer(along, along), votes)
        inner = votes[reach:-reach, reach:-reach][self.made]
        self.picture[self.made] = (inner[:, :3] / inner[:, 3:]).astype(np.float32)


def _begun(
    made: Mask, kind: Int64[np.ndarray, "h w"], sources: Int64[np.ndarray, "h w"], coarser: _Level | None
) -> Int64[np.ndarray, "h w 2"]:
    """Return a first source for every pixel: the coarser level's, or any of its class."""
    found = np.full((*made.shape, 2), -1, np.int64)
    open_ = made.copy()
    if coarser is not None:
        times = made.shape[0] // coarser.made.shape[0]
        y, x = np.indices(made.shape)
        up = coarser.found[y // times, x // times] * times + np.stack([y % times, x % times], axis=2)
        fits = made & (coarser.found[y // times, x // times, 0] >= 0)
        up = up.clip(0, np.array(made.shape) - 1)
        fits &= sources[up[..., 0], up[..., 1]] == kind
        found[fits] = up[fits]
        open_ &= ~fits
    for one in (1, 2):
        places, own = np.argwhere(sources == one), open_ & (kind == one)
        if own.any():
            found[own] = places[np.arange(own.sum()) * 7919 % len(places)]
    return found


def _dilated(mask: Mask, pixels: int) -> Mask:
    import cv2

    square = np.ones((2 * pixels + 1, 2 * pixels + 1), np.uint8)
    return np.asarray(cv2.dilate(mask.astype(np.uint8), square) > 0)


def _small(mask: Mask, size: int) -> Float32[np.ndarray, "h w"]:
    """Return the share of a mask in squares of `size` × `size` pixels."""
    import cv2

    small = tuple(length // size for length in mask.shape)
    return np.asarray(cv2.resize(mask.astype(np.float32), small[::-1], interpolation=cv2.INTER_AREA))


def _larger(mask: Mask, shape: tuple[int, ...]) -> Mask:
    import cv2

    return np.asarray(cv2.resize(mask.astype(np.uint8), shape[::-1], interpolation=cv2.INTER_NEAREST) > 0)
