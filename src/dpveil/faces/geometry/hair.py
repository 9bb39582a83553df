"""Styles of hair: which one a head gets is drawn from public bits, by how well it suits the released face."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from jaxtyping import Float32

from dpveil.errors import ModelError
from dpveil.faces.geometry.head import inside
from dpveil.faces.geometry.head_frame import HEAD, MIDDLE, OVAL, pixel_grid
from dpveil.faces.geometry.layout import CLASSES, HAIR
from dpveil.noise.bits import SeededBits

FEW: Final = 40
"""Least number of pixels of hair whose colour is changed."""
DARK: Final = 8.0
"""Levels that are added to those of hair and face before their ratio is taken."""
VARIED: Final = ((0.35, 0.05), (0.35, 0.01), (0.35, -0.06))
"""How red, green and blue of hair vary among people with such faces: by lightness, and by warmth. Standard
deviations of the logarithm; about six tenths of what was measured, so that nobody stands out."""
RATIOS: Final = (-1.7, -0.2)
"""Limits of the mean logarithm of the ratio of hair to face."""
TINTS: Final = (-0.12, 0.08)
"""Limits of the difference of each colour's logarithm to that mean."""
CLOSE: Final = 0.1
"""Least share by which hair is taken to be darker than the face."""
GAINS: Final = (0.6, 2.4)
"""Limits of the factors by which painted hair gets lighter."""
MOST: Final = 64
"""Largest number of styles."""
SIDES: Final = range(8, 65)
"""Possible sides of a style, in pixels."""
LARGE: Final = 20.0
"""Largest absolute value in a style."""
LARGER: Final = 1e4
"""Largest absolute value in a regression."""
SMALL: Final = 16
"""Side of the square to which a face is reduced, in pixels."""
ROOM: Final = (0.98, 1.16)
"""Enlargements of the public shape of a head between which its hair ends, above its middle."""
ENDS: Final = (8.0, 0.15)
"""What is subtracted from the logits of hair beyond, and over which height it grows to that."""
FLAT: Final = 8.0
"""Levels that are added to the standard deviation of a face's levels before they are divided by it."""


@dataclass(frozen=True, eq=False)
class Hair:
    """Styles of hair: `styles` are added to the logits of the classes of `layout`, 4 planes each.

    `likely` are the weights of a logistic regression that says how well each suits a face: one row a style,
    one column for each of the `features`, and the last for the constant. `colours` are those of a linear
    regression of red, green and blue: the logarithms of the ratio of the hair's levels to the face's.
    """

    styles: Float32[np.ndarray, "k 4 q q"]
    likely: Float32[np.ndarray, "k f"]
    colours: Float32[np.ndarray, "3 f"]

    @classmethod
    def of_arrays(cls, styles: np.ndarray, likely: np.ndarray, colours: np.ndarray) -> Hair:
        """Return the styles of hair of a file; raises `ModelError` if its arrays do not fit together."""
        count, *planes = styles.shape
        if not 0 < count <= MOST or planes[1:] != 2 * planes[-1:] or planes[-1] not in SIDES:
            raise ModelError("the styles of hair have an unknown size")
        if planes[0] != CLASSES or likely.shape != (count, 3 * np.count_nonzero(_shown()) + 1):
            raise ModelError("the styles of hair do not fit together")
        if colours.shape != (3, likely.shape[1]):
            raise ModelError("the colours of hair do not fit together")
        if not (np.abs(likely) <= LARGER).all() or not (np.abs(styles) <= LARGE).all():
            raise ModelError("the styles of hair have numbers that are too large")
        if not (np.abs(colours) <= LARGE).all():
            raise ModelError("the colours of hair have numbers that are too large")
        return cls(styles.astype(np.float32), likely.astype(np.float32), colours.astype(np.float32))

    def of(self, face: Float32[np.ndarray, "s s 3"], number: int) -> Float32[np.ndarray, "4 s s"]:
        """Return a style for a released face in its frame; `number` is public or released."""
        import cv2

        logits = self.likely[:, :-1] @ features(face) + self.likely[:, -1]
        share = np.exp((logits - logits.max()).astype(np.float64))
        drawn = SeededBits(number, "hair").words(1)[0] / 2.0**64
        chosen = int(np.searchsorted(np.cumsum(share), drawn * share.sum(), side="right"))
        planes = self.styles[min(chosen, len(share) - 1)].transpose(1, 2, 0)
        out = np.array(cv2.resize(planes, face.shape[:2]).transpose(2, 0, 1))
        out[HAIR] -= _beyond(len(face))
        return out

    def coloured(
        self, levels: Float32[np.ndarray, "s s 3"], layout: Float32[np.ndarray, "4 s s"], number: int
    ) -> Float32[np.ndarray, "s s 3"]:
        """Return a painted head with hair of a colour that people with such a face have, drawn by a public
        or released `number`: networks paint most hair black.

        A curve takes the median of the hair to the new one, and leaves what is as light as the face.
        """
        import cv2

        hair = layout[HAIR] > np.float32(0.9)
        face = levels[inside(OVAL, pixel_grid(len(levels)))]
        if np.count_nonzero(hair) < FEW:
            return levels
        own, skin = (np.median(one, axis=0) + np.float32(DARK) for one in (levels[hair], face))
        wanted = self.colours[:, :-1] @ features(levels) + self.colours[:, -1]
        bits = (int(word) >> 12 for word in SeededBits(number, "colour").words(2))
        wanted = wanted + np.array(VARIED) @ [NormalDist().inv_cdf((bit + 0.5) / 2**52) for bit in bits]
        light = wanted.mean()
        wanted = light.clip(*RATIOS) + (wanted - light).clip(*TINTS)
        own = np.clip(own, 1, (1 - CLOSE) * np.maximum(skin, 2))  # hair as light as the face has no curve
        target = own * (np.exp(wanted) * skin / own).clip(*GAINS)
        at = (levels + DARK).astype(np.float32)
        lighter = target + (at - own) * ((skin - target) / (skin - own))
        curve = np.where(at < own, at * (target / own), np.where(at < skin, lighter, at))
        share = np.clip(2 * cv2.GaussianBlur(layout[HAIR], (0, 0), 1.0), 0, 1)[..., None]
        return np.asarray(levels + share * (curve - at), np.float32)


@lru_cache(maxsize=4)
def _beyond(side: int) -> Float32[np.ndarray, "s s"]:
    """Return what is subtracted from the logits of hair around a head, so that it does not go on there."""
    grid = pixel_grid(side)
    far = np.clip((HEAD.far(grid) - ROOM[0]) / (ROOM[1] - ROOM[0]), 0, 1)
    return np.asarray(ENDS[0] * far * np.clip((MIDDLE[1] - grid[..., 1]) / ENDS[1], 0, 1), np.float32)


def features(face: Float32[np.ndarray, "s s 3"]) -> Float32[np.ndarray, " f"]:
    """Return the colours of a reduced face within its oval, without their mean and scale."""
    import cv2

    x, y, a, b = OVAL
    side = len(face)
    ends = ((y - b, y + b), (x - a, x + a))
    rows, columns = (slice(*(round(end * side) for end in both)) for both in ends)
    few = cv2.resize(face[rows, columns], (SMALL, SMALL), interpolation=cv2.INTER_AREA)[_shown()]
    return np.asarray(((few - few.mean()) / (few.std() + np.float32(FLAT))).ravel(), np.float32)


@lru_cache(maxsize=1)
def _shown() -> np.ndarray:
    """Return which pixels of a reduced face are within its oval."""
    return inside((0.5, 0.5, 0.5, 0.5), pixel_grid(SMALL))
