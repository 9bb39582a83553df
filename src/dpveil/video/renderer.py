"""Frames of a clip with what was drawn instead of what is replaced."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from typing import Final

import numpy as np
from jaxtyping import Bool, UInt8

from dpveil.core.region import Box
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.protection import FACE
from dpveil.faces.geometry.seam import FINE_SEAM, faded, met
from dpveil.faces.geometry.head_frame import SIDE
from dpveil.video.behind import around, behind
from dpveil.video.drawing import Drawn
from dpveil.video.facts import Frame
from dpveil.video.layer import Layer, mixed
from dpveil.video.light import SECONDS, Light, lit
from dpveil.video.places import Scene, Spot, Subject
from dpveil.video.render_pixels import show
from dpveil.video.track import Track

Image = UInt8[np.ndarray, "h w 3"]
Own = Callable[[Subject, Track, Frame], Image]
"""Draws the raster of a subject's track in one frame, where each frame is drawn on its own."""


class Renderer:
    """Replaces the regions of frames, in their order, by what was drawn and painted.

    `draws` are those of `subjects`, by their numbers, and `layers` the heads of tracks, by theirs (`paint`).
    `own` draws a frame's raster of subjects without a draw. A frame that is returned is a function of its
    pixels outside what is replaced, those of the `memory` frames before it, the cells of keys, `draws` and
    `layers`; a renderer that begins later has to see these frames first (`look`).
    """

    def __init__(
        self,
        scene: Scene,
        subjects: Sequence[Subject],
        draws: Mapping[int, Drawn],
        layers: Mapping[int, Mapping[int | None, Layer]],
        own: Own | None = None,
    ) -> None:
        self.scene, self.draws, self.layers, self._own = scene, draws, layers, own
        self.memory = max(1, math.ceil(SECONDS * scene.rate)) - 1
        self._subjects = {track.number: subject for subject in subjects for track in subject.tracks}
        for track in scene.tracks:
            self._check(track.number)
        self._lights: dict[int, deque[tuple[int, Light]]] = {}

    def _check(self, number: int) -> None:
        """Raise `InvalidParameter` unless there is something to show for a track."""
        subject = self._subjects.get(number)
        drawn = None if subject is None else self.draws.get(subject.number)
        if subject is None or (drawn is None and self._own is None):
            raise InvalidParameter("draws", f"track {number}", "is missing", hint="draw every subject")
        if self.scene.shows_face(self.scene.of_number[number]) and not self.layers.get(number):
            raise InvalidParameter("layers", f"track {number}", "is missing", hint="paint every face")

    def look(self, frame: Frame) -> None:
        """See a frame that is not to be rendered: one of the `memory` frames before the first that is."""
        spots, outside, hidden = self._outside(frame)
        self._see(frame.index, spots, outside, hidden)

    def frame(self, frame: Frame) -> Image:
        """Return a frame with all regions replaced; the given one stays as it is.

        Objects are replaced first, and heads over them, from the smallest to the largest.
        """
        spots, outside, hidden = self._outside(frame)
        if not spots:
            return outside
        self._see(frame.index, spots, outside, hidden)
        out = outside.copy()
        heads: list[Spot] = []
        for spot in spots:
            if spot.region is None:
                continue
            if spot.head is not None:
                heads.append(spot)
            else:
                show(out, spot.region, self._raster(spot, frame))
        for group in _groups(heads):
            self._put(out, outside, hidden, group, frame.index)
        return out

    def _outside(self, frame: Frame) -> tuple[list[Spot], Image, Bool[np.ndarray, "h w"]]:
        """Return what is replaced in a frame, and a copy with 0 there; nothing private is read from here on."""
        import cv2

        scene = self.scene
        if frame.image.shape != (scene.height, scene.width, 3) or frame.image.dtype != np.uint8:
            shape, wanted = frame.image.shape, f"is not uint8 {scene.height} × {scene.width} × 3"
            raise InvalidParameter("frame", f"{frame.image.dtype} {shape}", wanted, hint="as its facts state")
        spots = scene.spots(frame.index)
        if not spots:
            return spots, frame.image.copy(), np.zeros(frame.image.shape[:2], np.bool_)
        hidden = scene.hidden(spots)
        outside = frame.image.copy()
        outside[hidden] = 0
        return spots, outside, hidden

    def _see(
        self, index: int, spots: Sequence[Spot], outside: Image, hidden: Bool[np.ndarray, "h w"]
    ) -> None:
        """Take the light of heads in a frame."""
        present = {spot.track.number for spot in spots}
        self._lights = {number: seen for number, seen in self._lights.items() if number in present}
        for spot in spots:
            if spot.head is None:
                continue
            seen = self._lights.setdefault(spot.track.number, deque(maxlen=self.memory + 1))
            if not seen or seen[-1][0] != index:
                seen.append((index, Light.seen(outside, hidden, spot.head)))

    def _raster(self, spot: Spot, frame: Frame) -> Image:
        subject = self._subjects[spot.track.number]
        drawn = self.draws.get(subject.number)
        if drawn is None or drawn.raster is None:
            if self._own is None:
                raise InvalidParameter("draws", subject.number, "is no raster", hint="draw the subject again")
            return self._own(subject, spot.track, frame)
        return drawn.raster

    def _put(
        self,
        out: Image,
        outside: Image,
        hidden: Bool[np.ndarray, "h w"],
        group: Sequence[Spot],
        index: int,
    ) -> None:
        """Write heads whose regions overlap, the smallest first, before one background."""
        import cv2

        regions = [spot.region for spot in group if spot.region is not None]
        room = around([region.box for region in regions], hidden.shape[1], hidden.shape[0], 0.0)
        filled = behind(outside, hidden, room)
        for spot, region in zip(group, regions, strict=True):
            box = region.box
            own = filled[box.y - room.y :, box.x - room.x :][: box.h, : box.w]
            levels, alpha = self._head(spot, outside, hidden, index)
            own[...] = cv2.blendLinear(levels, np.ascontiguousarray(own), alpha, 1 - alpha)
        for region in regions:
            box = region.box
            region.paste(out, filled[box.y - room.y :, box.x - room.x :][: box.h, : box.w])

    def _head(
        self, spot: Spot, outside: Image, hidden: Bool[np.ndarray, "h w"], index: int
    ) -> tuple[Image, np.ndarray]:
        """Return a head's levels and alpha in the box of its region."""
        track, region, head = spot.track, spot.region, spot.head
        assert region is not None and head is not None
        course, layers = self.scene.course(track), self.layers[track.number]
        faces = course.faces(index, self.scene.fade) if None not in layers else [(None, 1.0)]
        seen = self._lights[track.number]
        shown = []
        for yaw, share in faces:
            layer = layers[yaw]
            picture = layer.on(head, region.box)
            picture[..., :3] = lit(np.ascontiguousarray(picture[..., :3]), [layer.light.change(one) for _, one in seen])
            shown.append((picture, share))
        picture = mixed(shown)
        unit = 1 / head.scale / SIDE
        alpha = faded(picture[..., 3].astype(np.float32) / np.float32(255), region, FINE_SEAM * unit, hidden.shape)
        levels = np.ascontiguousarray(picture[..., :3])
        return met(levels, region.box, outside, hidden, unit, skin=course.protect == FACE), alpha


def _groups(spots: Sequence[Spot]) -> list[list[Spot]]:
    """Return heads in groups whose boxes overlap; each from the smallest to the largest, then downwards."""
    groups: list[list[Spot]] = []
    for spot in spots:
        near = [g for g in groups if any(_overlap(spot, other) for other in g)]
        joined = [spot, *(other for g in near for other in g)]
        groups = [g for g in groups if g not in near] + [joined]
    return [sorted(group, key=_size) for group in groups]


def _overlap(one: Spot, other: Spot) -> bool:
    return one.region is not None and other.region is not None and one.region.box.overlaps(other.region.box)


def _size(spot: Spot) -> tuple[float, float, int]:
    head = spot.head
    assert head is not None
    return 1 / head.scale, float(head.back(np.zeros((1, 2)))[0, 1]), spot.track.number
