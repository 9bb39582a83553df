"""The picture at the top of the README: a public photograph, and releases with faces and with pixels.

    python docs/make_readme.py

The only picture that the repository holds, as README.md is read without the site.
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
SIDE, GAP, SEED = 240, 12, 1
RELEASES: tuple[tuple[str, dict[str, object]], ...] = (
    ("attributes", {"attributes": "gender=female"}),
    ("attributes", {"attributes": "gender=female", "protect": "head"}),
    ("dp-pix", {"epsilon": 2, "block": 16, "neighbourhood": 16}),
)


def before_and_after() -> Image.Image:
    photo = dpveil.Photo(data.astronaut())
    images = [photo.image]
    for method, parameters in RELEASES:
        plan = dpveil.plan(photo, method, regions="faces", **parameters)
        images.append(plan.release(bits=SeededBits(SEED)).image)
    page = Image.new("RGB", (len(images) * (SIDE + GAP) - GAP, SIDE), "white")
    for place, image in enumerate(images):
        tile = Image.fromarray(np.ascontiguousarray(image[VIEW])).resize(
            (SIDE, SIDE), Image.Resampling.LANCZOS
        )
        page.paste(tile, (place * (SIDE + GAP), 0))
    return page


if __name__ == "__main__":
    before_and_after().save(TARGET, optimize=True)
