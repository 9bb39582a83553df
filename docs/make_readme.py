"""The picture at the top of the README: a public photograph, and what the first command makes of it.

    python docs/make_readme.py

The only picture that the repository holds, as README.md is read without the site; run this when faces change.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image
from skimage import data

import dpveil
from dpveil.noise.bits import SeededBits

TARGET = Path(__file__).parent / "before-after.png"
VIEW = (slice(0, 264), slice(92, 356))
SIDE, GAP, SEED = 240, 12, 24


def before_and_after() -> Image.Image:
    """Return the photograph and its release by the default method, side by side."""
    photo = dpveil.Photo(data.astronaut())
    release = dpveil.plan(photo).release(bits=SeededBits(SEED))
    page = Image.new("RGB", (2 * SIDE + GAP, SIDE), "white")
    for place, image in enumerate((photo.image, release.image)):
        tile = Image.fromarray(np.ascontiguousarray(image[VIEW])).resize(
            (SIDE, SIDE), Image.Resampling.LANCZOS
        )
        page.paste(tile, (place * (SIDE + GAP), 0))
    return page


if __name__ == "__main__":
    before_and_after().save(TARGET, optimize=True)
