"""Rendered scenes with text whose every pixel is known: signs, documents, plates, screens, and script.

Letters are Pillow's own font, or those of OpenCV for plates and script; the backgrounds of signs, plates and
script are photographs of scikit-image. Nothing is copied.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Final

import cv2
import numpy as np
from PIL import Image, ImageDraw, ImageFont

SIZE: Final = (640, 896)  # rows and columns of a scene
KINDS: Final = ("sign", "document", "plate", "screen", "script")
HEIGHTS: Final = (6, 8, 10, 12, 16, 24, 48, 96)  # heights of capital letters in pixels
ANGLES: Final = (0, 10, 30, 45, 90, 180)
MOST: Final = 12  # most lines of a scene; they stand so far apart that the box of one covers no other
TURNED: Final = 24  # height of the letters that are turned
CAPITAL: Final = 0.72  # height of a capital relative to the size of Pillow's font
WORDS: Final = (
    "Main Street", "Dr. A. Meyer", "Open daily 9-17", "Room 204", "Bakery", "Invoice 20817", "No parking",
    "Jane Miller", "Exit", "Platform 3", "born 12.03.1984", "Tel. 555 0142", "Harbour View", "Ward 7b",
)  # fmt: skip
PLATES: Final = ("AB 12 CDE", "KX 90 RTM", "LP 47 HSV", "MN 05 WJD")
PLATE: Final = (52, 240)  # rows and columns of a plate


def plate_face(text: str) -> np.ndarray:
    """Return a plate with a text, seen from ahead, 52 × 240 × 3 levels as floats."""
    rows, columns = PLATE
    plate = np.full((rows, columns, 3), 236, np.uint8)
    cv2.rectangle(plate, (0, 0), (columns - 1, rows - 1), (40, 40, 40), 3)
    cv2.rectangle(plate, (3, 3), (22, rows - 4), (28, 60, 150), -1)
    step = (columns - 34) / len(text)
    for place, letter in enumerate(text):
        (wide, high), _ = cv2.getTextSize(letter, cv2.FONT_HERSHEY_SIMPLEX, 1.15, 3)
        at = round(28 + step * (place + 0.5) - wide / 2), (rows + high) // 2
        cv2.putText(plate, letter, at, cv2.FONT_HERSHEY_SIMPLEX, 1.15, (24, 24, 28), 3, cv2.LINE_AA)
    return np.asarray(plate, np.float32)


@dataclass(frozen=True, eq=False)
class Line:
    """A line of text: its kind, height of letters, angle in degrees, and the indices of its ink."""

    kind: str
    height: int
    angle: int
    ink: np.ndarray


def scene(kind: str, height: int, angle: int, bits: np.random.Generator) -> tuple[np.ndarray, list[Line]]:
    """Return a scene, uint8 sRGB, and its lines of text."""
    image = _ground(kind, bits)
    lines = []
    for picture, ink, at in _placed(kind, height, angle, bits):
        down, across = at
        part = image[down : down + len(ink), across : across + ink.shape[1]]
        shown = picture[..., 3:]
        part[:] = np.where(shown > 0, picture[..., :3] * (shown / 255.0) + part * (1 - shown / 255.0), part)
        whole = np.zeros(SIZE, np.bool_)
        whole[down : down + len(ink), across : across + ink.shape[1]] = ink
        lines.append(Line(kind, height, angle, np.flatnonzero(whole)))
    noisy = cv2.GaussianBlur(image, (0, 0), 0.5) + bits.normal(0, 2.0, image.shape)
    return np.clip(noisy, 0, 255).astype(np.uint8), lines


def empty(bits: np.random.Generator) -> np.ndarray:
    """Return a scene without text."""
    return np.clip(_ground("sign", bits) + bits.normal(0, 2.0, (*SIZE, 3)), 0, 255).astype(np.uint8)


@cache
def _photographs() -> tuple[np.ndarray, ...]:
    from skimage import data

    return tuple(np.asarray(picture) for picture in (data.coffee(), data.astronaut(), data.chelsea()))


def _ground(kind: str, bits: np.random.Generator) -> np.ndarray:
    if kind == "document":
        return np.full((*SIZE, 3), 247.0)
    if kind == "screen":
        return np.full((*SIZE, 3), 34.0) + np.linspace(0, 14, SIZE[0])[:, None, None]
    picture = _photographs()[int(bits.integers(3))]
    if kind != "document" and picture.shape == (512, 512, 3):
        picture = picture[200:]  # without the lettering of the suit above
    return cv2.resize(picture, SIZE[::-1], interpolation=cv2.INTER_CUBIC).astype(np.float64)


def _placed(kind: str, height: int, angle: int, bits: np.random.Generator):
    """Yield pictures with transparency, their ink, and where they go, on a grid without overlaps."""
    words = PLATES if kind == "plate" else WORDS
    order = bits.permutation(len(words))
    taken, down, tall = 40, 30, 0
    for number in range(MOST):
        picture, ink = _turned(*_drawn(kind, words[order[number % len(words)]], height, bits), angle)
        rows, columns = ink.shape
        if columns + 16 > SIZE[1]:
            continue
        if taken + columns + 8 > SIZE[1]:
            taken, down, tall = 40, down + tall + max(40, 2 * height), 0
        if down + rows + 8 > SIZE[0]:
            return
        yield picture, ink, (down, taken)
        taken, tall = taken + columns + max(60, 3 * height), max(tall, rows)


def _drawn(kind: str, text: str, height: int, bits: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a picture of a line with what it stands on, and its ink."""
    if kind == "plate":
        return _plate(text, height)
    if kind == "script":
        return _script(text, height, bits)
    font = ImageFont.load_default(max(5.0, height / CAPITAL))
    left, top, right, bottom = (round(x) for x in font.getbbox(text))
    edge = {"document": 2, "screen": 3}.get(kind, max(4, height // 2))
    shape = (bottom - top + 2 * edge, right - left + 2 * edge)
    mask = Image.new("L", shape[::-1], 0)
    ImageDraw.Draw(mask).text((edge - left, edge - top), text, fill=255, font=font)
    ink = np.asarray(mask)
    ground, letters = _colours(kind, bits)
    share = ink[..., None] / 255.0
    picture = np.concatenate([ground * (1 - share) + letters * share, np.full((*shape, 1), 255.0)], axis=2)
    return picture, ink > 127


def _colours(kind: str, bits: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    if kind == "document":
        return np.full(3, 247.0), np.full(3, 30.0)
    if kind == "screen":
        return np.array([40.0, 44.0, 52.0]), np.array([200.0, 206.0, 214.0])
    signs = (
        ((20, 80, 160), (245, 245, 245)),
        ((240, 200, 40), (20, 20, 20)),
        ((250, 250, 250), (170, 20, 30)),
    )
    ground, letters = signs[int(bits.integers(len(signs)))]
    return np.array(ground, float), np.array(letters, float)


def _plate(text: str, height: int) -> tuple[np.ndarray, np.ndarray]:
    plate = plate_face(text)
    ratio = height / 26  # letters of a plate of 52 rows
    size = (max(1, round(plate.shape[1] * ratio)), max(1, round(plate.shape[0] * ratio)))
    ink = (plate.max(axis=2) < 80).astype(np.float32)
    ink[:6], ink[-6:], ink[:, :26], ink[:, -6:] = 0, 0, 0, 0  # the frame
    small = cv2.resize(plate, size, interpolation=cv2.INTER_AREA)
    opaque = np.full((*small.shape[:2], 1), 255.0)
    return np.concatenate([small, opaque], axis=2), cv2.resize(ink, size, interpolation=cv2.INTER_AREA) > 0.5


def _script(text: str, height: int, bits: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return a line in OpenCV's script, slanted, its letters up and down, instead of handwriting."""
    scale, edge = height / 21, max(4, height)
    (wide, high), base = cv2.getTextSize(text, cv2.FONT_HERSHEY_SCRIPT_COMPLEX, scale, max(1, height // 16))
    mask = np.zeros((high + base + 3 * edge, wide + 3 * edge), np.uint8)
    across = edge
    for letter in text:
        at = across, edge + high + int(bits.normal(0, height / 12))
        cv2.putText(
            mask, letter, at, cv2.FONT_HERSHEY_SCRIPT_COMPLEX, scale, 255, max(1, height // 16), cv2.LINE_AA
        )
        across += cv2.getTextSize(letter, cv2.FONT_HERSHEY_SCRIPT_COMPLEX, scale, 1)[0][0]
    slant = np.array([[1, -0.25, 0.25 * len(mask) / 2], [0, 1, 0]])
    mask = cv2.warpAffine(mask, slant, mask.shape[::-1])
    share = mask[..., None] / 255.0
    paper, pen = np.array([238.0, 234.0, 220.0]), np.array([40.0, 50.0, 110.0])
    picture = np.concatenate([paper * (1 - share) + pen * share, np.full((*mask.shape, 1), 255.0)], axis=2)
    return picture, mask > 127


def _turned(picture: np.ndarray, ink: np.ndarray, angle: int) -> tuple[np.ndarray, np.ndarray]:
    if angle == 0:
        return picture, ink
    rows, columns = ink.shape
    view = cv2.getRotationMatrix2D((columns / 2, rows / 2), angle, 1.0)
    cos, sin = abs(view[0, 0]), abs(view[0, 1])
    size = int(np.ceil(columns * cos + rows * sin)), int(np.ceil(columns * sin + rows * cos))
    view[:, 2] += np.array(size) / 2 - np.array([columns, rows]) / 2
    turned = cv2.warpAffine(picture, view, size, flags=cv2.INTER_LINEAR)
    return turned, cv2.warpAffine(ink.astype(np.float32), view, size) > 0.5
