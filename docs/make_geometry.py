"""Pictures of the page on face geometry, from the public photograph of an astronaut."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw
from skimage import data

import dpveil
from dpveil.core.photo import BlockGrid, Photo
from dpveil.core.region import Box, Region
from dpveil.faces import Attributes
from dpveil.faces.geometry.landmarks import pose_of
from dpveil.faces.geometry.place import place
from dpveil.noise.bits import SeededBits
from dpveil.regions.growth import grow

FACE = Box(177, 65, 88, 108)
VIEW = (slice(0, 300), slice(80, 380))

Tile = tuple[np.ndarray, str]


def places() -> list[Tile]:
    """Return the geometry of a face: landmarks, the kinds of protection, and the canonical crop."""
    photo = Photo(data.astronaut())
    box, head, face = (place(photo, FACE, protect=protect) for protect in ("box", "head", "face"))
    points = [] if box.landmarks is None else box.landmarks.points
    turned = "" if box.landmarks is None else pose_of(box.landmarks).in_words
    dots = Image.fromarray(photo.image.copy())
    pen = ImageDraw.Draw(dots)
    for x, y in points:
        pen.ellipse((x - 2, y - 2, x + 2, y + 2), fill=(255, 0, 0))
    crop = Image.fromarray(box.crop(photo)).resize((300, 300), Image.Resampling.BICUBIC)
    return [
        (
            np.asarray(dots)[VIEW],
            f"five landmarks\n{turned}",
        ),
        (shaded(photo.image, box.region), 'protect="box"\nshaded: replaced'),
        (shaded(photo.image, head.region), 'protect="head"\nshaded: replaced'),
        (shaded(photo.image, face.region), 'protect="face"\nshaded: replaced'),
        (np.asarray(crop), "canonical crop\n128 by 128, margin 0"),
    ]


def recombined() -> list[Tile]:
    """Return two heads of the gallery, as an inner face and as a whole head."""
    photo, tiles = Photo(data.astronaut()), []
    for protect in ("face", "head"):
        for seed in (3, 4):
            release = dpveil.obfuscate(photo, Attributes(protect=protect), bits=SeededBits(seed))
            tiles.append((release.image[VIEW], f'protect="{protect}"'))
    return tiles


def shapes() -> list[list[Tile]]:
    """Return what each kind of protection replaces, in a JPEG too, and releases that keep nothing."""
    photo, kinds = Photo(data.astronaut()), ("face", "head", "box")
    regions = [place(photo, FACE, protect=kind).region for kind in kinds]
    jpeg = Photo(photo.image, BlockGrid(16, 16))
    method = {kind: Attributes(attributes="none", protect=kind) for kind in kinds}
    made = {kind: dpveil.obfuscate(photo, method[kind], bits=SeededBits(5)) for kind in kinds}
    return [
        [(shaded(photo.image, one), f"protect {kind}") for one, kind in zip(regions, kinds, strict=True)],
        [(shaded(photo.image, grow(one, jpeg)), "in a JPEG") for one in regions],
        [(made[kind].image[VIEW], "released") for kind in kinds],
    ]


def shaded(image: np.ndarray, region: Region) -> np.ndarray:
    mask = np.zeros(image.shape[:2], bool)
    mask[region.box.slices] = True if region.mask is None else region.mask
    out = image.copy()
    out[mask] = (0.6 * image[mask] + 0.4 * np.array([0, 160, 120])).astype(np.uint8)
    return out[VIEW]
