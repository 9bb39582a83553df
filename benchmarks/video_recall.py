"""What of every face is replaced in every frame of the composites, and what flickers: for `video.py`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

import cv2
import numpy as np

from video_composites import BOX, FACE, Seen

COVERED = 0.95  # share of the pixels of a face that can be seen, from which it counts as replaced
VISIBLE = 0.5  # share of a face that can be seen, from which it counts at all


@dataclass(frozen=True)
class Ellipse:
    """What a tool replaces, by the box around it."""

    left: float
    top: float
    right: float
    bottom: float

    def draw(self, mask: np.ndarray) -> None:
        """Set the pixels inside."""
        middle = round((self.left + self.right) / 2 * 16), round((self.top + self.bottom) / 2 * 16)
        axes = round((self.right - self.left) * 8), round((self.bottom - self.top) * 8)
        cv2.ellipse(mask, middle, axes, 0, 0, 360, 1, -1, shift=4)


@dataclass
class Score:
    """Faces in frames that count, those that are replaced, and the share of all pixels that is.

    `gaps` are runs of frames in which a face shows between frames in which it is replaced, and `late` frames
    before it is replaced for the first time. `missed` are (head, frame, height) of every face that shows.
    """

    seen: int = 0
    found: int = 0
    boxes: int = 0
    gaps: int = 0
    flickers: int = 0
    late: int = 0
    never: int = 0
    area: list[float] = field(default_factory=list)
    missed: list[tuple[int, int, float]] = field(default_factory=list)

    def __add__(self, other: Score) -> Score:
        numbers = ("seen", "found", "boxes", "gaps", "flickers", "late", "never", "area", "missed")
        return Score(*(getattr(self, name) + getattr(other, name) for name in numbers))


def share(mask: np.ndarray, seen: Seen, bit: int) -> float:
    """Return which share of the visible pixels of a face, or of its box, is replaced; 1 without any."""
    high, wide = seen.bits.shape
    wanted = (seen.bits & bit) > 0
    replaced = mask[seen.top : seen.top + high, seen.left : seen.left + wide] > 0
    return float(np.count_nonzero(wanted & replaced) / max(1, np.count_nonzero(wanted)))


def score(truth: list[list[Seen]], masks: Sequence[np.ndarray]) -> Score:
    """Return the score of one clip from the pixels that are replaced in each frame."""
    total, told = Score(), dict[int, list[bool]]()
    for frame, (faces, mask) in enumerate(zip(truth, masks, strict=True)):
        total.area.append(float(mask.mean()))
        for face in faces:
            if face.share < VISIBLE:
                continue
            hit = share(mask, face, FACE) >= COVERED
            total.seen += 1
            total.found += hit
            total.boxes += share(mask, face, BOX) >= COVERED
            told.setdefault(face.head, []).append(hit)
            if not hit:
                total.missed.append((face.head, frame, face.height))
    for hits in told.values():
        runs = [(hit, len(list(run))) for hit, run in groupby(hits)]
        inside = [length for n, (hit, length) in enumerate(runs) if not hit and 0 < n < len(runs) - 1]
        total.gaps += len(inside)
        total.flickers += sum(inside)
        total.never += not any(hits)
        total.late += runs[0][1] if not runs[0][0] and any(hits) else 0
    return total


def drawn(shapes: list[Ellipse], size: tuple[int, int]) -> np.ndarray:
    """Return the pixels of shapes in a frame of this width and height."""
    mask = np.zeros(size[::-1], np.uint8)
    for shape in shapes:
        shape.draw(mask)
    return mask
