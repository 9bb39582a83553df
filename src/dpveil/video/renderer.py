"""Frames of a clip with what was drawn instead of what is replaced."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Mapping, Sequence

import numpy as np
from jaxtyping import UInt8

from dpveil.core.region import Region
from dpveil.errors import InvalidParameter
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.protection import FACE
from dpveil.video.drawing import Drawn
from dpveil.video.facts import Frame
from dpveil.video.heads import Shown, show
from dpveil.video.layer import Layer
from dpveil.video.light import SECONDS, Light
from dpveil.video.places import Scene, Spot, Subject
from dpveil.video.surroundings import Surroundings
from dpveil.video.track import Track

Image = UInt8[np.ndarray, "h w 3"]


def show_raster(image: Image, region: Region, raster: Image) -> None:
    """Write a raster over a region of an image, resampled to its size: post-processing."""
    import cv2

    box = region.box
    if raster.shape[:2] != (box.h, box.w):
        smaller = box.w * box.h < raster.shape[0] * raster.shape[1]
        mode = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
        raster = np.asarray(cv2.resize(raster, (box.w, box.h), interpolation=mode)).reshape(box.h, box.w, 3)
    region.paste(image, raster)


Own = Callable[[Subject, Track, Frame], Image]
"""Draws the raster of a subject's track in one frame, where each frame is drawn on its own."""


class Renderer:
    """Replaces the regions of frames, in their order, by what was drawn and painted.

    `draws` are those of `subjects`, by their numbers, and `layers` the heads of tracks, by theirs (`paint`):
    each is taken from there when it is shown, and held as long as its track is present.
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
        self._held: dict[int, dict[int | None, Layer]] = {}

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
        spots, around = self._around(frame)
        self._see(frame.index, spots, around)

    def frame(self, frame: Frame) -> Image:
        """Return a frame with all regions replaced; the given one stays as it is.

        Objects are replaced first, and heads over them, from the smallest to the largest.
        """
        spots, around = self._around(frame)
        self._see(frame.index, spots, around)
        out = around.levels.copy() if spots else around.levels
        heads = []
        for spot in spots:
            if spot.region is None:
                continue
            if spot.head is None:
                show_raster(out, spot.region, self._raster(spot, frame))
            else:
                heads.append(self._shown(spot, spot.region, spot.head, frame.index))
        for group in _groups(heads):
            show(out, around, group)
        return out

    def _around(self, frame: Frame) -> tuple[list[Spot], Surroundings]:
        """Return what is replaced in a frame, and what is around; nothing private is read from here on."""
        scene, image = self.scene, frame.image
        if image.shape != (scene.height, scene.width, 3) or image.dtype != np.uint8:
            wanted = f"is not uint8 {scene.height} × {scene.width} × 3"
            raise InvalidParameter("frame", f"{image.dtype} {image.shape}", wanted, hint="as its facts state")
        spots = scene.spots(frame.index)
        return spots, Surroundings(image, [spot.region for spot in spots if spot.region is not None])

    def _see(self, index: int, spots: Sequence[Spot], around: Surroundings) -> None:
        """Take the light of heads in a frame."""
        present = {spot.track.number for spot in spots}
        self._lights = {number: seen for number, seen in self._lights.items() if number in present}
        self._held = {number: held for number, held in self._held.items() if number in present}
        for spot in spots:
            if spot.head is not None:
                seen = self._lights.setdefault(spot.track.number, deque(maxlen=self.memory + 1))
                if not seen or seen[-1][0] != index:
                    seen.append((index, Light.seen(around.levels, around.hidden, spot.head)))

    def _raster(self, spot: Spot, frame: Frame) -> Image:
        """Return what is shown of an object in a frame."""
        subject = self._subjects[spot.track.number]
        drawn = self.draws.get(subject.number)
        if drawn is not None and drawn.raster is not None:
            return drawn.raster
        if self._own is None:
            raise InvalidParameter("draws", subject.number, "is no raster", hint="draw the subject again")
        return self._own(subject, spot.track, frame)

    def _shown(self, spot: Spot, region: Region, head: Similarity, index: int) -> Shown:
        """Return a head as it is shown in a frame."""
        number = spot.track.number
        course, stored = self.scene.course(spot.track), self.layers[number]
        faces = [(None, 1.0)] if None in stored else course.faces(index, self.scene.fade)
        layers = self._held.setdefault(number, {})
        layers.update({yaw: stored[yaw] for yaw, _ in faces if yaw not in layers})
        lights = [light for _, light in self._lights[number]]
        shown = []
        for yaw, share in faces:
            changes = [layers[yaw].light.change(light) for light in lights]
            shown.append((layers[yaw], share, sum(changes) / len(changes)))
        return Shown(region, head, shown, course.protect == FACE)


def _groups(heads: Sequence[Shown]) -> list[list[Shown]]:
    """Return heads in groups whose boxes overlap; each from the smallest to the largest, then downwards."""
    groups: list[list[Shown]] = []
    for shown in heads:
        near = [g for g in groups if any(shown.region.box.overlaps(other.region.box) for other in g)]
        joined = [shown, *(other for g in near for other in g)]
        groups = [g for g in groups if g not in near] + [joined]
    return [sorted(group, key=lambda one: (one.unit, one.region.box.y)) for group in groups]
