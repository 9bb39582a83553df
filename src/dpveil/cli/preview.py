"""The preview of found faces: the photo with numbered boxes and their scores."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import UInt8
from PIL import Image, ImageDraw, ImageFont

from dpveil.core.photo import Photo
from dpveil.errors import InvalidParameter
from dpveil.regions import FaceFound

LEAST: Final = 800
"""The long side of the smallest preview: smaller photos are enlarged, so that letters fit."""

EDGE: Final = (255, 214, 10)
INK: Final = (20, 20, 20)


def check_name(path: Path) -> None:
    """Raise `InvalidParameter` unless a preview can have this name."""
    if path.suffix.lower() != ".png":
        raise InvalidParameter("--preview", str(path), "is not the name of a PNG file", hint="end it in .png")


def draw_preview(photo: Photo, faces: Sequence[FaceFound]) -> UInt8[np.ndarray, "h w 3"]:
    """Return `photo` with the box, the number and the score of each face."""
    times = max(1, -(-LEAST // max(photo.width, photo.height)))
    page = Image.fromarray(np.broadcast_to(photo.image, (photo.height, photo.width, 3)))
    page = page.resize((photo.width * times, photo.height * times), Image.Resampling.BICUBIC)
    draw = ImageDraw.Draw(page)
    line = max(2, max(page.size) // 500)
    # Labels last and those of small faces on top, so that no neighbour hides a number.
    places = [_outline(draw, face, times, line) for face in faces]
    numbered = zip(range(1, len(faces) + 1), faces, places, strict=True)
    for number, face, place in sorted(numbered, key=lambda entry: -entry[1].box.w):
        _label(draw, f"{number}", f"{face.score:.2f}", place, page.size)
    return np.asarray(page)


def _outline(draw: ImageDraw.ImageDraw, face: FaceFound, times: int, line: int) -> tuple[int, int, int, int]:
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
    """Write the number large and the score small on a plate at the upper left of a box, within the page."""
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
