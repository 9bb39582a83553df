"""Where heads are shown and what is replaced over time: a function of the rounded cells of a track's keys.

Each key is rounded to the public grid of photos (`faces.geometry.cell`). Nothing finer than these cells, and
the frames of the keys, is read here: whatever is shown tells no more of a path than they do.

*What is replaced holds the face.* A face whose centre, side and angle are at each of two keys within half a
cell of that key's cell, and which moves on a line between them, is at every frame within half a cell of the
`Course` there: its side, centre and angle are means of those of the cells with the same weights, and half a
cell is a fixed share of the side. So the shape of a cell, at that pose, holds it. The back of a turned head
is stretched in proportion to the class of its yaw, so the mean of two stretches is that of the mean yaw. ∎
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.cell import PITCH, ROLLS, Cell, cell_of, side
from dpveil.faces.geometry.head import between
from dpveil.faces.geometry.head_frame import MIDDLE, HeadFrame, Shape
from dpveil.faces.geometry.landmarks import SEEN, of_box
from dpveil.faces.geometry.protection import PROTECTIONS
from dpveil.video.track import Key

ROUNDS: Final = 150
"""Steps in which the calmest lines are approached; after any of them they are within their intervals."""
SLOPE: Final = 0.02
"""Weight of slopes beside that of bends: what can stay where it is does."""
PULL: Final = 0.1
"""Weight with which lines are drawn into their intervals (the step of the alternating directions)."""

Series = Float64[np.ndarray, " n"]
Lines = Float64[np.ndarray, "k n"]


def calm(frames: Series, middle: Lines, reach: Lines, near: Sequence[float] | None = None) -> Lines:
    """Return lines of values at `frames`, each within `reach` of its `middle`, that bend the least.

    A line that can be constant is. The others minimise the sum of squared bends, a little of slopes, and if
    given `near` times the squared distances from `middle`, for each line, by alternating directions (Boyd et
    al. 2011), with one factor of a banded matrix for all steps.
    """
    near = [0.0] * len(middle) if near is None else near
    low, high = middle - reach, middle + reach
    least, most = low.max(axis=1, keepdims=True), high.min(axis=1, keepdims=True)
    still = np.broadcast_to((least + most) / 2, middle.shape)
    if (least <= most).all():
        return np.array(still, np.float64)
    lines = np.array([_bent(frames, *line) for line in zip(middle, low, high, near, strict=True)])
    return np.asarray(np.where(least <= most, still, lines))


def _bent(frames: Series, middle: Series, low: Series, high: Series, near: float) -> Series:
    """Return a line between `low` and `high` with the least bends; two frames at least."""
    from scipy.linalg import cho_solve_banded, cholesky_banded

    energy = _energy(np.diff(frames) / np.diff(frames).mean())
    energy[0] += near
    factor = cholesky_banded(energy, lower=True)
    line, missed = middle.copy(), np.zeros(middle.shape)
    for _ in range(ROUNDS):
        smooth = cho_solve_banded((factor, True), PULL * (line - missed) + near * middle)
        line = np.clip(smooth + missed, low, high)
        missed += smooth - line
    return np.asarray(line)


def _energy(steps: Series) -> Float64[np.ndarray, "3 n"]:
    """Return the matrix of the squared bends and slopes of a line and of `PULL`: its diagonals, from the
    main one downwards. `steps` are those between the line's values.
    """
    count = len(steps) + 1
    bands = np.zeros((3, count))
    bands[0] = PULL
    slope = SLOPE / steps
    bands[0, :-1] += slope
    bands[0, 1:] += slope
    bands[1, :-1] -= slope
    before, after = 1 / steps[:-1], 1 / steps[1:]
    bend = np.array([before, -before - after, after])
    for first in range(3):
        for second in range(first, 3):
            bands[second - first, first : first + len(before)] += bend[first] * bend[second]
    return bands


ONE: Final = HeadFrame(1)
FINE: Final = "fine"
COARSE: Final = "coarse"
POSES: Final = (FINE, COARSE)
"""What is told of how a head is held: roll and yaw by its keys, or nothing, and less of its size."""
ROLL: Final = 2 * math.pi / ROLLS
"""Radians from one roll of a cell to the next."""
NEAR: Final = 0.03
"""How far the middle of the head that is shown may be from the line between keys, in sides of its frame,
where its motion changes."""
SWING: Final = 0.3
"""How near to the middle of its cells a roll is drawn, beside its bends (`calm`): a head that swings turns as
far as its cells do, and is not held back at the end of every swing."""
STEP: Final = 2
"""The scales of coarse cells are multiples of this."""


def cell_at(key: Key, protect: str, pose: str = FINE) -> Cell:
    """Return the cell of a face's key: all that is shown of its place.

    `protect` is one of `PROTECTIONS`. With the `pose` "coarse", a cell is upright, its yaw is not known, and
    its scale is rounded up to a multiple of `STEP`. Raises `RegionError` for a box that no head can have.

    >>> cell_at(Key(0, 300, 200, 90, 120), "head").numbers
    (25, 0, 41, 29)
    """
    fine = pose == FINE
    box = Box(key.x, key.y, key.w, key.h)
    head = between(of_box(box, -math.radians(key.roll) if fine else 0.0), SEEN, ONE)
    yaw = math.radians(key.yaw) if fine and key.yaw is not None else None
    cell = cell_of(head, yaw, box, protect)
    if fine or not cell.scale % STEP:
        return cell
    return Cell.near(head, None, raised=cell.scale - Cell.near(head, None).scale + STEP - cell.scale % STEP)


@dataclass(frozen=True, eq=False)
class Course:
    """The course of a head on straight lines between the cells of its keys.

    `frames` are those of the keys, strictly increasing. `protect` is one of `PROTECTIONS`.
    """

    frames: Series
    cells: tuple[Cell, ...]
    protect: str

    @classmethod
    def of(cls, keys: Sequence[Key], protect: str, pose: str = FINE) -> Course:
        """Return the course of keys in order of frames; raises `RegionError` as `cell_at` does."""
        frames = np.array([key.frame for key in keys], np.float64)
        if not len(keys) or not (np.diff(frames) > 0).all():
            raise RegionError(
                "the keys of a track are not in order of frames", hint="give each frame one key"
            )
        return cls(frames, tuple(cell_at(key, protect, pose) for key in keys), protect)

    @cached_property
    def _sides(self) -> Series:
        return np.array([side(cell.scale) for cell in self.cells])

    @cached_property
    def _centres(self) -> Float64[np.ndarray, "n 2"]:
        at = np.array([(cell.across + 0.5, cell.down + 0.5) for cell in self.cells])
        return np.asarray(at * PITCH * self._sides[:, None])

    @cached_property
    def _turns(self) -> Series:
        """Rolls in radians, clockwise, each the short way from the one before."""
        rolls = np.array([cell.roll for cell in self.cells], np.float64)
        return np.asarray(np.unwrap(rolls * ROLL))

    @cached_property
    def _stretches(self) -> Float64[np.ndarray, "n 2"]:
        shapes = [cell.shape(self.protect) for cell in self.cells]
        return np.array([(shape.left, shape.right) for shape in shapes])

    def outline(self, frame: float) -> tuple[Similarity, Shape]:
        """Return the map from the picture to a frame with a side of 1, and the shape that is replaced."""
        length, turn, x, y, left, right = (
            float(np.interp(frame, self.frames, part))
            for part in (self._sides, self._turns, *self._centres.T, *self._stretches.T)
        )
        kind = PROTECTIONS[self.protect]
        return _pose(length, turn, x, y), replace(kind.whole, left=left, right=right)

    @cached_property
    def _calm(self) -> Float64[np.ndarray, "4 n"]:
        """Logarithm of the side, roll, and centre (x, y) of the calmest course within the cells."""
        pitch, one = PITCH * self._sides, np.ones(len(self.cells))
        reach = np.array([one * math.log(1.25), one * ROLL, pitch, pitch]) / 2
        middle = np.array([np.log(self._sides), self._turns, *self._centres.T])
        return calm(self.frames, middle, reach, (0.0, SWING, 0.0, 0.0))

    @cached_property
    def _bends(self) -> tuple[Series, Float64[np.ndarray, "4 m"]]:
        """Frames, and the calm course there: at keys, and from where on it is straight to the next key.

        Where the head changes its motion so abruptly that a curve over the whole time to the next key would
        be farther than `NEAR` from the line, it only bends for so long that it is not. A curve of n frames
        is at most n · 4/27 changes of motion away from the line (Hermite's cubic that begins at rest).
        """
        moves = np.diff(self._calm[2:], axis=1) / np.diff(self.frames)
        change = np.hypot(*np.diff(moves, axis=1, prepend=moves[:, :1], append=moves[:, -1:]))
        bend = np.maximum(1.0, NEAR * self._sides * 27 / 4 / np.maximum(change, 1e-9))
        half = np.diff(self.frames) / 2
        after = (self.frames[:-1] + bend[:-1])[bend[:-1] < half]
        before = (self.frames[1:] - bend[1:])[bend[1:] < half]
        at = np.unique(np.concatenate([self.frames, after, before]))
        return at, np.stack([np.interp(at, self.frames, line) for line in self._calm])

    @cached_property
    def _between(self) -> Callable[[float], Series]:
        """That course between its keys, smooth and within their values (Fritsch & Carlson 1980)."""
        from scipy.interpolate import PchipInterpolator

        if len(self.frames) < 2:
            return lambda _: self._calm[:, 0]
        frames, lines = self._bends
        found: Callable[[float], Series] = PchipInterpolator(frames, lines, axis=1)
        return found

    def shown(self, frame: float) -> Similarity:
        """Return the map from the picture to a frame with a side of 1, of the head that is shown.

        It is the calmest course through the cells: a head that hardly moves does not move, though its cells
        change.
        """
        inside = min(max(frame, self.frames[0]), self.frames[-1])
        size, turn, x, y = (float(part) for part in self._between(inside))
        return _pose(math.exp(size), turn, x, y)

    @cached_property
    def _yaws(self) -> tuple[Series, list[int | None]]:
        """Frames from which on a class of yaw is shown, and that class: one that two keys agree on."""
        known = [n for n, cell in enumerate(self.cells) if cell.yaw is not None]
        if not known:
            return self.frames[:1], [None]
        frames, told = self.frames[known], [self.cells[n].yaw for n in known]
        starts, classes = [float(frames[0])], [told[0]]
        for n in range(1, len(known) - 1):
            if told[n] == told[n + 1] != classes[-1]:
                starts.append(float(frames[n - 1] + frames[n]) / 2)
                classes.append(told[n])
        return np.array(starts), classes

    @property
    def yaws(self) -> set[int | None]:
        """All classes of yaw that are shown; None alone if no key knows its yaw."""
        return set(self._yaws[1])

    def faces(self, frame: float, fade: float) -> list[tuple[int | None, float]]:
        """Return the classes of yaw that are shown in a frame, and their shares, which add up to 1.

        From one class to the next it takes `fade` frames.
        """
        starts, classes = self._yaws
        at = int(np.searchsorted(starts, frame, "right")) - 1
        at = max(at, 0)
        for other, from_start in ((at - 1, frame - starts[at]), (at + 1, None)):
            if not 0 <= other < len(classes):
                continue
            away = from_start if from_start is not None else starts[other] - frame
            if away < fade / 2:
                share = 0.5 - away / fade
                return [(classes[at], 1 - share), (classes[other], share)]
        return [(classes[at], 1.0)]

    @property
    def largest(self) -> float:
        """The largest side of the head's frame, in pixels of the picture."""
        return float(self._sides.max())


def _pose(length: float, turn: float, x: float, y: float) -> Similarity:
    """Return the map to a frame with a side of 1 of a head with this side, roll and centre, in pixels from
    the picture's left top.
    """
    turned = Similarity(1 / length, -turn, 0.0, 0.0)
    move = np.array(MIDDLE) - turned.to(np.array([[x - 0.5, y - 0.5]]))[0] - 0.5
    return replace(turned, x=float(move[0]), y=float(move[1]))
