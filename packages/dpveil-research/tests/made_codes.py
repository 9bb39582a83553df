"""Faces that are nobody's, a recogniser of made faces, and a dictionary of them, for the papers' codes."""

from __future__ import annotations

from functools import cache

import numpy as np

from dpveil.codecs import PCA, Dictionary
from dpveil_research.faces import Faces, trained

SIDE = 12
LENGTH = 6
CARE = 2e-3
"""How far a squared error of one level moves the made recogniser."""


def crops(people: int, each: int, *, seed: int) -> Faces:
    """Return made faces: smooth pictures, a few numbers for everybody, and less for every photo."""
    random = np.random.default_rng(seed)
    y, x = np.mgrid[:SIDE, :SIDE] / SIDE
    waves = np.stack([np.cos(np.pi * (i * x + j * y)) for i in range(3) for j in range(3)][1:])
    own = np.repeat(random.normal(size=(people, 8, 3)), each, axis=0)
    codes = own + 0.3 * random.normal(size=own.shape)
    pictures = 128 + 14 * np.einsum("nkc,khw->nhwc", codes, waves)
    pictures += random.normal(0, 2, pictures.shape)
    names = tuple(f"p{number}" for number in range(people) for _ in range(each))
    return Faces(np.clip(np.rint(pictures), 0, 255).astype(np.uint8), names)


def embed(pictures: np.ndarray) -> np.ndarray:
    """Return a few random means of levels: a recogniser that knows nothing."""
    means = np.random.default_rng(9).normal(size=(SIDE * SIDE * 3, 16)) / 48
    return CARE * 3 * (pictures.reshape(len(pictures), -1).astype(float) @ means)


@cache
def codecs() -> dict[str, PCA | Dictionary]:
    """Return a codec of each kind, fitted to made faces."""
    faces = crops(40, 2, seed=1).crops
    return {kind.name: trained(kind, faces, LENGTH, 1) for kind in (PCA, Dictionary)}
