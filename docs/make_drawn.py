"""The pictures of drawn heads: a sheet of them, and releases of one public photograph."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image
from skimage import data

import dpveil
from dpveil.faces.drawn.gallery import DrawnGallery
from dpveil.noise.bits import SeededBits

VIEW = (slice(10, 230), slice(110, 330))
ROWS, COLUMNS, SIDE = 5, 12, 128
SEED, DRAWS = 77, 4

Tile = tuple[np.ndarray, str]


def contact_sheet() -> bytes:
    """Return 60 drawn heads as portraits, in the order in which they are drawn, as PNG."""
    bits, gallery = SeededBits(SEED), DrawnGallery()
    heads = np.array([gallery.head(bits, {}).alone(SIDE, SIDE) for _ in range(ROWS * COLUMNS)])
    grid = heads.reshape(ROWS, COLUMNS, SIDE, SIDE, 3).transpose(0, 2, 1, 3, 4)
    buffer = io.BytesIO()
    Image.fromarray(grid.reshape(ROWS * SIDE, COLUMNS * SIDE, 3)).save(buffer, "PNG")
    return buffer.getvalue()


def rows() -> list[list[Tile]]:
    """Return the photograph and four releases with drawn heads."""
    photo = dpveil.Photo(data.astronaut())
    releases = [
        dpveil.obfuscate(
            photo, "attributes", attributes="none", gallery="drawn", bits=SeededBits(SEED + draw)
        )
        for draw in range(DRAWS)
    ]
    tiles = [(release.image[VIEW], "drawn\nepsilon 0") for release in releases]
    return [[(photo.image[VIEW], "original\nnot protected"), *tiles]]
