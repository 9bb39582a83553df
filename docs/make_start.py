"""The picture of the first page: one public photograph, released in ways that are worth publishing."""

from __future__ import annotations

import numpy as np
from skimage import data

import dpveil
from dpveil.noise.bits import SeededBits

VIEW = (slice(0, 264), slice(92, 356))
CHOICES = (
    ("attributes", {"attributes": "gender=1,age=1"}, "faces", "a face of nobody"),
    ("gallery", {"epsilon": 6}, "faces", "a face like it"),
    ("dp-pix", {"epsilon": 2, "block": 16, "neighbourhood": 16}, "176,60,88,120", "16 pixels"),
)

Tile = tuple[np.ndarray, str]


def row() -> list[Tile]:
    """Return the photograph and its releases, each with its promise and what that is worth."""
    photo = dpveil.Photo(data.astronaut())
    tiles = [(photo.image[VIEW], "original\nnot protected")]
    for seed, (method, parameters, regions, about) in enumerate(CHOICES):
        plan = dpveil.plan(photo, method, regions=regions, **parameters)
        words = f"{method}, {about}\nepsilon {plan.total.epsilon}: {plan.strength}"
        tiles.append((plan.release(bits=SeededBits(30 + seed)).image[VIEW], words))
    return tiles
