"""Pictures of the first pages: one public photograph, released in ways that are worth publishing."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image, ImageDraw
from skimage import data

import dpveil
from dpveil.mechanisms.pixel import DPPix
from dpveil.noise.bits import SeededBits

VIEW = (slice(0, 264), slice(92, 356))
CHOICES = (
    ("attributes", {"attributes": "gender=1,age=1"}, "faces", "new face"),
    ("gallery", {"epsilon": 6}, "faces", "similar face"),
    ("dp-pix", {"epsilon": 2, "block": 16, "neighbourhood": 16}, "176,60,88,120", "m = 16 pixels"),
)

Tile = tuple[np.ndarray, str]


def row() -> list[Tile]:
    """Return the photograph and its releases, each with its guarantee and strength."""
    photo = dpveil.Photo(data.astronaut())
    tiles = [(photo.image[VIEW], "original\nnot protected")]
    for seed, (method, parameters, regions, about) in enumerate(CHOICES):
        plan = dpveil.plan(photo, method, regions=regions, **parameters)
        words = f"{method}, {about}\nepsilon {plan.total.epsilon}: {plan.strength}"
        tiles.append((plan.release(bits=SeededBits(62 + seed)).image[VIEW], words))
    return tiles


def faces() -> list[Tile]:
    """Return two faces with the regions that two methods will replace, and a release by the second one."""
    one = data.astronaut()[:264, 92:356]
    photo = dpveil.Photo(np.concatenate([one, one[:, ::-1]], axis=1))
    pixels = dpveil.plan(photo, "dp-pix", epsilon=2, block=16, neighbourhood=16, regions="faces")
    other = dpveil.plan(photo, "attributes", attributes="gender=1,age=1", regions="faces")
    shown = other.release(bits=SeededBits(40)).image
    return [
        (_outlined(pixels), "found faces, replaced by dp-pix"),
        (_outlined(other), "replaced by attributes"),
        (shown, f"released: {other.total}\n{other.strength}; each face {other.guarantees[0]}"),
    ]


def smoothed() -> list[Tile]:
    """Return the photograph, a release with noise, and the same release after two post-processing steps."""
    photo, box = dpveil.Photo(data.astronaut()), "176,60,88,120"
    tiles = [(photo.image[VIEW], "original\nnot protected")]
    settings = {"epsilon": 2, "block": 8, "neighbourhood": 4}
    for words, steps in (("as drawn", ()), ("after both steps", ("non-local-means:30", "gaussian:3"))):
        plan = dpveil.plan(photo, "dp-pix", regions=box, post_processing=steps, **settings)
        shown = plan.release(bits=SeededBits(50)).image[VIEW]
        tiles.append((shown, f"{words}\nepsilon 2, m = 4: {plan.strength}"))
    return tiles


def _outlined(plan: dpveil.Plan) -> np.ndarray:
    picture = Image.fromarray(plan.photo.image)
    pen = ImageDraw.Draw(picture)
    for number, region in enumerate(plan.regions, start=1):
        box = region.box
        pen.rectangle((box.x, box.y, box.x + box.w - 1, box.y + box.h - 1), outline=(255, 214, 10), width=4)
        pen.text((box.x + 8, box.y + 4), str(number), fill=(255, 214, 10), font_size=28)
    return np.asarray(picture)


def favicon() -> bytes:
    levels = DPPix(epsilon=1, block=8, neighbourhood=16).release(
        np.full((32, 32, 1), 128, np.uint8), bits=SeededBits(3)
    )
    buffer = io.BytesIO()
    Image.fromarray(levels[:, :, 0]).save(buffer, "PNG")
    return buffer.getvalue()
