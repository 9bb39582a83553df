"""The picture of the page on attributes: one public photograph, and faces of nobody at three choices."""

from __future__ import annotations

import numpy as np
from skimage import data

import dpveil
from dpveil.noise.bits import SeededBits

VIEW = (slice(10, 230), slice(110, 330))
CHOICES = (
    ("none", "nothing kept\nepsilon 0"),
    ("gender=4,age=4", "gender 4, age 4\nepsilon 8"),
    ("gender=2,age=1.5,perceived-race=1.5,pose=1.5,smile=1.5", "five attributes\nepsilon 8"),
)
DRAWS = 4

Tile = tuple[np.ndarray, str]


def rows() -> list[list[Tile]]:
    """Return the photograph and four releases, for every choice."""
    photo = dpveil.Photo(data.astronaut())
    return [
        [
            (photo.image[VIEW], "original\nnot protected"),
            *((_released(photo, choice, 10 * row + draw), words) for draw in range(DRAWS)),
        ]
        for row, (choice, words) in enumerate(CHOICES)
    ]


def _released(photo: dpveil.Photo, choice: str, seed: int) -> np.ndarray:
    release = dpveil.obfuscate(photo, "attributes", attributes=choice, bits=SeededBits(seed))
    return release.image[VIEW]
