"""What is drawn for each person or object of a clip, and the head layers that are painted from it.

Each is drawn once, before any frame is rendered. A clip keeps the head that is painted in the frame of one
key, so that a frame only moves it, lights it and passes it into its surroundings: a head neither trembles nor
pumps, and a frame takes milliseconds. Painting reads nothing but released pixels and pixels outside of what
is replaced.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property, lru_cache, reduce
from tempfile import TemporaryFile
from typing import Final, Self

import numpy as np

from dpveil.core.array_types import Bool, UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter, RegionError, UsageError
from dpveil.faces.base import FaceMethod
from dpveil.faces.drawn_face import Released
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.cell import Cell
from dpveil.faces.geometry.colour_match import match_of
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.head_picture import UNIT_FRAME
from dpveil.faces.geometry.landmarks import SEEN, of_box
from dpveil.faces.geometry.place import Placed, place
from dpveil.faces.geometry.protection import TURNED
from dpveil.faces.objects_beside_faces import GREY_FILL
from dpveil.faces.paint_faces import FOCUS, is_aside, paint_face, part_of
from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil.noise.bits import BitSource
from dpveil.opencv import cv2
from dpveil.video.facts import Key, Track
from dpveil.video.places import Scene

Image = UInt8[np.ndarray, "h w 3"]


@dataclass(frozen=True, eq=False)
class Drawn:
    """What was drawn of a person or object: a `face`, or the `raster` of a region. Released."""

    face: Released | None = None
    raster: Image | None = None


def draw(scene: Scene, track: Track, key: Key, image: Image, bits: BitSource) -> Drawn:
    """Draw whoever or whatever `track` shows from the frame of `key`; here alone noise meets that frame.

    *Why it costs the guarantee once.* A mechanism is applied to one crop, or one raster, which is a function
    of the clip; all that is shown later is one of what is returned, the keys, and pixels in the clear. ∎

    Raises `RegionError` if there is no face where one has to be, and errors of the method.
    """
    if scene.shows_face(track):
        face = _face_method(scene).shown(crop_of(scene, track, key, image)[None], bits=bits)[0]
        return Drawn(face=reduce(lambda shown, step: shown.after(step), scene.steps, face))
    if scene.faces:  # face methods cover all else with grey, whatever it is
        return Drawn(raster=np.full((1, 1, 3), GREY_FILL.level, np.uint8))
    if not isinstance(method := scene.method, PixelMethod):
        raise InvalidParameter("method", method.name, "replaces no rasters", hint="use a pixel method")
    released = method.release(np.ascontiguousarray(image[scene.raster(track, key.frame).slices]), bits=bits)
    return Drawn(raster=np.asarray(reduce(lambda shown, step: step(shown), scene.steps, released)))


def _face_method(scene: Scene) -> FaceMethod:
    if not isinstance(scene.method, FaceMethod):
        raise InvalidParameter("method", scene.method.name, "shows no faces", hint="use a face method")
    return scene.method


def crop_of(scene: Scene, track: Track, key: Key, image: Image) -> Image:
    """Return the canonical crop of a face in the frame of its key, with grey where others are covered.

    It holds protected pixels: only a mechanism may use it.
    """
    method, seen = _face_method(scene), image.copy()
    for spot in scene.spots(key.frame):
        if spot.region is not None and not scene.shows_face(spot.track):
            spot.region.paste(
                seen, np.full((spot.region.box.h, spot.region.box.w, 3), GREY_FILL.level, np.uint8)
            )
    try:
        return _exact_pose(method, key, seen).crop(seen, method.frame)
    except RegionError as error:
        problem = f"track {track.number}, frame {key.frame}: {error.message}"
        raise RegionError(problem, hint=error.hint) from error


def _exact_pose(method: FaceMethod, key: Key, image: Image) -> Similarity:
    # As that of a photo: by landmarks if they are sure. It is private, and serves to read the crop alone.
    height, width = image.shape[:2]
    x, y = max(0, key.x), max(0, key.y)
    w, h = min(width, key.x + key.w) - x, min(height, key.y + key.h) - y
    if method.placing != "box" and w > 0 and h > 0:
        try:
            found = place(Photo(image), Box(x, y, w, h), frame=method.frame, protect=str(method.protect))
            return found.exact or found.pose
        except (RegionError, UsageError) as error:
            if method.placing == "landmarks" or (isinstance(error, UsageError) and method.reads):
                raise
    box = Box(key.x, key.y, key.w, key.h)
    return between(of_box(box, -math.radians(key.roll)), SEEN, method.frame)


BELOW: Final = (0.22, 0.9, 1.06)
"""Where what is worn is looked at: half the width, and from where to where, in sides of the head's frame."""
ENOUGH_SEEN: Final = 0.3  # least share of that place that has to be seen
EVERY_PIXEL: Final = 12  # rows and columns from one pixel of the picture to the next that are looked at
DARK: Final = 8.0  # levels that are added before logarithms are taken
FREE_DARKENING: Final = 0.5  # by how much a picture may darken, as a logarithm, before a head does
STEADY_CHANGE: Final = 0.4
"""Change of what is worn, as a logarithm, that a head does not follow: folds, hands, noise."""
CHANGES: Final = (-2.5, 0.1)  # least and largest logarithm of a head's factor: more burns faces out
LEAST_CHANGE: Final = 1e-3  # smaller ones are not shown
LIGHT_SECONDS: Final = 1.2  # over how long light is averaged


@dataclass(frozen=True)
class Light:
    """The mean level of what is worn `below` a head, None where too little is seen, and of the `picture`."""

    below: float | None
    picture: float

    @classmethod
    def measure(
        cls, outside: UInt8[np.ndarray, "H W 3"], hidden: Bool[np.ndarray, "H W"], head: Similarity
    ) -> Self:
        """Return the light in a picture; no pixel that is `hidden` is read."""
        half, top, bottom = BELOW
        x, y = np.meshgrid(np.linspace(0.5 - half, 0.5 + half, 24), np.linspace(top, bottom, 10))
        worn = np.stack([x.ravel(), y.ravel()], axis=1) - 0.5  # in the head's frame with a side of 1
        at = np.rint(head.back(worn)).astype(int)
        at = at[(at >= 0).all(axis=1) & (at < hidden.shape[::-1]).all(axis=1)]
        at = at[~hidden[at[:, 1], at[:, 0]]]
        enough = len(at) >= ENOUGH_SEEN * len(worn)
        below = float(outside[at[:, 1], at[:, 0]].mean()) if enough else None
        return cls(below, brightness(outside, hidden))


@lru_cache(maxsize=4096)  # asked for again in every frame of `LIGHT_SECONDS`
def light_change(before: Light, after: Light) -> float:
    """Return the logarithm of the factor from one light to another one."""
    least, most = CHANGES
    darker = min(0.0, math.log((after.picture + DARK) / (before.picture + DARK)) + FREE_DARKENING)
    if before.below is None or after.below is None:
        return max(least, darker)
    worn = math.log((after.below + DARK) / (before.below + DARK))
    return min(most, max(least, math.copysign(max(0.0, abs(worn) - STEADY_CHANGE), worn)))


def brightness(outside: UInt8[np.ndarray, "H W 3"], hidden: Bool[np.ndarray, "H W"]) -> float:
    """Return the mean level of the picture outside; 0 if nothing of it is seen."""
    few = outside[::EVERY_PIXEL, ::EVERY_PIXEL][~hidden[::EVERY_PIXEL, ::EVERY_PIXEL]]
    return float(few.mean()) if len(few) else 0.0


def relight(levels: UInt8[np.ndarray, "h w c"], change: float) -> UInt8[np.ndarray, "h w c"]:
    """Return levels in another light; `change` is the logarithm of the factor."""
    if abs(change) < LEAST_CHANGE:
        return levels
    table = np.clip(np.rint((np.arange(256) + DARK) * math.exp(change) - DARK), 0, 255).astype(np.uint8)
    return np.asarray(cv2.LUT(levels, table)).reshape(levels.shape)


SIDES: Final = (64, 512)  # least and largest side of the head's frame in a layer, in pixels


@dataclass(frozen=True, eq=False)
class Layer:
    """A head's `picture`, RGB and alpha, in a frame of `side` pixels, and the `light` of its painting."""

    picture: UInt8[np.ndarray, "h w 4"]
    side: int
    light: Light

    @cached_property
    def _halves(self) -> list[UInt8[np.ndarray, "_ _ 4"]]:
        found = [self.picture]
        while min(found[-1].shape[:2]) >= 32:
            height, width = (length // 2 * 2 for length in found[-1].shape[:2])
            cut = found[-1][:height, :width]
            found.append(np.asarray(cv2.resize(cut, (width // 2, height // 2), interpolation=cv2.INTER_AREA)))
        return found

    def on(self, head: Similarity, box: Box) -> UInt8[np.ndarray, "h w 4"]:
        """Return the head in a box of a picture that `head` maps to a frame with a side of 1."""
        length = 1 / head.scale
        level = max(0, min(len(self._halves) - 1, math.floor(math.log2(max(1.0, self.side / length)) + 0.4)))
        picture, times = self._halves[level], self.side / 2**level
        matrix = head.inverse.matrix
        matrix[:, :2] /= times
        # the centre of the picture's first pixel, in the head's frame
        zero = np.array([0.5, 0.5]) / times - 0.5
        matrix[:, 2] = head.back(zero[None])[0] - (box.x, box.y)
        shown = cv2.warpAffine(
            picture, matrix, (box.w, box.h), flags=cv2.INTER_LINEAR, borderMode=cv2.BORDER_CONSTANT
        )
        return np.asarray(shown)


def paint(scene: Scene, drawn: Drawn, track: Track, image: Image) -> dict[int | None, Layer]:
    """Return the heads of a track by their classes of yaw, from the frame of `Scene.painted_at`.

    Pixels of `image` that are replaced are set to 0 first. Raises `InvalidParameter` if the draw is no face.
    """
    method = scene.method
    if drawn.face is None or not isinstance(method, FaceMethod):
        raise InvalidParameter("drawn", track.number, "is no face", hint="draw the subject of the track")
    key, course = scene.painted_at(track), scene.course(track)
    hidden = scene.hidden_mask(key.frame)
    outside = image * ~hidden[..., None]
    head, match = course.pose_at(key.frame), match_of(outside, hidden)
    side = int(np.clip(2 ** np.ceil(np.log2(course.largest)), *SIDES))
    own, box = between(UNIT_FRAME, HeadFrame(side), HeadFrame(1)), Box(0, 0, side, side)
    light = Light.measure(outside, hidden, head)
    region = scene.spot(track, key.frame).region or Region(Box(0, 0, scene.width, scene.height))
    faces = (other for other in scene.present(key.frame) if scene.shows_face(other))
    largest = max(HeadFrame(1).unit / scene.course(face).pose_at(key.frame).scale for face in faces)
    own_yaw = course.cells[track.keys.index(key)].yaw
    layers: dict[int | None, Layer] = {}
    for yaw in course.yaws if method.turned else {None}:
        cell = None if yaw is None else Cell(0, 0, 0, 0, max(-TURNED, min(TURNED, yaw)))
        there = Placed(
            region, between(head, HeadFrame(1), method.frame), method.frame, None, cell, None, course.protect
        )
        part = part_of(
            there, drawn.face, outside, hidden, match, toned=method.toned, turned=method.turned, place=head
        )
        alpha, levels, _ = paint_face(part, own, box, cut=True)
        picture = np.clip(np.rint(np.dstack([levels, 255 * alpha])), 0, 255).astype(np.uint8)
        if is_aside(part, own_yaw, largest):
            picture = np.asarray(cv2.GaussianBlur(picture, (0, 0), FOCUS * HeadFrame(side).unit))
        with TemporaryFile() as file:  # read when it is shown: memory does not grow with the number of heads
            picture.tofile(file)
            file.flush()
            layers[yaw] = Layer(np.memmap(file, np.uint8, "r", shape=picture.shape), side, light)
    return layers
