"""The newest frames of a shot, as small grey copies in which boxes are followed both ways."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import UInt8

from dpveil.video.facts import Facts, Frame
from dpveil.video.tracks.flow import follow, small
from dpveil.video.tracks.trace import Edges, Place, outside

MOST: Final = 120
"""The most frames that are remembered besides the newest: 30 MB. At high rates, some are left out."""

Step = tuple[Edges, bool, float]
"""Where a box is, whether that is sure, and by how many degrees its contents were turned, clockwise."""


@dataclass(frozen=True, eq=False)
class Moment:
    """A frame's number, its time since the first one, and a small grey copy with its scale."""

    frame: int
    seconds: Fraction
    grey: UInt8[np.ndarray, "h w"]
    scale: float

    @classmethod
    def of(cls, frame: Frame, facts: Facts) -> Moment:
        """Return the moment of a frame."""
        return cls(frame.index, (frame.time - facts.start) * facts.time_base, *small(frame.image))


class Memory:
    """The frames of a shot of at most `back` seconds, and the newest one in any case."""

    def __init__(self, facts: Facts, back: Fraction) -> None:
        self._size, self._back = (facts.width, facts.height), back
        self._moments: deque[Moment] = deque()
        self.newest: Moment | None = None
        """The frame that was added last; None at the start of a shot."""

    def __len__(self) -> int:
        """Return the number of frames that are remembered besides the newest."""
        return len(self._moments)

    def add(self, moment: Moment) -> None:
        """Remember the next frame, and forget those that are too old."""
        kept, before = self._moments, self.newest
        if before is not None and (not kept or before.seconds - kept[-1].seconds >= self._back / MOST):
            kept.append(before)
        while kept and moment.seconds - kept[0].seconds > self._back:
            kept.popleft()
        self.newest = moment

    def clear(self) -> None:
        """Forget all, as a shot begins."""
        self._moments.clear()
        self.newest = None

    def forwards(self, now: Moment, boxes: Sequence[Edges]) -> list[Step]:
        """Return where boxes of the newest frame are in the next one."""
        return [(box, False, 0.0) for box in boxes] if self.newest is None else _step(self.newest, now, boxes)

    def backwards(self, now: Moment, boxes: Sequence[Edges]) -> list[list[Place]]:
        """Return where boxes of the next frame were in those that are remembered, the earliest first.

        Where flow loses one, it is held to the first frame. One that comes into the picture begins there.
        """
        places: list[list[Place]] = [[] for _ in boxes]
        newest, sure, inside = list(boxes), [True] * len(boxes), [True] * len(boxes)
        turned = [0.0] * len(boxes)
        later = now
        for moment in (*([] if self.newest is None else [self.newest]), *reversed(self._moments)):
            if now.seconds - moment.seconds > self._back:
                break
            asked = [n for n in range(len(boxes)) if sure[n] and inside[n]]
            moved = _step(later, moment, [newest[n] for n in asked])
            for n, (box, known, turn) in zip(asked, moved, strict=True):
                newest[n], sure[n] = box, known
                turned[n] += turn
                inside[n] = not outside(box, *self._size)
            for n in range(len(boxes)):
                if inside[n]:
                    places[n].append(Place(moment.frame, moment.seconds, newest[n], sure[n], turned[n]))
            later = moment
        return [one[::-1] for one in places]


def _step(before: Moment, after: Moment, boxes: Sequence[Edges]) -> list[Step]:
    """Return where boxes of one frame are in another, in pixels of the clip."""
    if not boxes:
        return []
    scaled = np.array(boxes).reshape(-1, 4) * before.scale
    rows = zip(*follow(before.grey, after.grey, scaled), strict=True)
    return [(box / before.scale, bool(known), float(turn)) for box, known, turn in rows]
