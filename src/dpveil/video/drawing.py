"""Draws: one for each person or object of a clip, before any frame is rendered."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import reduce
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from dpveil.core.arrays import UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, RegionError, UsageError
from dpveil.faces.attributes import Attributes
from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head_frame import between
from dpveil.faces.geometry.landmarks import SEEN, of_box
from dpveil.faces.geometry.place import place
from dpveil.faces.objects import COVER
from dpveil.faces.released import CropFace, HeadFace, Released
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil.mechanisms.placement import Step
from dpveil.noise.bits import BitSource
from dpveil.video.facts import Key, Track
from dpveil.video.places import Scene, Subject

Image = UInt8[np.ndarray, "h w 3"]


@dataclass(frozen=True, eq=False)
class Drawn:
    """What was drawn of a person or object: a `face`, or the `raster` of a region. Released."""

    face: Released | None = None
    raster: Image | None = None


def draw(scene: Scene, subject: Subject, image: Image, bits: BitSource) -> Drawn:
    """Draw a person or object from the frame of its key; the only place where noise meets that frame.

    *Why it costs the guarantee once.* A mechanism is applied to one crop, or one raster, which is a function
    of the clip; all that is shown later is a function of what is returned, of the keys, and of pixels in the
    clear. ∎

    Raises `RegionError` if there is no face where one has to be, and errors of the method.
    """
    track = subject.track
    if scene.shows_face(track):
        return Drawn(face=_face(scene, track, subject.key, image, bits))
    if scene.faces:
        return cover_draw()
    return Drawn(raster=_raster(scene, image[scene.raster(track, subject.key.frame).slices], bits))


def draw_mean(scene: Scene, mean: Mean, bits: BitSource) -> Drawn:
    """Draw an object whose box does not move from the mean of its frames."""
    return Drawn(raster=_raster(scene, mean.raster, bits))


def draw_frame(
    scene: Scene, method: Method, track: Track, frame: int, image: Image, bits: BitSource
) -> Image:
    """Return the raster of one frame, by a `method` with the frame's part of the budget ."""
    return _raster(replace(scene, method=method), image[scene.raster(track, frame).slices], bits)


def cover_draw() -> Drawn:
    """Return what face methods show instead of objects: grey, whatever they are."""
    return Drawn(raster=np.full((1, 1, 3), COVER.level, np.uint8))


class Mean:
    """The mean of a box over frames, rounded (halves upwards), in constant memory.

    *Neighbours.* If two clips differ in at most m positions of the box, in whatever frames, their means
    differ in at most these positions: each pixel of the mean is a function of that position alone. ∎
    """

    def __init__(self, box: Box) -> None:
        self.box, self.frames = box, 0
        self._sums = np.zeros((box.h, box.w, 3), np.int64)

    def add(self, image: Image) -> None:
        """Add a frame."""
        self._sums += image[self.box.slices]
        self.frames += 1

    @property
    def raster(self) -> Image:
        """The mean of all frames so far; raises `RegionError` if there is none."""
        if not self.frames:
            raise RegionError("there is no frame to take the mean of", hint="check the track's keys")
        return ((2 * self._sums + self.frames) // (2 * self.frames)).astype(np.uint8)


def _raster(scene: Scene, pixels: Image, bits: BitSource) -> Image:
    """Return the released pixels of a region, followed by the steps."""
    if not isinstance(scene.method, PixelMethod):
        raise InvalidParameter("method", scene.method.name, "replaces no rasters", hint="use a pixel method")
    released = scene.method.release(np.ascontiguousarray(pixels), bits=bits)
    for step in scene.steps:
        released = step(released)
    return np.asarray(released)


def _face(scene: Scene, track: Track, key: Key, image: Image, bits: BitSource) -> Released:
    """Return the released face of a person, followed by the steps."""
    method = _face_method(scene)
    face = method.views(crop_of(scene, track, key, image)[None], bits=bits)(None)[0]
    return reduce(lambda shown, step: shown.after(step), scene.steps, face)


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
            spot.region.paste(seen, np.full((spot.region.box.h, spot.region.box.w, 3), COVER.level, np.uint8))
    try:
        return _exact_pose(method, key, seen).crop(seen, method.frame)
    except RegionError as error:
        problem = f"track {track.number}, frame {key.frame}: {error.message}"
        raise RegionError(problem, hint=error.hint) from error


def _exact_pose(method: FaceMethod, key: Key, image: Image) -> Similarity:
    """Return where a face is in the frame of its key, as that of a photo: by landmarks if they are sure.

    It is private, and serves to read the crop alone.
    """
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


def write_draws(file: BinaryIO, draws: Mapping[int, Drawn]) -> None:
    """Write draws by the numbers of their subjects, so that nothing is drawn again after an interruption."""
    arrays: dict[str, Any] = {}
    for number, drawn in draws.items():
        face = drawn.face
        if isinstance(face, HeadFace):
            drawn_number = np.array([face.number], np.uint64)
            arrays |= {f"{number} persons": face.persons, f"{number} number": drawn_number}
            if face.own_yaw is not None:
                arrays[f"{number} yaw"] = np.array([face.own_yaw])
        elif isinstance(face, CropFace):
            arrays[f"{number} face"] = face.picture
        else:
            arrays[f"{number} raster"] = np.asarray(drawn.raster)
    np.savez(file, **arrays)


def read_draws(path: Path, method: Method, steps: tuple[Step, ...] = ()) -> dict[int, Drawn]:
    """Return what was written of a method's draws; `steps` follow on the pictures of heads.

    Raises a built-in error if the file is damaged.
    """
    with np.load(path) as stored:
        arrays = dict(stored.items())
    found: dict[int, Drawn] = {}
    for name, array in arrays.items():
        number, what = name.split()
        if what == "persons" and isinstance(method, Attributes):
            (drawn,), yaw = arrays[f"{number} number"], arrays.get(f"{number} yaw")
            own = None if yaw is None else int(yaw[0])
            head = HeadFace(method.gallery.held, array, int(drawn), own, method.outside.held, steps)
            found[int(number)] = Drawn(face=head)
        elif what == "face" and isinstance(method, FaceMethod):
            found[int(number)] = Drawn(face=CropFace(array, method.frame))
        elif what == "raster":
            found[int(number)] = Drawn(raster=array)
    return found
