"""Examples of hair: a public draw chooses one of those that suit the released face."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from statistics import NormalDist
from typing import Final

import numpy as np
from jaxtyping import Float32, Float64, Int64, UInt8

from dpveil.errors import ModelError
from dpveil.faces.geometry.head_frame import HEAD, MIDDLE, OVAL, inside, pixel_grid
from dpveil.faces.geometry.layout import BACKGROUND, CLASSES, CLOTHES, HAIR, LOOK, SKIN, neck
from dpveil.noise.bits import SeededBits

DARK: Final = 8.0
"""Levels that are added to those of hair and face before their ratio is taken."""
VARIED: Final = ((0.35, 0.05), (0.35, 0.01), (0.35, -0.06))
"""How red, green and blue of hair vary among people with such faces: by lightness, and by warmth. Standard
deviations of the logarithm; about six tenths of what was measured, so that nobody stands out."""
RATIOS: Final = (-1.5, -0.2)
"""Limits of the mean logarithm of the ratio of hair to face."""
TINTS: Final = (-0.12, 0.08)
"""Limits of the difference of each colour's logarithm to that mean."""
NEARLY: Final = (0.25, 0.1)
"""Differences in lightness, the mean of these logarithms, and in warmth, red less blue, by which an example
suits a colour: standard deviations."""
FARTHEST: Final = 40.0
"""The square of the largest such difference that counts, so that some example suits every colour."""
FEW: Final = 40
"""Least number of pixels of hair whose colour is changed."""
CLOSE: Final = 0.1
"""Least share by which hair is taken to be darker than the face."""
GAINS: Final = (0.6, 2.4)
"""Limits of the factors by which painted hair gets lighter."""
AHEAD: Final = 10.0
"""Degrees up to which a head looks ahead, so that its hair may be mirrored."""
NEAR: Final = 8.0
"""Largest difference between the turns of a head and of its example, in degrees, if there is one so near."""
SLACK: Final = 2.0
"""Degrees by which examples may be farther than the nearest, if none is near."""
FINE: Final = (32, 7)
"""Steps to 1 of styles and of looks in a file, where a byte holds two numbers of a look."""
NAMES: Final = ("styles", "looks", "groups", "ratios", "yaws", "likely", "colours")
"""Names of a file's arrays."""
MOST: Final = 255
"""Largest number of examples, and of groups."""
SIDES: Final = range(8, 65)
"""Possible sides of styles and looks, in pixels."""
LARGE: Final = 20.0
"""Largest absolute value of a ratio's logarithm, and of a weight in its regression."""
LARGER: Final = 1e4
"""Largest absolute value in the regression of groups."""
SMALL: Final = 16
"""Side of the square to which a face is reduced, in pixels."""
ROOM: Final = (0.98, 1.16)
"""Enlargements of the public shape of a head between which its hair ends, above its middle."""
ENDS: Final = (8.0, 0.15)
"""What is subtracted from the logits of hair beyond, and over which height it grows to that."""
BODY: Final = (BACKGROUND, SKIN, CLOTHES)
"""Classes of which an example says less and less below the chin: clothes go on with those outside."""
CHIN: Final = (0.66, 0.78)
"""Rows over which it does, in units of the frame's side."""
NATURAL: Final = ((0.55, 1.02), (0.3, 1.15))
"""Limits of green and of blue of hair, relative to red: from red hair to grey."""
FLAT: Final = 8.0
"""Levels that are added to the standard deviation of a face's levels before they are divided by it."""


@dataclass(frozen=True, eq=False)
class Hair:
    """Examples of hair and neck, from photos of many people, as numbers that a network paints from.

    `styles` are added to the logits of the classes of `layout`, 4 planes each; `looks`, from -1 to 1, say how
    hair and skin look at each place, `LOOK` planes each. `groups` are those of the layouts, and `likely` the
    weights of a logistic regression that says how well each group suits a face: one row a group, one column
    for each of the `features`, and the last for the constant. `ratios` are the logarithms of the ratio of the
    hair's red, green and blue to the face's, and `colours` the weights of a linear regression of them on
    faces. `yaws` are the turns of the examples' heads, in degrees.
    """

    styles: Float32[np.ndarray, "k 4 q q"]
    looks: Float32[np.ndarray, "k 8 r r"]
    groups: Int64[np.ndarray, " k"]
    ratios: Float32[np.ndarray, "k 3"]
    yaws: Float32[np.ndarray, " k"]
    likely: Float32[np.ndarray, "g f"]
    colours: Float32[np.ndarray, "3 f"]

    def tensors(self) -> dict[str, np.ndarray]:
        """Return the arrays of a file; `of_arrays` makes the examples of them."""
        return {
            "styles": _bytes(self.styles * FINE[0]),
            "looks": _packed(self.looks),
            "groups": self.groups.astype(np.uint8),
            "ratios": self.ratios.astype(np.float16),
            "yaws": _bytes(self.yaws),
            "likely": self.likely.astype(np.float16),
            "colours": self.colours.astype(np.float16),
        }

    @classmethod
    def of_arrays(cls, arrays: Mapping[str, np.ndarray]) -> Hair:
        """Return the examples of a file; raises `ModelError` if its arrays do not fit together."""
        styles, looks, groups, ratios, yaws, likely, colours = (arrays[name] for name in NAMES)
        if styles.dtype != np.int8 or looks.dtype != np.uint8 or yaws.dtype != np.int8:
            raise ModelError("the examples of hair are not in whole steps")
        count, groups_there, width = len(styles), len(likely), 3 * np.count_nonzero(_shown()) + 1
        if not 0 < count <= MOST or not 0 < groups_there <= MOST:
            raise ModelError(f"the examples of hair are not 1 to {MOST}")
        for planes, depth in ((styles, CLASSES), (looks, LOOK // 2)):
            if planes.ndim != 4 or planes.shape[2] != planes.shape[3] or planes.shape[2] not in SIDES:
                raise ModelError("the examples of hair have an unknown size")
            if planes.shape[:2] != (count, depth):
                raise ModelError("the examples of hair do not fit together")
        shapes = ((groups, (count,)), (ratios, (count, 3)), (yaws, (count,)))
        if any(one.shape != shape for one, shape in (*shapes, (likely, (groups_there, width)))):
            raise ModelError("the examples of hair do not fit together")
        if groups.dtype != np.uint8 or groups.max() >= groups_there:
            raise ModelError("the examples of hair are of groups that are not there")
        if colours.shape != (3, width):
            raise ModelError("the colours of hair do not fit together")
        for one, most in ((likely, LARGER), (colours, LARGE), (ratios, LARGE)):
            if not (np.abs(one) <= most).all():
                raise ModelError("the examples of hair have numbers that are too large")
        return cls(
            styles.astype(np.float32) / FINE[0],
            _unpacked(looks),
            groups.astype(np.int64),
            *(one.astype(np.float32) for one in (ratios, yaws, likely, colours)),
        )

    def of(
        self, face: Float32[np.ndarray, "s s 3"], number: int, yaw: float = 0.0
    ) -> tuple[Float32[np.ndarray, "12 s s"], bool]:
        """Return style and look of an example for a released face in its frame, and whether it is mirrored.

        `number` is public or released; `yaw` is that of the head, in degrees.
        """
        import cv2

        side = len(face)
        share = np.cumsum(self._suits(face, number) * self._turned(abs(yaw)))
        drawn, other = (int(word) / 2.0**64 for word in SeededBits(number, "hair").words(2))
        chosen = min(int(np.searchsorted(share, drawn * share[-1], side="right")), len(share) - 1)
        mirrored = other < 0.5 if abs(yaw) <= AHEAD else bool(self.yaws[chosen] * yaw < 0)
        style = _sized(self.styles[chosen], side, cv2.INTER_LINEAR)
        style[list(BODY)] *= _faded(side)
        style[HAIR] -= _beyond(side)
        return np.concatenate(
            [style + neck(side), _sized(self.looks[chosen], side, cv2.INTER_NEAREST)]
        ), mirrored

    def colour(self, face: Float32[np.ndarray, "s s 3"], number: int) -> Float64[np.ndarray, 3]:
        """Return a colour of hair that people with such a face have, drawn by a public or released `number`.

        These are logarithms of the ratio of red, green and blue to the face's.
        """
        wanted = self.colours[:, :-1] @ features(face) + self.colours[:, -1]
        bits = (int(word) >> 12 for word in SeededBits(number, "colour").words(2))
        wanted = wanted + np.array(VARIED) @ [NormalDist().inv_cdf((bit + 0.5) / 2**52) for bit in bits]
        light = wanted.mean()
        return np.asarray(light.clip(*RATIOS) + (wanted - light).clip(*TINTS), np.float64)

    def coloured(
        self,
        levels: Float32[np.ndarray, "s s 3"],
        layout: Float32[np.ndarray, "4 s s"],
        number: int,
        of: Float32[np.ndarray, "s s 3"] | None = None,
    ) -> Float32[np.ndarray, "s s 3"]:
        """Return a painted head with hair of the `colour` that it was to have: networks paint most too dark.

        `of` is the face whose colour that is, or else the painted one. A curve takes the median of the hair
        to it, and leaves what is as light as the face.
        """
        import cv2

        hair = layout[HAIR] > np.float32(0.9)
        face = levels[inside(OVAL, pixel_grid(len(levels)))]
        if np.count_nonzero(hair) < FEW:
            return levels
        own, skin = (np.median(one, axis=0) + np.float32(DARK) for one in (levels[hair], face))
        own = np.clip(own, 1, (1 - CLOSE) * np.maximum(skin, 2))  # hair as light as the face has no curve
        target = own * (np.exp(self.colour(levels if of is None else of, number)) * skin / own).clip(*GAINS)
        at = (levels + DARK).astype(np.float32)
        lighter = target + (at - own) * ((skin - target) / (skin - own))
        curve = np.where(at < own, at * (target / own), np.where(at < skin, lighter, at))
        share = np.clip(2 * cv2.GaussianBlur(layout[HAIR], (0, 0), 1.0), 0, 1)[..., None]
        return np.asarray(levels + share * (curve - at), np.float32)

    def _suits(self, face: Float32[np.ndarray, "s s 3"], number: int) -> Float64[np.ndarray, " k"]:
        """Return how well each example suits a face, by its layout and by the colour of its hair."""
        logits = (self.likely[:, :-1] @ features(face) + self.likely[:, -1])[self.groups].astype(np.float64)
        share = np.exp(logits - logits.max()) / np.bincount(self.groups)[self.groups]
        off = self.ratios - self.colour(face, number)
        apart = np.stack([off.mean(axis=1), off[:, 0] - off[:, 2]], axis=1) / np.array(NEARLY)
        return np.asarray(share * np.exp(-np.minimum((apart**2).sum(axis=1), FARTHEST) / 2), np.float64)

    def _turned(self, yaw: float) -> Float64[np.ndarray, " k"]:
        """Return 1 for examples that are turned by about so many degrees, to either side, or the nearest."""
        off = np.abs(np.abs(self.yaws) - yaw)
        return np.asarray(off <= max(NEAR, float(off.min()) + SLACK), np.float64)


def natural(
    levels: Float32[np.ndarray, "s s 3"], hair: Float32[np.ndarray, "s s"]
) -> Float32[np.ndarray, "s s 3"]:
    """Return a painted head whose hair has a colour that hair has; `hair` is its share, from 0 to 1.

    A layout may take a red coat for long hair, whose colour would go on up to the crown.
    """
    red, dark = levels[..., 0] + np.float32(DARK), np.float32(DARK)
    limits = [[red * np.float32(end) - dark for end in ends] for ends in NATURAL]
    bounded = [levels[..., 1 + k].clip(*ends) for k, ends in enumerate(limits)]
    into = np.dstack([levels[..., 0], *bounded])
    return np.asarray(levels + hair[..., None] * (into - levels), np.float32)


def _bytes(values: np.ndarray) -> np.ndarray:
    return np.asarray(np.rint(values).clip(-127, 127), np.int8)


def _packed(looks: Float32[np.ndarray, "k 8 r r"]) -> UInt8[np.ndarray, "k 4 r r"]:
    steps = (np.rint(looks.clip(-1, 1) * FINE[1]) + FINE[1] + 1).astype(np.uint8)
    return np.asarray(16 * steps[:, ::2] + steps[:, 1::2], np.uint8)


def _unpacked(packed: UInt8[np.ndarray, "k 4 r r"]) -> Float32[np.ndarray, "k 8 r r"]:
    steps = np.stack([packed >> 4, packed & 15], axis=2).astype(np.float32)
    looks = ((steps - FINE[1] - 1) / FINE[1]).clip(-1, 1)
    return np.asarray(looks.reshape(len(packed), LOOK, *packed.shape[2:]), np.float32)


def _sized(planes: Float32[np.ndarray, "c q q"], side: int, way: int) -> Float32[np.ndarray, "c s s"]:
    """Return planes of another size."""
    import cv2

    sized = cv2.resize(planes.transpose(1, 2, 0), (side, side), interpolation=way)
    return np.asarray(sized.transpose(2, 0, 1), np.float32)


@lru_cache(maxsize=4)
def _faded(side: int) -> Float32[np.ndarray, "s 1"]:
    """Return the share of what an example says of all but hair, by row."""
    rows = (np.arange(side) + 0.5) / side
    return np.clip((CHIN[1] - rows) / (CHIN[1] - CHIN[0]), 0, 1).astype(np.float32)[:, None]


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
