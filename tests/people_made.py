"""Pictures of made people, for tests of attacks and of the benchmark."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from PIL import Image

from dpveil.attacks.base import View

SIDE = 32


def picture(person: int, photo: int, *, noise: float = 12.0) -> np.ndarray:
    """Return a photo of a person: a pattern of its own, 4 × 4 squares, with noise that differs by photo."""
    own = np.kron(np.random.default_rng(person).uniform(60, 200, (4, 4)), np.ones((SIDE // 4, SIDE // 4)))
    rough = np.random.default_rng([person, photo, 7]).normal(0, noise, (SIDE, SIDE))
    return (own + rough).clip(0, 255).astype(np.uint8)[..., None]


def view(image: np.ndarray) -> View:
    """Return what an adversary sees of a picture that was replaced as a whole."""
    return View(image, np.ones(image.shape[:2], np.bool_))


def folder(root: Path, people: int = 6, photos: int = 5) -> Path:
    """Write a data set: a folder for each person, with PNGs."""
    for person in range(people):
        place = root / f"person {person}"
        place.mkdir(parents=True)
        for photo in range(photos):
            Image.fromarray(picture(person, photo)[..., 0]).save(place / f"{photo}.png")
    return root
