"""The preview of detected faces: the photo with numbered boxes and scores."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image, ImageDraw, ImageFont

from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter

LEAST: Final = 800
"""Least longer side of a preview in pixels: smaller photos are enlarged so that labels fit."""

Place = tuple[int, int, int, int]
"""Left, top, right and bottom of a rectangle on the page, in pixels, all of them in it."""
NEARBY: Final = 24
"""Plates beside which there is looked for room."""
EDGE: Final = (255, 214, 10)
KEPT: Final = (90, 200, 250)
"""The colours of what is replaced, and of faces that are chosen to stay."""
INK: Final = (20, 20, 20)


@dataclass(frozen=True)
class Shown:
    """One region of the preview: number, box, score if any, and the mask of replaced pixels in the box.

    A place that may be a face, and is not replaced, has no number. A face that is chosen to stay is `kept`.
    """

    number: int | None
    box: Box
    score: float | None
    mask: Bool[np.ndarray, "h w"] | None = None
    kept: bool = False

    @property
    def colour(self) -> tuple[int, int, int]:
        """The colour of its frame and label."""
        return KEPT if self.kept else EDGE


def check_name(path: Path, option: str = "--preview") -> None:
    """Raise `InvalidParameter` unless the `path` of an option has the suffix .png."""
    if path.suffix.lower() != ".png":
        raise InvalidParameter(option, str(path), "is not the name of a PNG file", hint="end it in .png")


def draw_preview(photo: Photo, faces: Sequence[Shown]) -> UInt8[np.ndarray, "h w 3"]:
    """Return `photo` with the box, the number and the score of each face, and masks tinted."""
    times = max(1, -(-LEAST // max(photo.width, photo.height)))
    page = Image.fromarray(_masked(np.broadcast_to(photo.image, (photo.height, photo.width, 3)), faces))
    page = page.resize((photo.width * times, photo.height * times), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(page)
    line = max(2, max(page.size) // 500)
    # Labels are drawn last, and none covers another.
    places = [_outline(draw, face, times, line) for face in faces]
    taken: list[Place] = []
    for face, place in sorted(zip(faces, places, strict=True), key=lambda entry: entry[0].box.w):
        taken.append(_label(draw, face, place, page.size, taken))
    return np.asarray(page)


def _masked(image: UInt8[np.ndarray, "h w 3"], faces: Sequence[Shown]) -> UInt8[np.ndarray, "h w 3"]:
    """Return the image with the pixels of each face's mask tinted."""
    tinted = image.copy()
    for face in faces:
        if face.mask is not None:
            part = tinted[face.box.slices]
            part[face.mask] = part[face.mask] // 2 + np.array(EDGE, np.uint8) // 2
    return tinted


def _outline(draw: ImageDraw.ImageDraw, face: Shown, times: int, line: int) -> Place:
    box = face.box
    corners = box.x * times, box.y * times, (box.x + box.w) * times - 1, (box.y + box.h) * times - 1
    draw.rectangle(corners, outline=INK, width=line + 2)
    draw.rectangle(corners, outline=face.colour, width=line)
    return corners


def _label(
    draw: ImageDraw.ImageDraw, face: Shown, place: Place, page: tuple[int, int], taken: Sequence[Place]
) -> Place:
    """Draw the number and, smaller, the score on a plate at the upper left of a box, or as near to that as
    the page and the other plates allow; returns the plate.
    """
    number = "?" if face.number is None else f"{face.number}"
    score = "" if face.score is None else f"{face.score:.2f}"
    left, top, right, _ = place
    size = int(min(max(18, (right - left) / 4, max(page) / 60), max(page) / 30))
    big, small = ImageFont.load_default(size), ImageFont.load_default(max(12, size * 6 // 10))
    gap = size // 4
    wide = math.ceil(draw.textlength(number, big) + draw.textlength(score, small) + 3 * gap)
    x, y = _free((left, top - size - gap), (wide, size + gap), page, taken)
    draw.rectangle((x, y, x + wide, y + size + gap), fill=face.colour)
    base = y + size
    draw.text((x + gap, base), number, font=big, fill=INK, anchor="ls")
    draw.text((x + 2 * gap + draw.textlength(number, big), base), score, font=small, fill=INK, anchor="ls")
    return x, y, x + wide, y + size + gap


def _free(
    wanted: tuple[int, int], size: tuple[int, int], page: tuple[int, int], taken: Sequence[Place]
) -> tuple[int, int]:
    """Return the upper left corner of a plate within the page that meets no other, near to `wanted`.

    It lies there, or beside, above or below plates near to that. Where these leave no room, it is as near as
    the page allows.
    """
    furthest = [max(0, whole - own - 1) for whole, own in zip(page, size, strict=True)]
    around = sorted(taken, key=lambda one: math.dist(one[:2], wanted))[:NEARBY]
    corners = []
    for axis in (0, 1):
        beside = [edge for one in around for edge in (one[axis] - size[axis] - 1, one[axis + 2] + 1)]
        corners.append({min(max(0, each), furthest[axis]) for each in (wanted[axis], *beside)})
    near = sorted(product(corners[0], corners[1]), key=lambda corner: math.dist(corner, wanted))
    fits = (corner for corner in near if not any(_meets(corner, size, one) for one in taken))
    return next(fits, near[0])


def _meets(corner: tuple[int, int], size: tuple[int, int], other: Place) -> bool:
    """Whether a plate and another one have a pixel in common, edges included."""
    return all(
        corner[axis] <= other[axis + 2] and other[axis] <= corner[axis] + size[axis] for axis in (0, 1)
    )
