"""What is replaced in each frame of a clip, and what is drawn from which frame."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Final

import numpy as np
from jaxtyping import Bool, Float64

from dpveil.core.origin import BOX, OBJECT, WHOLE, Origin
from dpveil.core.region import Box, Region
from dpveil.errors import RegionError
from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head import bounds
from dpveil.faces.geometry.head_frame import MIDDLE, Shape
from dpveil.faces.geometry.protection import PROTECTIONS
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.placement import Step
from dpveil.regions.faces import MARGIN
from dpveil.video.path import COARSE, FINE, Course
from dpveil.video.track import Key, Track

CORNERS: Final = 180
"""Corners of the polygon around an ellipse."""
MORE: Final = 1.0
"""Pixels by which the polygon is larger than needed, for all rounding."""
BITS: Final = 6
"""Bits of a pixel's fractions in which corners are given to OpenCV."""


def around(
    shape: Shape, head: Similarity, width: int, height: int, *, box: Box | None = None, masked: bool = True
) -> Region | None:
    """Return a region that holds every pixel of a shape, and of `box`, in a picture of this size, or None.

    `head` maps the picture to a frame with a side of 1. It holds a few more at the edge. Without
    `masked`, it is the whole bounding box.

    *Why nothing is missing.* The polygon lies around the ellipse, as its corners lie outside by more than the
    sagitta of its sides; OpenCV fills every pixel whose centre is inside. ∎
    """
    import cv2

    least = min(shape.half[0] * min(shape.left, shape.right), shape.half[1] * min(1.0, shape.below))
    factor = 1 / np.cos(np.pi / CORNERS) + MORE * head.scale / least
    parts = [head.back(part - 0.5) for part in _corners(shape, factor, MORE * head.scale)]
    if box is not None:
        ends = [
            [box.x, box.y],
            [box.x + box.w - 1, box.y],
            [box.x + box.w - 1, box.y + box.h - 1],
            [box.x, box.y + box.h - 1],
        ]
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
    """Return the corners of polygons around an ellipse that is larger by a factor, and around its neck, which
    is larger by `more` of the frame's side.
    """
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
GIVEN: Final = (BOX, OBJECT)
"""Kinds of tracks whose boxes a user gave."""
FADE: Final = Fraction(1, 5)
"""Seconds from one turn of a head to the next."""


@dataclass(frozen=True, eq=False)
class BoxCourse:
    """The course of a box on straight lines between rounded boxes: left, top, right and bottom, in pixels.

    *What is replaced holds the object.* Every edge of a rounded box lies outside the key's, so a mean of the
    two does, with the same weights. ∎
    """

    frames: Float64[np.ndarray, " n"]
    edges: Float64[np.ndarray, "4 n"]

    @classmethod
    def of(cls, keys: Sequence[Key], *, margin: Fraction, rounded: bool, pose: str = FINE) -> BoxCourse:
        """Return the course of keys in order of frames, with a margin in shares of width and height.

        Boxes that are not `rounded` are a user's own. With the `pose` "coarse", steps are twice as large.
        """
        frames = np.array([key.frame for key in keys], np.float64)
        edges = np.array([_edges(key, float(margin), rounded, pose) for key in keys], np.float64)
        return cls(frames, edges.T)

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

    @property
    def still(self) -> bool:
        """Whether it is the same box in every frame."""
        return bool((self.edges == self.edges[:, :1]).all())


def _edges(key: Key, margin: float, rounded: bool, pose: str) -> tuple[float, float, float, float]:
    """Return left, top, right and bottom of what is replaced at a key."""
    aside, above = key.w * margin, key.h * margin
    left, top, right, bottom = key.x - aside, key.y - above, key.x + key.w + aside, key.y + key.h + above
    if not rounded:
        return left, top, right, bottom
    step = 2.0 ** max(0, math.floor(math.log2(max(right - left, bottom - top) / STEPS)))
    step *= 2 if pose == COARSE else 1
    low, high = (
        (math.floor(part / step) * step for part in (left, top)),
        (math.ceil(part / step) * step for part in (right, bottom)),
    )
    return (*low, *high)  # type: ignore[return-value]


@dataclass(frozen=True)
class Subject:
    """One person or object of a clip: what is drawn once, from a `key` of `track`, one of its `tracks`.

    `number` is that of the draw. The key is chosen by a public rule, and never by pixels.
    """

    number: int
    tracks: tuple[Track, ...]
    track: Track
    key: Key


@dataclass(frozen=True, eq=False)
class Spot:
    """One track in one frame. `region` is replaced there, or nothing of it lies in the picture.

    `head` maps the picture to a frame with a side of 1, of the head that is shown there; None for objects.
    """

    track: Track
    region: Region | None
    head: Similarity | None = None


@dataclass(frozen=True, kw_only=True, eq=False)
class Scene:
    """A clip as it will be rendered: `width` × `height` pixels, `rate` frames a second on average.

    `tracks` are those that are replaced, each by the `method`; face methods cover objects with grey. `pose`
    is one of `POSES`. `steps` follow each draw. Faces that a pixel method replaces have a `margin`, in shares
    of their box.
    """

    width: int
    height: int
    rate: float
    method: Method
    tracks: tuple[Track, ...]
    pose: str = FINE
    steps: tuple[Step, ...] = ()
    margin: Fraction = MARGIN

    @property
    def faces(self) -> bool:
        """Whether the method replaces faces by faces."""
        return isinstance(self.method, FaceMethod)

    @property
    def fade(self) -> float:
        """Frames from one turn of a head to the next."""
        return max(1.0, float(FADE) * self.rate)

    @cached_property
    def of_number(self) -> Mapping[int, Track]:
        """The tracks by their numbers."""
        return {track.number: track for track in self.tracks}

    @cached_property
    def _spans(self) -> Float64[np.ndarray, "n 2"]:
        spans = [(track.first, track.last) for track in self.tracks]
        return np.array(spans, np.float64).reshape(-1, 2)

    def shows_face(self, track: Track) -> bool:
        """Whether another face is shown where a track is."""
        origin = Origin(track.kind, track.finder, number=track.number, found=track.kind not in GIVEN)
        return self.faces and track.kind != WHOLE and not origin.faceless

    def course(self, track: Track) -> Course:
        """Return the course of a face that is replaced by a face; raises `RegionError`."""
        if track.number not in self._courses:
            protect = str(getattr(self.method, "protect", "head"))
            self._courses[track.number] = Course.of(track.keys, protect, self.pose)
        return self._courses[track.number]

    def box_course(self, track: Track) -> BoxCourse:
        """Return the course of anything else, which is rounded unless a user gave its box."""
        if track.number not in self._boxes:
            margin = Fraction(0) if self.faces or track.kind != "face" else self.margin
            given = track.kind in GIVEN
            self._boxes[track.number] = BoxCourse.of(
                track.keys, margin=margin, rounded=not given, pose=self.pose
            )
        return self._boxes[track.number]

    @cached_property
    def _courses(self) -> dict[int, Course]:
        return {}

    @cached_property
    def _boxes(self) -> dict[int, BoxCourse]:
        return {}

    def present(self, frame: int) -> list[Track]:
        """Return the tracks that are in a frame."""
        first, last = self._spans.T
        return [self.tracks[n] for n in np.flatnonzero((first <= frame) & (frame <= last))]

    def spot(self, track: Track, frame: int) -> Spot:
        """Return what is replaced of a track in a frame, and where a face is shown."""
        if track.kind == WHOLE:
            return Spot(track, Region(Box(0, 0, self.width, self.height)))
        if not self.shows_face(track):
            box = self.box_course(track).box(frame, self.width, self.height)
            return Spot(track, None if box is None else Region(box))
        course = self.course(track)
        head, shape = course.outline(frame)
        own = self.box_course(track).box(frame, self.width, self.height) if track.kind in GIVEN else None
        masked = PROTECTIONS[course.protect].masked
        region = around(shape, head, self.width, self.height, box=own, masked=masked)
        return Spot(track, region, course.shown(frame))

    def spots(self, frame: int) -> list[Spot]:
        """Return all that is replaced in a frame."""
        return [self.spot(track, frame) for track in self.present(frame)]

    def hidden(self, spots: Iterable[Spot]) -> Bool[np.ndarray, "h w"]:
        """Return the pixels that are replaced in a frame."""
        mask = np.zeros((self.height, self.width), np.bool_)
        for spot in spots:
            if spot.region is not None:
                view = mask[spot.region.box.slices]
                view |= True if spot.region.mask is None else spot.region.mask
        return mask

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
        """Return the key at which a track's head is painted: by its cells the largest, then the one turned
        least, then the first.
        """
        pairs = zip(track.keys, self.course(track).cells, strict=True)
        return min(pairs, key=lambda pair: (-pair[1].scale, abs(pair[1].yaw or 0), pair[0].frame))[0]
