"""Pictures of the page on face geometry, from the public photograph of an astronaut."""

from __future__ import annotations

import numpy as np
from PIL import Image, ImageDraw
from skimage import data

import dpveil
from dpveil.assets.reference import Reference
from dpveil.core.photo import Grid, Photo
from dpveil.core.region import Box, Region
from dpveil.faces import Attributes
from dpveil.faces.face_gallery import GALLERY
from dpveil.faces.geometry import Frame, Placed, place, pose_of, recombine
from dpveil.faces.geometry.cell import YAW
from dpveil.faces.geometry.protection import TURNED
from dpveil.faces.geometry.turn import turn_of
from dpveil.mechanisms.pixel import DPPix
from dpveil.noise.bits import SeededBits
from dpveil.regions.tiling import grow

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
    """Return recombinations with a flat crop and with one that dp-pix released."""
    photo = Photo(data.astronaut())
    faces = [place(photo, FACE, protect=protect) for protect in ("box", "head")]
    flat = np.full((128, 128, 3), (205, 160, 135), np.uint8)
    noisy = DPPix(epsilon=20, block=8, neighbourhood=16).release(faces[0].crop(photo), bits=SeededBits(1))
    return [
        (put(photo, faces[0], flat), 'a flat crop\nprotect="box"'),
        (put(photo, faces[1], flat), 'a flat crop\nprotect="head"'),
        (put(photo, faces[0], noisy), 'dp-pix, epsilon 20\nprotect="box"'),
        (put(photo, faces[1], noisy), 'dp-pix, epsilon 20\nprotect="head"'),
    ]


def turned() -> list[Tile]:
    """Return a face of nobody at the five yaws of the grid."""
    (face,) = Reference.of("default", GALLERY).held.decoded([7])
    wall = np.full_like(face, 225)
    tiles = []
    for cell in range(-TURNED, TURNED + 1):
        turn = turn_of(face, Frame(), YAW * cell)
        tiles.append((face if turn is None else turn.before(face, Frame(), wall), f"{YAW * cell}°"))
    return tiles


def shapes() -> list[list[Tile]]:
    """Return what each kind of protection replaces, in a JPEG too, and releases that keep nothing."""
    photo, kinds = Photo(data.astronaut()), ("face", "head", "box")
    regions = [place(photo, FACE, protect=kind).region for kind in kinds]
    jpeg = Photo(photo.image, Grid(16, 16))
    method = {kind: Attributes(attributes="none", protect=kind) for kind in kinds}
    made = {kind: dpveil.obfuscate(photo, method[kind], bits=SeededBits(5)) for kind in kinds}
    return [
        [(shaded(photo.image, one), f"protect {kind}") for one, kind in zip(regions, kinds, strict=True)],
        [(shaded(photo.image, grow(one, jpeg)), "in a JPEG") for one in regions],
        [(made[kind].image[VIEW], "released") for kind in kinds],
    ]


def put(photo: Photo, face: Placed, crop: np.ndarray) -> np.ndarray:
    """Return the view with a released crop in place of the face."""
    return recombine(photo.image, [face], [crop])[VIEW]


def shaded(image: np.ndarray, region: Region) -> np.ndarray:
    """Return the view with a region in green."""
    mask = np.zeros(image.shape[:2], bool)
    mask[region.box.slices] = True if region.mask is None else region.mask
    out = image.copy()
    out[mask] = (0.6 * image[mask] + 0.4 * np.array([0, 160, 120])).astype(np.uint8)
    return out[VIEW]
