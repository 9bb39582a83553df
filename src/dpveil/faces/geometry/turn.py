"""Turning: a released face looks to the side to which the head in the photo was turned, by its public cell.

The face is the texture of a mean head that is turned about its vertical axis and seen from far away. Lengths
are in units of UTKFace's crop; x and z are from the head's plane of symmetry and from the eyes, towards the
right of the image and towards the camera.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import lru_cache
from typing import Final

import numpy as np

from dpveil.core.array_types import Float32, Float64, Shaped, UInt8
from dpveil.errors import RegionError, UsageError
from dpveil.faces.geometry.align import FIVE, Frame, Points, Similarity, of_points
from dpveil.faces.geometry.head_frame import grid
from dpveil.faces.geometry.landmarks import Landmarks, pose_of, predictor
from dpveil.opencv import cv2

ENOUGH: Final = 5
"""Least difference, in degrees, between a face's own yaw and the wanted one for it to be turned."""
OWN: Final = 30  # largest yaw that a released face is taken to have by itself, in degrees
STEP: Final = 4  # degrees to which that is rounded
MIDDLE: Final = FIVE[4][0]  # the head's plane of symmetry: the x of the base of the nose
OUTLINE: Final = (0.42, 0.62, 0.44)
"""Ellipse of the head's outline: its middle row, half its height and half its width."""
FULL: Final = 3.0  # exponent of the upper half of that outline, which is fuller than an ellipse
NECK: Final = 0.40  # least share of that width, at the neck and at the crown
DEEP: Final = 0.52  # how far the widest part of the head is behind its face: 9 cm of a mean adult head
PROFILE: Final = np.array(
    (
        (-0.40, -0.15, 0.05, 0.20, 0.305, 0.45, 0.66, 0.74, 0.84, 0.93, 1.00, 1.10, 1.40),
        (-0.22, -0.04, 0.02, 0.03, 0.0, 0.0, 0.035, 0.04, 0.01, 0.025, 0.0, -0.20, -0.25),
    )
)
"""Rows, and the z of the middle of the face there, without the nose; depths are those of `pose.HEAD`."""
NOSE: Final = np.array(
    (
        (0.24, 0.305, 0.40, 0.50, 0.56, 0.60, 0.65),
        (0.0, 0.03, 0.07, 0.11, 0.12, 0.105, 0.0),
        (0.08, 0.08, 0.09, 0.10, 0.11, 0.11, 0.11),
    )
)
"""Rows, the height of the nose above that profile, and its width: so flat that it hides hardly anything of
the face behind it at 40°."""
FINER: Final = 2  # how many times finer turned faces are sampled than they are shown
ROWS: Final = np.linspace(-0.4, 1.4, 61)  # rows of the model
ANGLES: Final = np.radians(np.linspace(-110, 110, 221))
"""Angles around the head at which its surface is modelled; 0 is the middle of the face."""
ACROSS: Final = np.linspace(-1.2, 1.2, 241)  # columns of the model, from the plane of symmetry
EDGE: Final = (0.004, 0.020)
"""How far inside its outline a turned head begins to show, and the width of that soft edge."""
ONE: Final = Similarity(1.0, 0.0, 0.0, 0.0)  # the identity
Table = Float64[np.ndarray, "r a"]
Row = Float64[np.ndarray, "_"]
Picture = Shaped[np.ndarray, "s s 3"]
Plane = Float32[np.ndarray, "..."]
Crop = UInt8[np.ndarray, "s s 3"]


@dataclass(frozen=True)
class Turn:
    """A turn of a head from the yaw `own` to the yaw `wanted`, both in degrees."""

    own: int
    wanted: int

    def of(self, picture: Picture, frame: Frame) -> tuple[Picture, Plane]:
        """Return a picture of the head in `frame`, turned, and how much of the head shows, from 0 to 1.

        The five landmarks of the turned mean head fit those of the frame best, as those of the head in the
        photo do. Beyond its outline on the far side, and where a crop does not show the side of a head, the
        picture is mirrored.
        """
        x, y, share = _maps(self, frame)
        fine = cv2.remap(picture, x, y, cv2.INTER_CUBIC, borderMode=cv2.BORDER_REFLECT_101)
        there = cv2.resize(fine, (frame.size, frame.size), interpolation=cv2.INTER_AREA)
        return np.asarray(there), share


def turn_of(own: float, wanted: int) -> Turn | None:
    """Return how a face with its `own` yaw is turned to a yaw in degrees; None if it looks there already."""
    own = STEP * round(own / STEP)
    return Turn(own, wanted) if abs(wanted - own) >= ENOUGH else None


def yaw_of(crop: Crop, frame: Frame) -> float:
    """Return the yaw of a released face in degrees, at most `OWN` to either side, by five landmarks.

    It is 0 where landmarks are not installed or no head explains them.
    """
    try:
        found = predictor().look(crop, frame)
        yaw = math.degrees(pose_of(Landmarks(found, 0.0, 0.0)).yaw)
    except (RegionError, UsageError):  # the face was released and paid for: it is shown in any case
        return 0.0
    return max(-OWN, min(OWN, yaw))


def landmarks_at(yaw: float) -> Points:
    """Return the five landmarks of the mean head turned by `yaw`, in radians."""
    five = np.array(FIVE)
    x, z = _surface(five[:, 1])
    near = np.abs(x - (five[:, :1] - MIDDLE)).argmin(axis=1)
    rows = np.arange(len(five))
    found: Points = np.stack([MIDDLE + _seen_at(x, z, yaw)[rows, near], five[:, 1]], axis=1)
    return found


def _surface(rows: Row) -> tuple[Table, Table]:
    """Return x and z of the mean head at these rows, at each of `ANGLES`."""
    middle, high, wide = OUTLINE
    far = np.minimum(np.abs(rows - middle) / high, 1)
    power = np.where(rows < middle, FULL, 2)
    x = wide * np.maximum((1 - far**power) ** (1 / power), NECK)[:, None] * np.sin(ANGLES)
    front = np.interp(rows, *PROFILE)[:, None]
    ridge, width = (np.interp(rows, NOSE[0], part)[:, None] for part in NOSE[1:])
    nose = ridge * np.exp(-((x / width) ** 2)) * (np.cos(ANGLES) > 0)
    return x, front - DEEP * (1 - np.cos(ANGLES)) + nose


def _seen_at(x: np.ndarray, z: np.ndarray, yaw: float) -> np.ndarray:
    """Return the columns at which positions of a head that is turned by `yaw` are seen."""
    columns: np.ndarray = x * math.cos(yaw) + z * math.sin(yaw)
    return columns


@lru_cache(maxsize=32)
def _maps(turn: Turn, frame: Frame) -> tuple[np.ndarray, np.ndarray, Plane]:
    """Return where pixels of a turned head were before, in pixels of the frame, and how much of it shows.

    Positions are `FINER` than pixels, as the far side is shown smaller than it was, and of OpenCV's fixed
    points.
    """
    before, after = math.radians(turn.own), math.radians(turn.wanted)
    table, inside = _columns(before, after)
    to = of_points(landmarks_at(after), np.array(FIVE))
    along = grid(Frame(FINER * frame.size, frame.margin))[0, :, 0].astype(np.float32)
    right, low = _affine(to.inverse.matrix, along, along[:, None])
    across, down = _indices(ACROSS, right - np.float32(MIDDLE)), _indices(ROWS, low)
    column, deep = (
        cv2.remap(one, across, down, cv2.INTER_LINEAR, borderMode=cv2.BORDER_REPLICATE)
        for one in (table, inside)
    )
    part = np.clip((deep - np.float32(EDGE[0])) / np.float32(EDGE[1]), 0, 1)
    share = cv2.resize(part * part * (3 - 2 * part), (frame.size, frame.size), interpolation=cv2.INTER_AREA)
    x, y = _affine(of_points(landmarks_at(before), frame.points()).matrix, column + np.float32(MIDDLE), low)
    return *cv2.convertMaps(x, y, cv2.CV_16SC2), np.asarray(share, np.float32)


def _affine(matrix: Float64[np.ndarray, "2 3"], x: Plane, y: Plane) -> tuple[Plane, Plane]:
    """Return where an affine map takes positions."""
    right, down = (a * x + (b * y + c) for a, b, c in matrix.tolist())
    return right, down


def _indices(grid: Float64[np.ndarray, " n"], at: Plane) -> Plane:
    """Return positions as indices of an even grid, with fractions."""
    first, second = grid[:2].tolist()
    return np.asarray((at - np.float32(first)) * np.float32(1 / (second - first)), np.float32)


@lru_cache(maxsize=128)
def _columns(before: float, after: float) -> tuple[Float32[np.ndarray, "r c"], Float32[np.ndarray, "r c"]]:
    """Return, for `ROWS` × `ACROSS` of a head turned to `after`, the columns where it is seen at `before`.

    Also returns how far within its outline on the far side each position is.
    """
    x, z = _surface(ROWS)
    old, new = _seen_at(x, z, before), _seen_at(x, z, after)
    rightwards = after > before
    if not rightwards:
        old, new = -old[:, ::-1], -new[:, ::-1]
    rows = [_row(*both) for both in zip(old, new, strict=True)]
    table, inside = (np.array(part, np.float32) for part in zip(*rows, strict=True))
    return (table, inside) if rightwards else (-table[:, ::-1], inside[:, ::-1])


def _row(old: Row, new: Row) -> tuple[Row, Row]:
    """Return one row of `_columns`, for a turn towards the right.

    Of positions at one column, the one that is nearest to the camera has the least angle.
    """
    half = len(old) // 2
    (start, last), (first, far) = (
        (int(np.argmin(one[:half])), half + int(np.argmax(one[half:]))) for one in (old, new)
    )
    index = np.arange(len(old))
    source = old[np.where(index < start, np.minimum(2 * start - index, len(old) - 1), index)]
    front = np.maximum.accumulate(new[first : far + 1])
    ahead = np.flatnonzero(np.diff(front, prepend=-np.inf) > 1e-9)
    column = np.interp(ACROSS, front[ahead], source[first : far + 1][ahead])
    beyond = np.maximum(ACROSS - new[far], 0)
    band = max(0.5 - old[last], 0.04)
    mirrored = old[last] + band * (1 - np.abs(np.mod(beyond / band, 2) - 1))
    nearer = source[first] + np.minimum(ACROSS - new[first], 0)
    column = np.where(beyond > 0, mirrored, np.where(new[first] > ACROSS, nearer, column))
    return column, new[far] - ACROSS
