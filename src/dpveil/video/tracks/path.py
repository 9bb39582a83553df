"""The path of one object: what was seen of it in every frame, written as few keys whose lines hold it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Final

import numpy as np
from jaxtyping import Float

from dpveil.video.facts import Key

TOLERANCE: Final = 0.06
"""How far edges may be from straight lines between keys, relative to the box; boxes at keys grow by that."""
SPUN: Final = 1.0
"""How far turns that were followed may be from straight lines, in degrees."""
ANGLE: Final = 7.0
"""How far roll or yaw are from what was expected if they are news, in degrees."""
NEAR: Final = (3.0, 7.0)
"""How far roll and yaw may be from straight lines, in degrees; what is shown is rounded to 15° and 20°."""
CHUNK: Final = 512
"""Frames after which keys are fixed, so that a long path takes little memory."""
OUTWARD: Final = np.array([-1.0, -1.0, 1.0, 1.0])
Row = tuple[int, float, float, float, float]
"""A frame, and left, top, right and bottom in pixels."""
Turn = tuple[int, float, float, float]
"""A frame, roll and yaw in degrees, and how far the head was turned since it was first found."""


class Path:
    """The places of one object in every frame from its first to its last, in order."""

    def __init__(self) -> None:
        self._rows: list[Row] = []
        self._frames: list[int] = []
        self._boxes: list[np.ndarray] = []
        self._grown: list[np.ndarray] = []
        self._turns: list[Turn] = []
        self._spins: list[tuple[int, float]] = []

    def add(self, frame: int, box: Float[np.ndarray, " 4"], turned: float = 0.0) -> None:
        """Take the place in the next frame: left, top, right and bottom.

        The object was `turned` by so many degrees, clockwise, since any one time.
        """
        self._rows.append(_row(frame, box))
        self._spins.append((frame, turned))
        if len(self._rows) > CHUNK:
            self._fix()

    def widen(self, boxes: Mapping[int, tuple[Float[np.ndarray, " 4"], bool]]) -> None:
        """Hold further places too where keys are not fixed: those before the first, and others if sure."""
        fixed, rows = self._rows[: bool(self._frames)], self._rows[bool(self._frames) :]
        held = []
        for frame, *sides in rows:
            box, sure = boxes.get(frame, (np.array(sides), False))
            other = (box if sure else np.array(sides)) * OUTWARD
            held.append(_row(frame, np.maximum(np.array(sides) * OUTWARD, other) * OUTWARD))
        if not self._frames:
            first = rows[0][0]
            fixed = [_row(frame, boxes[frame][0]) for frame in sorted(boxes) if frame < first]
        self._rows = fixed + held

    def turn(self, frame: int, roll: float, yaw: float, turned: float = 0.0) -> bool:
        """Take the roll and yaw of a head in a frame, in degrees, and return whether they are news.

        It was `turned` as in `add`, which tells the roll from the one before.
        """
        news, expected = True, self.roll(turned)
        if expected is not None:
            roll = expected + (roll - expected + 180) % 360 - 180
            news = max(abs(roll - expected), abs(yaw - self._turns[-1][2])) > ANGLE
        self._turns.append((frame, roll, yaw, turned))
        return news

    def roll(self, turned: float) -> float | None:
        """Return the roll to expect of a head that was `turned` since the last one; None before any."""
        return self._turns[-1][1] + turned - self._turns[-1][3] if self._turns else None

    def __len__(self) -> int:
        """Return the number of keys that are fixed."""
        return len(self._frames)

    def written(self) -> tuple[Key, ...]:
        """Return the keys; on the straight lines between them, boxes hold every place that was added."""
        self._fix()
        first, last = self._frames[0], self._frames[-1]
        turns = _followed(self._turns, self._spins)
        frames = sorted({*self._frames, *(turn[0] for turn in turns if first < turn[0] < last)})
        grown = np.array(self._boxes) + np.array(self._grown) * OUTWARD
        boxes = _between(frames, self._frames, grown)
        angles = _between(frames, [turn[0] for turn in turns], np.array([turn[1:] for turn in turns]))
        return tuple(_key(*row) for row in zip(frames, boxes, angles, strict=True))

    def _fix(self) -> None:
        """Turn the rows into keys, of which the last one is where the next rows go on."""
        rows = np.array(self._rows)
        if len(rows) < 2 and self._frames:
            return
        spins = np.array(self._spins)
        near = np.full((len(spins), 1), SPUN)
        self._spins = [self._spins[n] for n in simplified(spins[:, 0], spins[:, 1:], near)]
        frames, boxes = rows[:, 0], rows[:, 1:]
        size = np.tile(boxes[:, 2:] - boxes[:, :2], 2)
        chosen = simplified(frames, boxes, TOLERANCE * size)
        grown = np.zeros((len(chosen), 4))
        for n, (i, j) in enumerate(pairwise(chosen)):
            line = _line(frames[i : j + 1], boxes[i : j + 1])
            beyond = ((boxes[i : j + 1] - line) * OUTWARD).max(axis=0, initial=0.0)
            grown[n : n + 2] = np.maximum(grown[n : n + 2], beyond)
        if self._frames:
            self._grown[-1] = np.maximum(self._grown[-1], grown[0])
            chosen, grown = chosen[1:], grown[1:]
        self._frames += [int(frames[i]) for i in chosen]
        self._boxes += [boxes[i] for i in chosen]
        self._grown += list(grown)
        self._rows = self._rows[-1:]


def _row(frame: int, box: Float[np.ndarray, " 4"]) -> Row:
    left, top, right, bottom = map(float, box)
    return frame, left, top, right, bottom


def simplified(
    frames: Float[np.ndarray, " n"], values: Float[np.ndarray, "n d"], near: Float[np.ndarray, "n d"]
) -> list[int]:
    """Return rows, with the first and the last, between which straight lines are as `near` to all others.

    Source: Douglas and Peucker 1973.

    >>> bend = np.array([[0.0], [1.0], [2.0], [1.0], [0.0]])
    >>> simplified(np.arange(5.0), bend, np.full((5, 1), 0.5))
    [0, 2, 4]
    """
    chosen, open_ = {0, len(frames) - 1}, [(0, len(frames) - 1)]
    while open_:
        i, j = open_.pop()
        if j - i < 2:
            continue
        part = slice(i, j + 1)
        off = (np.abs(values[part] - _line(frames[part], values[part])) / near[part]).max(axis=1)
        worst = int(off.argmax())
        if off[worst] > 1:
            chosen.add(i + worst)
            open_ += [(i, i + worst), (i + worst, j)]
    return sorted(chosen)


def _line(frames: Float[np.ndarray, " n"], values: Float[np.ndarray, "n d"]) -> Float[np.ndarray, "n d"]:
    """Return the straight line from the first value to the last."""
    share = (frames - frames[0])[:, None] / max(frames[-1] - frames[0], 1)
    return np.asarray(values[0] + share * (values[-1] - values[0]))


def _between(
    frames: Sequence[int], known: Sequence[int], values: Float[np.ndarray, "k d"]
) -> Float[np.ndarray, "n d"] | list[None]:
    """Return values on straight lines in `frames`, the outermost ones before and after; None without any."""
    if not len(known):
        return [None] * len(frames)
    return np.stack([np.interp(frames, known, column) for column in values.T], axis=1)


def _followed(turns: list[Turn], spins: list[tuple[int, float]]) -> list[tuple[int, float, float]]:
    """Return frames with roll and yaw, which straight lines between others do not tell.

    Between two `turns`, the roll changes as the head was turned, and what that missed is spread evenly.
    """
    if not turns:
        return []
    known, rolls, yaws, turned = np.array(turns).T
    seen, spun = np.array(spins).T
    frames = np.union1d(known, seen)
    rolled = np.interp(frames, seen, spun) + np.interp(frames, known, rolls - turned)
    rows = np.stack([rolled, np.interp(frames, known, yaws)], axis=1)
    chosen = simplified(frames, rows, np.broadcast_to(NEAR, rows.shape))
    return [(int(frames[n]), float(rows[n, 0]), float(rows[n, 1])) for n in chosen]


def _key(frame: int, box: Float[np.ndarray, " 4"], turn: Float[np.ndarray, " 2"] | None) -> Key:
    """Return a key with whole pixels that hold the box."""
    left, top = (math.floor(value + 1e-6) for value in box[:2])
    right, bottom = (math.ceil(value - 1e-6) for value in box[2:])
    roll, yaw = (0, None) if turn is None else (round((turn[0] + 180) % 360 - 180), round(turn[1]))
    return Key(frame, left, top, max(1, right - left), max(1, bottom - top), roll, yaw)
