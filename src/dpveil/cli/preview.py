"""The preview of detected faces: the photo with numbered boxes and scores."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
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

EDGE: Final = (255, 214, 10)
INK: Final = (20, 20, 20)


@dataclass(frozen=True)
class Shown:
    """One region of the preview: number, box, score if any, and the mask of replaced pixels in the box.

    A place that may be a face, and is not replaced, has no number.
    """

    number: int | None
    box: Box
    score: float | None
    mask: Bool[np.ndarray, "h w"] | None = None


def check_name(path: Path) -> None:
    """Raise `InvalidParameter` unless `path` has the suffix .png."""
    if path.suffix.lower() != ".png":
        raise InvalidParameter("--preview", str(path), "is not the name of a PNG file", hint="end it in .png")


def draw_preview(photo: Photo, faces: Sequence[Shown]) -> UInt8[np.ndarray, "h w 3"]:
    """Return `photo` with the box, the number and the score of each face, and masks tinted."""
    times = max(1, -(-LEAST // max(photo.width, photo.height)))
    page = Image.fromarray(_masked(np.broadcast_to(photo.image, (photo.height, photo.width, 3)), faces))
    page = page.resize((photo.width * times, photo.height * times), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(page)
    line = max(2, max(page.size) // 500)
    # Labels are drawn last, those of small faces on top, so that numbers are not hidden.
    places = [_outline(draw, face, times, line) for face in faces]
    for face, place in sorted(zip(faces, places, strict=True), key=lambda entry: -entry[0].box.w):
        number = "?" if face.number is None else f"{face.number}"
        _label(draw, number, "" if face.score is None else f"{face.score:.2f}", place, page.size)
    return np.asarray(page)


def _masked(image: UInt8[np.ndarray, "h w 3"], faces: Sequence[Shown]) -> UInt8[np.ndarray, "h w 3"]:
    """Return the image with the pixels of each face's mask tinted."""
    tinted = image.copy()
    for face in faces:
        if face.mask is not None:
            part = tinted[face.box.slices]
            part[face.mask] = part[face.mask] // 2 + np.array(EDGE, np.uint8) // 2
    return tinted


def _outline(draw: ImageDraw.ImageDraw, face: Shown, times: int, line: int) -> tuple[int, int, int, int]:
    box = face.box
    corners = box.x * times, box.y * times, (box.x + box.w) * times - 1, (box.y + box.h) * times - 1
    draw.rectangle(corners, outline=INK, width=line + 2)
    draw.rectangle(corners, outline=EDGE, width=line)
    return corners


def _label(
    draw: ImageDraw.ImageDraw,
    number: str,
    score: str,
    place: tuple[int, int, int, int],
    page: tuple[int, int],
) -> None:
    """Draw the number and, smaller, the score on a plate at the upper left of a box, within the page."""
    left, top, right, _ = place
    size = int(min(max(18, (right - left) / 4, max(page) / 60), max(page) / 30))
    big, small = ImageFont.load_default(size), ImageFont.load_default(max(12, size * 6 // 10))
    gap = size // 4
    wide = draw.textlength(number, big) + draw.textlength(score, small) + 3 * gap
    x, y = min(left, page[0] - wide), max(0, top - size - gap)
    draw.rectangle((x, y, x + wide, y + size + gap), fill=EDGE)
    base = y + size
    draw.text((x + gap, base), number, font=big, fill=INK, anchor="ls")
    draw.text((x + 2 * gap + draw.textlength(number, big), base), score, font=small, fill=INK, anchor="ls")
