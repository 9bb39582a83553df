"""What each frame of a clip shows on its own: where shots begin, and what finders see in some frames.

The newest frames of a shot are kept as small grey copies, in which boxes are followed both ways.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.core.array_types import Float32, UInt8
from dpveil.core.parameters import Between
from dpveil.core.photo import Photo
from dpveil.core.region_origin import FACE
from dpveil.opencv import cv2
from dpveil.regions.finder import Finder, Seen
from dpveil.video.facts import Facts, Frame
from dpveil.video.tracks.box_flow import GreyFrame, follow, small
from dpveil.video.tracks.live_track import Edges, Place, is_outside

LONG_SIDE: Final = 1280  # longer side, in pixels, to which frames are downscaled that are searched


@dataclass(frozen=True, kw_only=True)
class TrackSettings:
    """How tracks are found; times are in seconds.

    Frames are searched at least `every` so often (0: every frame). A new track is followed `backwards` for so
    long, at least to the search before and at most to the start of the shot. Before and after what is
    followed, its place is protected for a `margin`. An object that is not found for longer than `gap` is
    lost: its last place is protected to the end of the shot, or until it is found there again. Raises
    `InvalidParameter`.

    >>> TrackSettings(every=0.12).every
    Fraction(3, 25)
    """

    every: Between = Between(0, 2, hint="a number of seconds, such as 0.2", default=Fraction(1, 5))
    backwards: Fraction = Fraction(1, 2)
    margin: Fraction = Fraction(1, 5)
    gap: Fraction = Fraction(2)


MOST_KEPT: Final = 120
"""The most frames that are remembered besides the newest: 30 MB. At high rates, some are left out."""
Step = tuple[Edges, bool, float]
"""Where a box is, whether that is sure, and by how many degrees its contents were turned, clockwise."""


class Memory:
    """The frames of a shot of at most `back` seconds, and the newest one in any case."""

    def __init__(self, facts: Facts, back: Fraction) -> None:
        self._size, self._back = (facts.width, facts.height), back
        self._moments: deque[GreyFrame] = deque()
        self.newest: GreyFrame | None = None
        """The frame that was added last; None at the start of a shot."""

    def __len__(self) -> int:
        return len(self._moments)

    def add(self, moment: GreyFrame) -> None:
        """Remember the next frame, and forget those that are too old."""
        kept, before = self._moments, self.newest
        if before is not None and (not kept or before.seconds - kept[-1].seconds >= self._back / MOST_KEPT):
            kept.append(before)
        while kept and moment.seconds - kept[0].seconds > self._back:
            kept.popleft()
        self.newest = moment

    def clear(self) -> None:
        self._moments.clear()
        self.newest = None

    def forwards(self, now: GreyFrame, boxes: Sequence[Edges]) -> list[Step]:
        """Return where boxes of the newest frame are in the next one."""
        return [(box, False, 0.0) for box in boxes] if self.newest is None else _step(self.newest, now, boxes)

    def backwards(self, now: GreyFrame, boxes: Sequence[Edges]) -> list[list[Place]]:
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
                inside[n] = not is_outside(box, *self._size)
            for n in range(len(boxes)):
                if inside[n]:
                    places[n].append(Place(moment.frame, moment.seconds, newest[n], sure[n], turned[n]))
            later = moment
        return [one[::-1] for one in places]


def _step(before: GreyFrame, after: GreyFrame, boxes: Sequence[Edges]) -> list[Step]:
    if not boxes:
        return []
    scaled = np.array(boxes).reshape(-1, 4) * before.scale
    rows = zip(*follow(before.grey, after.grey, scaled), strict=True)
    return [(box / before.scale, bool(known), float(turn)) for box, known, turn in rows]


LAMPS: Final = 1  # percentage of levels that do not count for the brightest, as a few lamps are brighter
DARK: Final = 32
"""A frame whose brightest level is below this is dark. From there on, detectors miss faces in noise."""
DARKEST: Final = 8  # what is darker than this is not made brighter by more, as nothing but noise is left
LIGHT: Final = 235  # the brightest level of a frame that was dark
NOISE: Final = 1.2  # standard deviation in pixels of the blur that takes noise away


def lighten(image: UInt8[np.ndarray, "h w 3"]) -> UInt8[np.ndarray, "h w 3"]:
    """Return a frame to search: a brighter copy with less noise of a dark one, all others as they are.

    >>> int(lighten(np.full((8, 8, 3), 16, np.uint8)).max())
    235
    """
    step = max(1, min(image.shape[:2]) // 256)
    few = image[::step, ::step]
    if 100 * np.count_nonzero(few >= DARK) >= LAMPS * few.size:
        return image
    smooth = cv2.GaussianBlur(image, (0, 0), NOISE)
    brightest = max(DARKEST, float(np.percentile(smooth, 100 - LAMPS)))
    levels = np.clip(np.arange(256) * LIGHT / brightest, 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(smooth, levels), np.uint8)


SIZE: Final = (48, 27)  # width and height of the pictures that are compared
THIN: Final = 100  # frames are thinned to about so many pixels on the shorter side before
SHIFT: Final = 4  # pixels by which a picture may be shifted between two frames, as in a pan
BINS: Final = 32
EMPTY: Final = 3.0
"""Standard deviation in levels below which a picture shows nothing, as in a flash or a fade."""
ALIKE_CORRELATION: Final = (
    0.3  # correlation of two pictures above which they are of one shot, whatever their levels
)
ALIKE_IF_LEVELS_DIFFER: Final = 0.6  # the same where their levels differ by more than `LEVELS`
LEVELS: Final = 0.45  # share of pixels whose levels differ
SUDDEN: Final = 2.5  # a cut changes the picture by so many times the change of the frames before
SLOW: Final = 0.8  # share of the former changes in their running mean


class Shots:
    """Looks at the frames of a clip in order and says where a shot begins."""

    def __init__(self) -> None:
        self._last: Float32[np.ndarray, "h w"] | None = None
        self._usual = 0.0

    def begins(self, grey: UInt8[np.ndarray, "h w"]) -> bool:
        """Return whether a shot begins with the next frame, of the clip or of a small copy.

        Pictures that show nothing are compared with nothing: after them, the last one that does counts. So a
        flash is no cut, and what follows a fade to black is one if it shows something else.
        """
        step = max(1, min(grey.shape) // THIN)
        thin = np.ascontiguousarray(grey[::step, ::step])
        now = cv2.resize(thin, SIZE, interpolation=cv2.INTER_AREA).astype(np.float32)
        if now.std() < EMPTY:
            return False
        before, self._last = self._last, now
        if before is None:
            return False
        like = _correlation(before, now)
        change = min(1 - like, 1.0)
        sudden = change > SUDDEN * self._usual
        counts = [cv2.calcHist([picture], [0], None, [BINS], [0, 256]) for picture in (before, now)]
        differ = float(np.abs(counts[0] - counts[1]).sum() / (2 * before.size))
        limit = ALIKE_IF_LEVELS_DIFFER if differ > LEVELS else ALIKE_CORRELATION
        cut = like < limit and sudden
        self._usual = SLOW * self._usual + (1 - SLOW) * change
        return cut


def _correlation(before: Float32[np.ndarray, "h w"], now: Float32[np.ndarray, "h w"]) -> float:
    """Return the best correlation of two pictures over small shifts, which does not depend on exposure."""
    inner = np.ascontiguousarray(before[SHIFT:-SHIFT, SHIFT:-SHIFT])
    if inner.std() < EMPTY:
        inner = before
    return float(cv2.matchTemplate(now, inner, cv2.TM_CCOEFF_NORMED).max())


@dataclass(frozen=True, eq=False)
class SearchedFrame:
    """One frame: whether a shot `begins` with it, and what finders see, by their descriptions.

    `seen` is None for a frame that is not searched.
    """

    frame: Frame
    now: GreyFrame
    begins: bool
    seen: dict[str, list[Seen]] | None


class FrameSearcher:
    """Looks at the frames of a clip in order: where it searches depends on their times and shots alone.

    So it may be ahead of the `Tracker` that takes what it sees.
    """

    def __init__(self, facts: Facts, finders: Sequence[Finder], settings: TrackSettings) -> None:
        self.facts, self.every = facts, settings.every
        made = [finder.for_frames(facts.width, facts.height, LONG_SIDE) for finder in finders]
        self.finders = {finder.description: finder for finder in made}
        self._shots = Shots()
        self._due: Fraction | None = None
        self._before: Fraction | None = None

    def look(self, frame: Frame) -> SearchedFrame:
        """Return what the next frame shows; raises `RegionError` if a search fails."""
        seconds = (frame.time - self.facts.start) * self.facts.time_base
        now = GreyFrame(frame.index, seconds, *small(frame.image))
        begins, seen = self._shots.begins(now.grey), None
        if begins:
            self._due = self._before = None
        # Searched are the first frame of a shot, the last one of the clip, and those that are nearer to the
        # time of the next search than the frame after them, if that comes as soon as this one did.
        step = Fraction(0) if self._before is None else seconds - self._before
        if self._due is None or seconds + step / 2 >= self._due or frame.index == self.facts.frames - 1:
            photo, light = Photo(frame.image), Photo(lighten(frame.image))
            seen = {
                name: finder.find_in_frame(light if finder.kind == FACE else photo)
                for name, finder in self.finders.items()
            }
            self._due = seconds + self.every
        self._before = seconds
        return SearchedFrame(frame, now, begins, seen)
