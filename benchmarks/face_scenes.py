"""The composites of `face_recall.py`: photos of LFW, changed in one way each and pasted into photographs."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
from PIL import Image, ImageDraw, ImageFilter
from skimage import data

from dpveil import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.faces.geometry.landmarks import predictor

PEOPLE = Path(__file__).parent.parent.parent / "shared" / "data" / "lfw10_250"
BACKGROUNDS = ("coffee", "chelsea", "rocket")
WIDTH, HEIGHT = 4000, 3000
SIZES = (16, 24, 32, 48, 64, 96)
TURNS = (30, 60, 90, 180)
EACH, UPRIGHT = 2, 10
"""Faces of every size in a scene: of every change, and unchanged."""
CROP, FACE = 160, 115
"""Side of the crop from the middle of a photo of LFW, and the height of the face in it."""
ASIDE = 0.45
"""Distance of the nose from the middle of the eyes' centres, along the line through them and in units of
their distance, from which a head counts as turned: by eye about 30 to 60 degrees."""
SEARCHED = 500  # photos of LFW among which turned heads are searched for


@dataclass(frozen=True)
class Pasted:
    """A face: its centre and height in pixels, how it was changed ("" if not at all), and its grey level."""

    x: float
    y: float
    height: int
    change: str
    level: float


def turned(degrees: int) -> Callable[[Image.Image], Image.Image]:
    """Return a rotation about the middle of a photo."""
    return lambda photo: photo.rotate(degrees, Image.Resampling.BICUBIC)


def masked(photo: Image.Image) -> Image.Image:
    """Return a photo with a surgical mask drawn from the bridge of the nose to below the chin."""
    photo = photo.copy()
    draw = ImageDraw.Draw(photo)
    draw.line([(84, 128), (125, 133), (166, 128)], fill=(214, 222, 228), width=2)
    draw.polygon([(92, 134), (125, 126), (158, 134), (154, 168), (125, 182), (96, 168)], fill=(150, 190, 214))
    for y in (144, 152, 160):
        draw.line([(94, y), (156, y)], fill=(132, 172, 198), width=1)
    return photo


def covered(photo: Image.Image) -> Image.Image:
    """Return a photo with a hand before mouth and chin, drawn in the skin's own colour."""
    photo = photo.copy()
    skin = np.median(np.asarray(photo)[100:120, 105:145].reshape(-1, 3), axis=0)
    dark, light = (tuple(int(part) for part in skin * share) for share in (0.72, 0.97))
    draw = ImageDraw.Draw(photo)
    for finger in range(4):
        left = 90 + 16 * finger
        draw.rounded_rectangle((left, 138 + 3 * abs(finger - 1), left + 16, 215), 8, fill=light, outline=dark)
    draw.rounded_rectangle((86, 178, 160, 250), 12, fill=light, outline=dark)
    return photo


CHANGES: dict[str, Callable[[Image.Image], Image.Image]] = {
    "": lambda photo: photo,
    **{f"{degrees}°": turned(degrees) for degrees in TURNS},
    "turned head": lambda photo: photo,  # chosen by `turned_heads`
    "mask": masked,
    "hand": covered,
}


@cache
def turned_heads() -> list[Path]:
    """Return photos of LFW with heads that are turned to the side; full profiles are not among them."""
    return [path for path in sorted(PEOPLE.glob("*/*.jpg"))[:SEARCHED] if _aside(path) > ASIDE]


def _aside(path: Path) -> float:
    """Return how far the nose is from the middle of the eyes, in units of their distance."""
    image = np.asarray(Image.open(path).convert("RGB"))
    try:
        found = predictor().near(image, Box(80, 68, 90, FACE))
    except RegionError:
        return 0.0
    if found.score < 0 or found.spread > 0.1:
        return 0.0
    line = found.eyes[1] - found.eyes[0]
    return float(abs((found.points[4] - found.eyes.mean(axis=0)) @ line / (line @ line))) * 2


def scene(number: int) -> tuple[Photo, list[Pasted]]:
    """Return a composite and the faces pasted into it, which are a function of the number."""
    draw = np.random.default_rng(number)
    canvas = Image.fromarray(getattr(data, BACKGROUNDS[number % 3])()).resize((WIDTH, HEIGHT), 3)
    everybody = sorted(PEOPLE.glob("*/*.jpg"))
    pasted: list[Pasted] = []
    wanted = [
        (size, change) for size in SIZES for change in CHANGES for _ in range(EACH if change else UPRIGHT)
    ]
    for height, change in sorted(wanted, reverse=True):
        side = round(height * CROP / FACE)
        x, y = _free(draw, side, pasted)
        photos = turned_heads() if change == "turned head" else everybody
        photo = Image.open(photos[draw.integers(len(photos))]).convert("RGB")
        face = CHANGES[change](photo).crop((45, 45, 205, 205))
        soft = Image.new("L", (side, side))
        rim = max(1, side // 12)
        soft.paste(255, (rim, rim, side - rim, side - rim))
        canvas.paste(face.resize((side, side), 3), (x, y), soft.filter(ImageFilter.GaussianBlur(rim / 2)))
        level = float(np.median(np.asarray(face.convert("L"))[50:110, 50:110]))
        pasted.append(Pasted(x + side / 2, y + side / 2, height, change, level))
    return Photo(np.asarray(canvas)), pasted


def _free(draw: np.random.Generator, side: int, pasted: list[Pasted]) -> tuple[int, int]:
    while True:
        x, y = int(draw.integers(0, WIDTH - side)), int(draw.integers(0, HEIGHT - side))
        far = [max(abs(x + side / 2 - p.x), abs(y + side / 2 - p.y)) - p.height for p in pasted]
        if not far or min(far) > side:
            return x, y
