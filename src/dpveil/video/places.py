"""What is replaced in each frame of a clip, and where heads are shown, by the rounded cells of keys.

Each key is rounded to the public grid of photos (`faces.geometry.cell`). Nothing finer than these cells, and
the frames of the keys, is read here: whatever is shown tells no more of a path than they do.

*What is replaced holds the face.* A face whose centre, side and angle are at each of two keys within half a
cell of that key's cell, and which moves on a line between them, is at every frame within half a cell of the
`HeadPath` there: its side, centre and angle are means of those of the cells with the same weights, and half a
cell is a fixed share of the side. So the shape of a cell, at that pose, holds it. The back of a turned head
is stretched in proportion to the class of its yaw, so the mean of two stretches is that of the mean yaw. ∎
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float64
from dpveil.core.region import Box, Region, hidden_pixels
from dpveil.core.region_origin import BOX, OBJECT, WHOLE, Origin
from dpveil.errors import RegionError
from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.cell import PITCH, RATIO, ROLLS, Cell, cell_of, side
from dpveil.faces.geometry.head_frame import MIDDLE, HeadFrame, Shape, between, bounds
from dpveil.faces.geometry.landmarks import BOX_TO_FACE, SEEN, of_box
from dpveil.faces.geometry.protection import PROTECTIONS
from dpveil.mechanisms.method import Method, Step
from dpveil.opencv import cv2
from dpveil.regions.faces import MARGIN
from dpveil.video.facts import Key, Track

ROUNDS: Final = 150
"""Steps in which the calmest lines are approached; after any of them they are within their intervals."""
SLOPE: Final = 0.02  # weight of slopes beside that of bends: what can stay where it is does
PULL: Final = 0.1
"""Weight with which lines are drawn into their intervals (the step of the alternating directions)."""
Series = Float64[np.ndarray, " n"]
Lines = Float64[np.ndarray, "k n"]


def smooth_path(frames: Series, middle: Lines, reach: Lines, near: Sequence[float] | None = None) -> Lines:
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
    lines = np.array([_least_bends(frames, *line) for line in zip(middle, low, high, near, strict=True)])
    return np.asarray(np.where(least <= most, still, lines))


def _least_bends(frames: Series, middle: Series, low: Series, high: Series, near: float) -> Series:
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
    # The matrix of the squared bends and slopes of a line, and of `PULL`: its diagonals from the main one on.
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


UNIT_FRAME: Final = HeadFrame(1)
ROLL: Final = 2 * math.pi / ROLLS  # radians from one roll of a cell to the next
SIZE: Final = math.log(RATIO[0] / RATIO[1])  # logarithm of the ratio of one scale of a cell to the next
NEAR_SIDES: Final = 0.03
"""How far the middle of the head that is shown may be from the line between keys, in sides of its frame,
where its motion changes."""
SWING: Final = 0.3
"""How near to the middle of its cells a roll is drawn, beside its bends: a head that swings turns as far as
its cells do, and is not held back at the end of every swing."""
ASIDE: Final = 0.33
"""By how much of a box's width a face is aside of its middle, by the sine of its yaw: 0.10 and 0.18 of it in
141 photos of LFW, at classes 1 and 2 of yaw."""
MOST_YAW: Final = math.radians(40)  # yaw from which on it is no farther aside


def cell_at(key: Key, protect: str) -> Cell:
    """Return the cell of a face's key: all that is shown of its place.

    `protect` is one of `PROTECTIONS`. Raises `RegionError` for a box that no head can have.

    >>> cell_at(Key(0, 300, 200, 90, 120), "head").numbers
    (48, 0, 58, 41)
    """
    box = Box(key.x, key.y, key.w, key.h)
    head = between(of_box(box, -math.radians(key.roll)), SEEN, UNIT_FRAME)
    yaw = None if key.yaw is None else math.radians(key.yaw)
    if yaw is not None:  # detectors put boxes around heads; faces that turn are ahead of the middle
        aside = ASIDE * key.w * math.sin(max(-MOST_YAW, min(MOST_YAW, yaw)))
        head = replace(head, x=head.x - head.scale * aside)
    return cell_of(head, yaw, box, protect)


class HeadPath:
    """The course of a head on straight lines between the cells of its keys, which are in order of frames.

    `protect` is one of `PROTECTIONS`. Raises `RegionError` as `cell_at` does.
    """

    def __init__(self, keys: Sequence[Key], protect: str) -> None:
        self.frames = np.array([key.frame for key in keys], np.float64)
        if not len(keys) or not (np.diff(self.frames) > 0).all():
            problem, hint = "the keys of a track are not in order of frames", "give each frame one key"
            raise RegionError(problem, hint=hint)
        self.cells, self.protect = tuple(cell_at(key, protect) for key in keys), protect
        self._sides = np.array([side(cell.scale) for cell in self.cells])
        at = np.array([(cell.across + 0.5, cell.down + 0.5) for cell in self.cells])
        self._centres = at * PITCH * self._sides[:, None]
        # rolls in radians, clockwise, each the short way from the one before
        self._turns = np.unwrap(np.array([cell.roll for cell in self.cells], np.float64) * ROLL)
        shapes = [cell.shape(protect) for cell in self.cells]
        self._stretches = np.array([(shape.left, shape.right) for shape in shapes])

    def outline(self, frame: float) -> tuple[Similarity, Shape]:
        """Return the map from the picture to a frame with a side of 1, and the shape that is replaced."""
        length, turn, x, y, left, right = (
            float(np.interp(frame, self.frames, part))
            for part in (self._sides, self._turns, *self._centres.T, *self._stretches.T)
        )
        kind = PROTECTIONS[self.protect]
        return _pose(length, turn, x, y), replace(kind.whole, left=left, right=right)

    @cached_property
    def _calmest_course(self) -> Float64[np.ndarray, "4 n"]:
        """Logarithm of the side, roll, and centre (x, y) of the calmest course within the cells."""
        pitch, one = PITCH * self._sides, np.ones(len(self.cells))
        reach = np.array([one * SIZE, one * ROLL, pitch, pitch]) / 2
        middle = np.array([np.log(self._sides), self._turns, *self._centres.T])
        return smooth_path(self.frames, middle, reach, (0.0, SWING, 0.0, 0.0))

    @cached_property
    def _bends(self) -> tuple[Series, Float64[np.ndarray, "4 m"]]:
        """Frames, and the calm course there: at keys, and from where on it is straight to the next key.

        Where the head changes its motion so abruptly that a curve over the whole time to the next key would
        be farther than `NEAR_SIDES` from the line, it only bends for so long that it is not. A curve of n
        frames is at most n · 4/27 changes of motion away from the line (Hermite's cubic that begins at rest),
        for each end, so there is a point on the line between any two keys. Before the first key and after the
        last one the head moves on.
        """
        frames, lines = self.frames, self._calmest_course
        speed = np.diff(lines, axis=1) / np.diff(frames)
        change = np.hypot(*np.diff(speed[2:], axis=1, prepend=speed[2:, :1], append=speed[2:, -1:]))
        bend = np.maximum(1.0, NEAR_SIDES * self._sides * 27 / 4 / np.maximum(change, 1e-6))
        length = np.diff(frames)
        latest, earliest = np.minimum(bend[:-1], length), np.maximum(length - bend[1:], 0)
        both = np.where(latest < earliest, (latest, earliest), np.clip(length / 2, earliest, latest))
        straight = frames[:-1] + both
        wide = np.concatenate([frames[:1] - 1, frames, frames[-1:] + 1])
        ends = lines[:, :1] - speed[:, :1], lines, lines[:, -1:] + speed[:, -1:]
        at = np.unique(np.concatenate([wide, *straight]).round(3))
        return at, np.stack([np.interp(at, wide, line) for line in np.concatenate(ends, axis=1)])

    @cached_property
    def _interpolant(self) -> Callable[[float], Series]:
        """That course between its keys, smooth and within their values (Fritsch & Carlson 1980)."""
        from scipy.interpolate import PchipInterpolator

        if len(self.frames) < 2:
            return lambda _: self._calmest_course[:, 0]
        frames, lines = self._bends
        found: Callable[[float], Series] = PchipInterpolator(frames, lines, axis=1)
        return found

    def pose_at(self, frame: float) -> Similarity:
        """Return the map from the picture to a frame with a side of 1, of the head that is shown.

        It is the calmest course through the cells: a head that hardly moves stays, though its cells change.
        """
        inside = min(max(frame, self.frames[0]), self.frames[-1])
        size, turn, x, y = (float(part) for part in self._interpolant(inside))
        return _pose(BOX_TO_FACE * math.exp(size), turn, x, y)

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
        at = max(0, int(np.searchsorted(starts, frame, "right")) - 1)
        for other, turn in ((at - 1, at), (at + 1, at + 1)):
            if 0 <= other < len(classes) and (away := abs(frame - starts[turn])) < fade / 2:
                share = 0.5 - away / fade
                return [(classes[at], 1 - share), (classes[other], share)]
        return [(classes[at], 1.0)]

    @property
    def largest(self) -> float:
        """The largest side of the head's frame, in pixels of the picture."""
        return float(self._sides.max())


def _pose(length: float, turn: float, x: float, y: float) -> Similarity:
    # The map to a frame with a side of 1; `x` and `y` are in pixels from the picture's left top.
    turned = Similarity(1 / length, -turn, 0.0, 0.0)
    move = np.array(MIDDLE) - turned.to(np.array([[x - 0.5, y - 0.5]]))[0] - 0.5
    return replace(turned, x=float(move[0]), y=float(move[1]))


CORNERS: Final = 180  # corners of the polygon around an ellipse
SPARE_PIXELS: Final = 1.0  # pixels by which the polygon is larger than needed, for all rounding
BITS: Final = 6  # bits of a pixel's fractions in which corners are given to OpenCV


def region_around(
    shape: Shape, head: Similarity, width: int, height: int, *, box: Box | None = None, masked: bool = True
) -> Region | None:
    """Return a region that holds every pixel of a shape, and of `box`, in a picture of this size, or None.

    `head` maps the picture to a frame with a side of 1. It holds a few more at the edge. Without
    `masked`, it is the whole bounding box.

    *Why nothing is missing.* The polygon lies around the ellipse, as its corners lie outside by more than the
    sagitta of its sides; OpenCV fills every pixel whose centre is inside. ∎
    """
    least = min(shape.half[0] * min(shape.left, shape.right), shape.half[1] * min(1.0, shape.below))
    factor = 1 / np.cos(np.pi / CORNERS) + SPARE_PIXELS * head.scale / least
    parts = [head.back(part - 0.5) for part in _corners(shape, factor, SPARE_PIXELS * head.scale)]
    if box is not None:
        right, bottom = box.x + box.w - 1, box.y + box.h - 1
        ends = [[box.x, box.y], [right, box.y], [right, bottom], [box.x, bottom]]
        parts.append(np.array(ends, np.float64))
    found = bounds(np.concatenate(parts), width, height)
    if found is None or not masked:
        return None if found is None else Region(found)
    mask = np.zeros((found.h, found.w), np.uint8)
    for part in parts:
        corners = np.rint((part - (found.x, found.y)) * 2**BITS).astype(np.int32)
        cv2.fillPoly(mask, [corners], (1,), cv2.LINE_8, BITS)
    return Region(found, mask.view(np.bool_)) if mask.any() else None


def _corners(shape: Shape, factor: float, more: float) -> list[Float64[np.ndarray, "n 2"]]:
    # Around the ellipse, larger by a factor, and around its neck, larger by `more` of the frame's side.
    angle = np.arange(CORNERS) * (2 * np.pi / CORNERS)
    x, y = shape.half[0] * factor * np.cos(angle), shape.half[1] * factor * np.sin(angle)
    x *= np.where(x < 0, shape.left, shape.right)
    y *= np.where(y > 0, shape.below, 1.0)
    parts = [np.stack([x, y], axis=1) + MIDDLE]
    if shape.neck is not None:
        half, top, bottom = shape.neck
        left, right = -half * shape.left - more, half * shape.right + more
        top, bottom = top - more, bottom + more
        parts.append(np.array([[left, top], [right, top], [right, bottom], [left, bottom]]) + MIDDLE)
    return parts


STEPS: Final = 8
"""Boxes are rounded to the largest power of two of pixels that is at most such a part of their longer side,
as boxes of photos are that stay beside a face."""
GIVEN: Final = (BOX, OBJECT)  # kinds of tracks whose boxes a user gave
FADE: Final = Fraction(1, 5)  # seconds from one turn of a head to the next


class BoxCourse:
    """The course of a box on straight lines between rounded boxes: left, top, right and bottom, in pixels.

    Keys are in order of frames. Boxes get a margin in shares of width and height; those that are not
    `rounded` are a user's own.

    *What is replaced holds the object.* Every edge of a rounded box lies outside the key's, so a mean of the
    two does, with the same weights. ∎
    """

    def __init__(self, keys: Sequence[Key], *, margin: Fraction, rounded: bool) -> None:
        self.frames = np.array([key.frame for key in keys], np.float64)
        self.edges = np.array([_edges(key, float(margin), rounded) for key in keys], np.float64).T

    def box(self, frame: float, width: int, height: int) -> Box | None:
        """Return the box that is replaced in a frame of this size; None if nothing of it lies there."""
        left, top, right, bottom = (float(np.interp(frame, self.frames, edge)) for edge in self.edges)
        x, y = max(0, math.floor(left)), max(0, math.floor(top))
        w, h = min(width, math.ceil(right)) - x, min(height, math.ceil(bottom)) - y
        return Box(x, y, w, h) if w > 0 and h > 0 else None

    def largest(self, first: int, last: int, width: int, height: int) -> int | None:
        """Return the first frame from `first` to `last` with the largest box; None if all are empty."""
        frames = np.arange(first, last + 1)
        left, top, right, bottom = (np.interp(frames, self.frames, edge) for edge in self.edges)
        across = np.minimum(width, np.ceil(right)) - np.maximum(0, np.floor(left))
        down = np.minimum(height, np.ceil(bottom)) - np.maximum(0, np.floor(top))
        areas = np.maximum(0, across) * np.maximum(0, down)
        return first + int(areas.argmax()) if areas.any() else None


def _edges(key: Key, margin: float, rounded: bool) -> tuple[float, float, float, float]:
    aside, above = key.w * margin, key.h * margin
    left, top, right, bottom = key.x - aside, key.y - above, key.x + key.w + aside, key.y + key.h + above
    if not rounded:
        return left, top, right, bottom
    step = 2.0 ** max(0, math.floor(math.log2(max(right - left, bottom - top) / STEPS)))
    low, high = (
        (math.floor(part / step) * step for part in (left, top)),
        (math.ceil(part / step) * step for part in (right, bottom)),
    )
    return (*low, *high)  # type: ignore[return-value]


@dataclass(frozen=True, eq=False)
class ReplacedPlace:
    """One track in one frame. `region` is replaced there, or nothing of it lies in the picture.

    `head` maps the picture to a frame with a side of 1, of the head that is shown there; None for objects.
    """

    track: Track
    region: Region | None
    head: Similarity | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """A clip as it will be rendered: `width` × `height` pixels, `rate` frames a second on average.

    `tracks` are those that are replaced, each by the `method`; face methods cover objects with grey. `steps`
    follow each draw. Faces that a pixel method replaces have a `margin`, in shares
    of their box.
    """

    width: int
    height: int
    rate: float
    method: Method
    tracks: tuple[Track, ...]
    steps: tuple[Step, ...] = ()
    margin: Fraction = MARGIN

    @property
    def faces(self) -> bool:
        return isinstance(self.method, FaceMethod)

    @property
    def fade(self) -> float:
        """Frames from one turn of a head to the next."""
        return max(1.0, float(FADE) * self.rate)

    def shows_face(self, track: Track) -> bool:
        """Whether another face is shown where a track is."""
        origin = Origin(track.kind, track.finder, number=track.number, found=track.kind not in GIVEN)
        return self.faces and track.kind != WHOLE and not origin.faceless

    def course(self, track: Track) -> HeadPath:
        """Return the course of a face that is replaced by a face; raises `RegionError`."""
        if track.number not in self._courses:
            protect = str(getattr(self.method, "protect", "head"))
            self._courses[track.number] = HeadPath(track.keys, protect)
        return self._courses[track.number]

    def box_course(self, track: Track) -> BoxCourse:
        """Return the course of anything else, which is rounded unless a user gave its box."""
        if track.number not in self._boxes:
            margin = Fraction(0) if self.faces or track.kind != "face" else self.margin
            given = track.kind in GIVEN
            self._boxes[track.number] = BoxCourse(track.keys, margin=margin, rounded=not given)
        return self._boxes[track.number]

    @cached_property
    def _courses(self) -> dict[int, HeadPath]:
        return {}

    @cached_property
    def _boxes(self) -> dict[int, BoxCourse]:
        return {}

    def present(self, frame: int) -> list[Track]:
        return [track for track in self.tracks if track.first <= frame <= track.last]

    def spot(self, track: Track, frame: int) -> ReplacedPlace:
        """Return what is replaced of a track in a frame, and where a face is shown."""
        if track.kind == WHOLE:
            return ReplacedPlace(track, Region(Box(0, 0, self.width, self.height)))
        if not self.shows_face(track):
            box = self.box_course(track).box(frame, self.width, self.height)
            return ReplacedPlace(track, None if box is None else Region(box))
        course = self.course(track)
        head, shape = course.outline(frame)
        own = self.box_course(track).box(frame, self.width, self.height) if track.kind in GIVEN else None
        masked = PROTECTIONS[course.protect].masked
        region = region_around(shape, head, self.width, self.height, box=own, masked=masked)
        return ReplacedPlace(track, region, course.pose_at(frame))

    def spots(self, frame: int) -> list[ReplacedPlace]:
        return [self.spot(track, frame) for track in self.present(frame)]

    def hidden_mask(self, frame: int) -> Bool[np.ndarray, "h w"]:
        regions = [spot.region for spot in self.spots(frame) if spot.region is not None]
        return hidden_pixels(regions, self.height, self.width)

    def raster(self, track: Track, frame: int) -> Box:
        """Return the pixels of a frame that a pixel method reads for a track; raises `RegionError`.

        That of a key's frame is the raster on which a guarantee is stated that is drawn once. Where the box
        moves, it is shown resampled.
        """
        region = self.spot(track, frame).region
        if region is None:
            raise RegionError(
                f"track {track.number} is outside the picture in frame {frame}",
                hint="choose another key, or remove the track",
            )
        return region.box

    def painted_at(self, track: Track) -> Key:
        """Return the key at which a head is painted: of the largest cells, the least turned, the first."""
        pairs = zip(track.keys, self.course(track).cells, strict=True)
        return min(pairs, key=lambda pair: (-pair[1].scale, abs(pair[1].yaw or 0), pair[0].frame))[0]
