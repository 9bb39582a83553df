"""The pictures of rendered heads: a sheet of them, and releases of one public photograph."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image
from skimage import data

import dpveil
from dpveil.faces.head_gallery import default_heads
from dpveil.faces.released import HeadFace, portrait

VIEW = (slice(10, 230), slice(110, 330))
ROWS, COLUMNS, SIDE = 5, 12, 128
SEED, DRAWS = 77, 4

Tile = tuple[np.ndarray, str]


def contact_sheet() -> bytes:
    """Return the first heads of the default gallery as portraits, as PNG."""
    gallery = default_heads()
    every = [
        portrait(HeadFace(gallery, np.array([n % len(gallery)]), n), SIDE, SIDE)
        for n in range(ROWS * COLUMNS)
    ]
    grid = np.array(every).reshape(ROWS, COLUMNS, SIDE, SIDE, 3).transpose(0, 2, 1, 3, 4)
    buffer = io.BytesIO()
    Image.fromarray(grid.reshape(ROWS * SIDE, COLUMNS * SIDE, 3)).save(buffer, "PNG")
    return buffer.getvalue()


def rows() -> list[list[Tile]]:
    """Return the photograph, and four releases with inner faces and with whole heads."""
    photo, found = dpveil.Photo(data.astronaut()), []
    for protect in ("face", "head"):
        releases = [
            dpveil.obfuscate(photo, "attributes", protect=protect, bits=dpveil.SeededBits(SEED + draw))
            for draw in range(DRAWS)
        ]
        tiles = [(release.image[VIEW], f"protect {protect}\nepsilon 0") for release in releases]
        found.append([(photo.image[VIEW], "original\nnot protected"), *tiles])
    return found
