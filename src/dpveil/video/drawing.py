"""Draws: one for each person or object of a clip, before any frame is rendered."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import reduce

import numpy as np

from dpveil.core.arrays import UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, RegionError, UsageError
from dpveil.faces.base import FaceMethod
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head_frame import between
from dpveil.faces.geometry.landmarks import SEEN, of_box
from dpveil.faces.geometry.place import place
from dpveil.faces.objects import COVER
from dpveil.faces.released import Released
from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil.noise.bits import BitSource
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
    of the clip; all that is shown later is a function of what is returned, of the keys, and of pixels in the
    clear. ∎

    Raises `RegionError` if there is no face where one has to be, and errors of the method.
    """
    if scene.shows_face(track):
        return Drawn(face=_face(scene, track, key, image, bits))
    if scene.faces:  # face methods cover all else with grey, whatever it is
        return Drawn(raster=np.full((1, 1, 3), COVER.level, np.uint8))
    if not isinstance(method := scene.method, PixelMethod):
        raise InvalidParameter("method", method.name, "replaces no rasters", hint="use a pixel method")
    released = method.release(np.ascontiguousarray(image[scene.raster(track, key.frame).slices]), bits=bits)
    return Drawn(raster=np.asarray(reduce(lambda shown, step: step(shown), scene.steps, released)))


def _face(scene: Scene, track: Track, key: Key, image: Image, bits: BitSource) -> Released:
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
