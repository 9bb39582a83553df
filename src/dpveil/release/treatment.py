"""What a method does to the regions of a photo: pixels within their boxes, or faces that are put back."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache
from typing import Final, cast

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.errors import InvalidParameter, RegionError
from dpveil.faces import FaceMethod
from dpveil.faces.geometry import Frame, Placed, Similarity, place, recombine
from dpveil.faces.geometry.align import halvings, of_points
from dpveil.faces.geometry.head import between
from dpveil.faces.geometry.landmarks import SEEN, of_box, predictor
from dpveil.faces.geometry.place import check
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.pixel import PixelMethod
from dpveil.noise.bits import BitSource
from dpveil.postprocessing import Step
from dpveil.regions import Faces, Finder, grow
from dpveil.regions.faces import MARGIN
from dpveil.regions.masks import GivenMask
from dpveil.regions.whole import Whole

Image = UInt8[np.ndarray, "h w c"]
SOFT: Final = 0.12
"""How soft a portrait becomes beside its square, and how soon, in parts of a crop's side."""
LEAST: Final = 8
"""Pixels of the shorter side of a box that a user gives as that of a face."""


class Treatment(ABC):
    """A method and the regions of one photo, as they will be replaced: nothing is drawn yet."""

    regions: tuple[Region, ...]

    @abstractmethod
    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo in which every region was drawn anew, followed by the steps."""


def suited(finders: Sequence[Finder], method: Method) -> list[Finder]:
    """Return the finders as this method needs them; raises `InvalidParameter` for one that does not fit it.

    A face-space method takes the boxes of faces as they are found: what it replaces is wider in any case.
    """
    if not isinstance(method, FaceMethod):
        return list(finders)
    if len(finders) > 1 and any(isinstance(finder, Whole) for finder in finders):
        raise _more_than_all()
    return [_suited(finder, method) for finder in finders]


def _suited(finder: Finder, method: FaceMethod) -> Finder:
    if isinstance(finder, GivenMask):
        hint = "choose faces, the box of a face, or whole"
        raise InvalidParameter("regions", None, f"cannot be a mask for {method.name}", hint=hint)
    if isinstance(finder, Faces) and finder.margin not in (0, MARGIN):
        hint = "leave it out: hair, ears and neck are replaced in any case"
        raise InvalidParameter("margin", str(float(finder.margin)), f"is not for {method.name}", hint=hint)
    return replace(finder, margin=0) if isinstance(finder, Faces) else finder


def _more_than_all() -> InvalidParameter:
    hint = "choose the whole photo, or faces in it"
    return InvalidParameter("regions", None, "are the whole photo and more than that", hint=hint)


def treatment(photo: Photo, regions: Sequence[Region], method: Method) -> Treatment:
    """Return how `method` will treat these regions of the photo, given as they were found.

    Raises `RegionError` where a face cannot be placed.
    """
    if isinstance(method, FaceMethod):
        whole = [region for region in regions if _all(region, photo)]
        if whole and len(regions) > 1:
            raise _more_than_all()
        if whole:
            return Portrait(photo, whole[0], method)
        return Heads(photo, regions, method)
    return Pixels(photo, regions, cast(PixelMethod, method))


class Pixels(Treatment):
    """Every region, grown to the blocks of a lossy format, goes through a pixel-space method."""

    def __init__(self, photo: Photo, regions: Iterable[Region], method: PixelMethod) -> None:
        self.photo, self.method = photo, method
        self.regions = tuple(grow(region, photo) for region in regions)

    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo in which each region, as it was, went through the method and then the steps."""
        image = self.photo.image.copy()
        for region in self.regions:
            released = self.method.release(region.crop(self.photo.image), bits=bits)
            for step in steps:
                released = step(released)
            region.paste(image, released)
        return image


class Heads(Treatment):
    """Every face goes through a face-space method as a canonical crop, and another takes its head's place."""

    def __init__(self, photo: Photo, regions: Iterable[Region], method: FaceMethod) -> None:
        self.photo, self.method = photo, method
        found = [_placed(photo, region, method) for region in regions]
        self.places = [replace(one, region=grow(one.region, photo)) for one in found]
        self.regions = tuple(one.region for one in self.places)

    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return the photo with other faces: after the draw only its outside is read."""
        filling = self.method.inpainting.held
        crops = np.stack([one.crop(self.photo) for one in self.places])
        released = list(self.method.release(crops, bits=bits))
        for step in steps:
            released = [step(crop) for crop in released]
        return recombine(self.photo.image, self.places, released, filling=filling)


class Portrait(Treatment):
    """The whole photo is one face: another face, in the canonical place, takes the place of everything.

    Where the face was found, or whether one was, only steers what the code is, and so shows in nothing but
    the draw: the guarantee holds for any two photos of one size. Whatever is found, the same steps are taken
    (docs, "Limits": running time).
    """

    def __init__(self, photo: Photo, region: Region, method: FaceMethod) -> None:
        self.photo, self.method, self.regions = photo, method, (region,)

    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return a picture of the photo's size that shows the released crop, and nothing of the photo."""
        crop = _canonical(self.photo, self.method)
        (released,) = self.method.release(crop[None], bits=bits)
        for step in steps:
            released = step(released)
        return _spread(released, self.photo)


def _all(region: Region, photo: Photo) -> bool:
    """Whether this is the whole photo, chosen as such and not found in it."""
    return not region.found and region.mask is None and region.box == Box(0, 0, photo.width, photo.height)


def _placed(photo: Photo, region: Region, method: FaceMethod) -> Placed:
    """Return the place of the face in a box, by the method's rule."""
    if region.mask is not None:
        raise RegionError(f"{region.label} is a mask", hint="face-space methods take boxes of faces")
    if not region.found and min(region.box.w, region.box.h) < LEAST:
        size = f"{region.box.w}×{region.box.h} pixels"
        hint = "draw it from the forehead to the chin"
        raise RegionError(f"{region.label} is {size}, too small for a face", hint=hint)
    settings = {"frame": method.frame, "protect": method.protect, "label": region.label}
    if method.placing != "box":
        try:
            return place(photo, region.box, landmarks=True, **settings)  # type: ignore[arg-type]
        except RegionError:
            if method.placing == "landmarks":
                raise
    there = place(photo, region.box, landmarks=False, **settings)  # type: ignore[arg-type]
    if method.placing == "auto" or method.protect == "head":
        return there
    # From a given box alone nothing was found: the region follows from the box.
    return replace(there, region=replace(there.region, found=region.found))


@lru_cache(maxsize=1)
def _largest_face() -> Faces:
    return Faces(margin=0)


def _canonical(photo: Photo, method: FaceMethod) -> Image:
    """Return the crop of the largest face of a photo; that of its middle square where none is found.

    Every photo of a size goes one way: a search, landmarks in one box, a crop from a reduced copy in which
    that box is small, and only then is chosen what counts. Whatever goes wrong is as if nothing were found: a
    refusal would tell of the photo, unpaid.
    """
    copies, frame = halvings(photo.image), method.frame
    found, middle = _largest(photo), _middle(photo.width, photo.height)
    image, box = _reduced(copies, found or middle)
    sure = _by_landmarks(image, box, frame) if method.placing != "box" else None
    by_box = between(of_box(box), SEEN, frame)
    if found is None or (sure is None and method.placing == "landmarks"):
        image, _ = _reduced(copies, middle)
        return _middle_square(image, frame).crop(image, frame)
    return (sure or by_box).crop(image, frame)


def _reduced(copies: Sequence[Image], box: Box) -> tuple[Image, Box]:
    """Return the copy of a photo in which a face in `box` is just large enough, and the box in it."""
    steps = min(max(0, math.floor(-math.log2(of_box(box).scale))), len(copies) - 1)
    x, y, w, h = (side >> steps for side in (box.x, box.y, box.w, box.h))
    return copies[steps], Box(x, y, max(1, w), max(1, h))


def _largest(photo: Photo) -> Box | None:
    """Return the box of the largest face that is found, if any."""
    try:
        boxes = [found.box for found in _largest_face().detect(photo)]
    except Exception:  # noqa: BLE001  a photo that makes the detector fail is no other case than the rest
        boxes = []
    large = [box for box in boxes if min(box.w, box.h) >= LEAST]
    return max(large, key=lambda box: box.w * box.h, default=None)


def _by_landmarks(image: Image, box: Box, frame: Frame) -> Similarity | None:
    """Return where the face in a box is by its landmarks, or None where they are not sure."""
    try:
        return of_points(check(predictor().near(image, box)).points, frame.points())
    except Exception:  # noqa: BLE001  as above
        return None


def _middle(width: int, height: int) -> Box:
    """Return the middle square of a photo, to the pixel."""
    side = min(width, height)
    return Box((width - side) // 2, (height - side) // 2, side, side)


def _middle_square(image: Image, frame: Frame) -> Similarity:
    """Return the similarity that takes the middle square onto the crop, corners onto corners."""
    height, width = image.shape[:2]
    side = min(width, height)
    scale = frame.size / side
    # Centres of pixels are whole numbers: corners of pixels are mapped onto corners.
    move = (scale - 1) / 2
    return Similarity(scale, 0.0, move - scale * (width - side) / 2, move - scale * (height - side) / 2)


def _spread(crop: Image, photo: Photo) -> Image:
    """Return a picture of the photo's size and channels with the crop on its middle square, carried on."""
    import cv2

    height, width, channels = photo.image.shape
    size, side = crop.shape[0], min(width, height)
    scale = side / size
    across, down = (math.ceil((longer - side) / 2 / scale) for longer in (width, height))
    wide = _carried_on(crop, across, down)
    move = (scale - 1) / 2
    left, top = (width - side) / 2 + move - scale * across, (height - side) / 2 + move - scale * down
    matrix = np.array([[scale, 0, left], [0, scale, top]])
    mode = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    shown = cv2.warpAffine(wide, matrix, (width, height), flags=mode, borderMode=cv2.BORDER_REPLICATE)
    if channels == 1:
        shown = cv2.cvtColor(shown, cv2.COLOR_RGB2GRAY)
    return np.asarray(shown, np.uint8).reshape(height, width, channels)


def _carried_on(crop: Image, across: int, down: int) -> Image:
    """Return the crop with so many pixels more on each side: its last ones, and softer farther out."""
    import cv2

    if not (across or down):
        return crop
    wide = np.pad(crop, ((down, down), (across, across), (0, 0)), mode="edge")
    soft = cv2.GaussianBlur(wide, (0, 0), SOFT * crop.shape[0], borderType=cv2.BORDER_REPLICATE)
    rows, columns = _beyond(crop.shape[0], down), _beyond(crop.shape[1], across)
    far = np.clip(np.maximum(rows[:, None], columns) / (SOFT * crop.shape[0]), 0, 1)[..., None]
    return np.asarray(np.rint(wide + far * (soft.astype(np.float32) - wide)), np.uint8)


def _beyond(size: int, more: int) -> Float64[np.ndarray, " n"]:
    """Return how far each of size + 2 × more pixels lies outside the middle ones."""
    at = np.arange(size + 2 * more, dtype=np.float64) - more
    beyond: Float64[np.ndarray, " n"] = np.maximum(0, np.maximum(-at, at - size + 1))
    return beyond
