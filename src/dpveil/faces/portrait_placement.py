"""A photo treated as a single face: replaced as a whole by another face in the canonical position."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache, reduce
from typing import TYPE_CHECKING, Final

import numpy as np

from dpveil.core.array_types import Float64
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.faces.drawn_face import HeadFace, portrait
from dpveil.faces.geometry.align import Frame, Similarity, halvings, of_points
from dpveil.faces.geometry.head_frame import between
from dpveil.faces.geometry.landmarks import SEEN, locator, of_box
from dpveil.faces.geometry.place import check
from dpveil.faces.head_gallery import HeadGallery
from dpveil.faces.head_placement import LEAST_BOX_SIDE
from dpveil.mechanisms.method import Image, Placement, Step
from dpveil.noise.bits import BitSource
from dpveil.opencv import cv2
from dpveil.regions import Faces

if TYPE_CHECKING:
    from dpveil.faces.base import FaceMethod

SOFT: Final = 0.12
"""Standard deviation of the blur beside the square, and the distance over which it sets in, relative to the
crop's side."""
REACH: Final = 4 * SOFT
"""Distance from the square beyond which rows and columns only repeat, relative to the crop's side."""
Shape = tuple[int, ...]


class Portrait(Placement):
    """The placement of a whole photo as one face: another face in canonical position replaces everything.

    Whether and where a face was found only influences the mechanism's input, so the guarantee holds for any
    two photos of the same size. The steps are the same whatever is found (docs, "Limits": running time).
    """

    def __init__(self, photo: Photo, region: Region, method: FaceMethod) -> None:
        self.photo, self.method, self.regions = photo, method, (region,)

    def draw(self, bits: BitSource, steps: Sequence[Step]) -> Image:
        """Return an image of the photo's size that depends on the released crop only."""
        method, size = self.method, self.photo.image.shape
        crop = canonical(self.photo, method.frame, method.placing) if method.reads else method.blank_crop
        drawn = method.shown(crop[None], bits=bits)[0]
        face = reduce(lambda shown, step: shown.after(step), steps, drawn)
        if not isinstance(face, HeadFace) or not isinstance(face.gallery, HeadGallery):
            return extend_crop_to_size(face.crop(method.frame), size)
        shown = portrait(face, *size[:2])
        return shown if size[2] == 3 else cv2.cvtColor(shown, cv2.COLOR_RGB2GRAY)[..., None]


@lru_cache(maxsize=1)
def _largest_face() -> Faces:
    return Faces(margin=0)


def centred(photo: Photo, canvas: tuple[int, int, int]) -> Image:
    """Return the largest central part of the photo with the canvas's aspect ratio, resized to the canvas.

    Grey and colour are converted as the canvas requires (ITU-R BT.601).
    """
    height, width, channels = canvas
    scale = min(photo.height / height, photo.width / width)
    rows, columns = max(1, round(scale * height)), max(1, round(scale * width))
    top, left = (photo.height - rows) // 2, (photo.width - columns) // 2
    part = photo.image[top : top + rows, left : left + columns]
    if part.shape[2] != channels:
        code = cv2.COLOR_RGB2GRAY if channels == 1 else cv2.COLOR_GRAY2RGB
        part = cv2.cvtColor(np.ascontiguousarray(part), code).reshape(rows, columns, channels)
    if (rows, columns) != (height, width):
        how = cv2.INTER_AREA if scale > 1 else cv2.INTER_CUBIC
        part = cv2.resize(np.ascontiguousarray(part), (width, height), interpolation=how)
    return part.reshape(canvas)


def canonical(photo: Photo, frame: Frame, placing: str | None = "auto") -> Image:
    """Return the crop of the largest face of a photo, or of its middle square if none is found.

    `placing` is that of a `FaceMethod`. It reads protected pixels: only a mechanism may use the result.

    All photos of a size take the same steps: a search, landmarks in one box, a crop from a downscaled copy
    in which that box is small; only then is a result chosen. Any failure counts as nothing found, because
    refusing would reveal something about the photo that no budget covers.
    """
    copies = halvings(photo.image)
    found, middle = _largest(photo), _middle(photo.width, photo.height)
    image, box = _reduced(copies, found or middle)
    sure = _by_landmarks(image, box, frame) if placing != "box" else None
    by_box = between(of_box(box), SEEN, frame)
    if found is None or (sure is None and placing == "landmarks"):
        image, _ = _reduced(copies, middle)
        return _middle_square(image, frame).crop(image, frame)
    return (sure or by_box).crop(image, frame)


def _reduced(copies: Sequence[Image], box: Box) -> tuple[Image, Box]:
    """Return the smallest copy of the pyramid in which a face in `box` is large enough, and its box there."""
    steps = min(max(0, math.floor(-math.log2(of_box(box).scale))), len(copies) - 1)
    x, y, w, h = (side >> steps for side in (box.x, box.y, box.w, box.h))
    return copies[steps], Box(x, y, max(1, w), max(1, h))


def _largest(photo: Photo) -> Box | None:
    """Return the box of the largest detected face, or None."""
    try:
        boxes = [found.box for found in _largest_face().detect(photo)]
    except Exception:  # noqa: BLE001  a failure must not distinguish one photo from others
        boxes = []
    large = [box for box in boxes if min(box.w, box.h) >= LEAST_BOX_SIDE]
    return max(large, key=lambda box: box.w * box.h, default=None)


def _by_landmarks(image: Image, box: Box, frame: Frame) -> Similarity | None:
    """Return the alignment of the face in a box by its landmarks, or None if they are uncertain."""
    try:
        return of_points(check(locator().near(image, box)).points, frame.points())
    except Exception:  # noqa: BLE001  as above
        return None


def _middle(width: int, height: int) -> Box:
    side = min(width, height)
    return Box((width - side) // 2, (height - side) // 2, side, side)


def _middle_square(image: Image, frame: Frame) -> Similarity:
    """Return the similarity that maps the middle square to the crop, corner to corner."""
    height, width = image.shape[:2]
    side = min(width, height)
    scale = frame.size / side
    # Integer positions are centres of pixels, so mapping corners to corners adds this offset.
    move = (scale - 1) / 2
    return Similarity(scale, 0.0, move - scale * (width - side) / 2, move - scale * (height - side) / 2)


def extend_crop_to_size(crop: Image, size: Shape) -> Image:
    """Return an image of this height, width and channels: the crop in its middle square, extended beyond."""
    height, width, channels = size
    own, side = crop.shape[0], min(width, height)
    scale = side / own
    reach = math.ceil((REACH * own + 4) * scale)
    # Beyond the reach all lines are equal, and are added at the end: the cost ignores the aspect ratio.
    right, below = (max(0, (longer - side) // 2 - reach) for longer in (width, height))
    width, height = width - 2 * right, height - 2 * below
    across, down = (math.ceil((longer - side) / 2 / scale) for longer in (width, height))
    wide = _carried_on(crop, across, down)
    move = (scale - 1) / 2
    left, top = (width - side) / 2 + move - scale * across, (height - side) / 2 + move - scale * down
    matrix = np.array([[scale, 0, left], [0, scale, top]])
    mode = cv2.INTER_AREA if scale < 1 else cv2.INTER_CUBIC
    shown = cv2.warpAffine(wide, matrix, (width, height), flags=mode, borderMode=cv2.BORDER_REPLICATE)
    if channels == 1:
        shown = cv2.cvtColor(shown, cv2.COLOR_RGB2GRAY)
    near = np.asarray(shown, np.uint8).reshape(height, width, channels)
    return np.pad(near, ((below, below), (right, right), (0, 0)), mode="edge")


def _carried_on(crop: Image, across: int, down: int) -> Image:
    """Return the crop padded on each side with its last pixels, blurred farther out."""
    if not (across or down):
        return crop
    wide = np.pad(crop, ((down, down), (across, across), (0, 0)), mode="edge")
    soft = cv2.GaussianBlur(wide, (0, 0), SOFT * crop.shape[0], borderType=cv2.BORDER_REPLICATE)
    rows, columns = _beyond(crop.shape[0], down), _beyond(crop.shape[1], across)
    far = np.clip(np.maximum(rows[:, None], columns) / (SOFT * crop.shape[0]), 0, 1)[..., None]
    return np.asarray(np.rint(wide + far * (soft.astype(np.float32) - wide)), np.uint8)


def _beyond(size: int, more: int) -> Float64[np.ndarray, " n"]:
    """Return the distance of each of `size` + 2 · `more` pixels from the middle `size`, 0 within them."""
    at = np.arange(size + 2 * more, dtype=np.float64) - more
    return np.asarray(np.maximum(0, np.maximum(-at, at - size + 1)))
