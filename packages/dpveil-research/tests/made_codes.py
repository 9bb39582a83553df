"""Faces that are nobody's, recognisers of made faces, and a dictionary of them, for the papers' codes."""

from __future__ import annotations

from functools import cache

import numpy as np

from dpveil.codecs import PCA, Dictionary
from dpveil.noise.bits import SeededBits
from dpveil_research.faces import Faces, trained

SIDE = 12
LENGTH = 6
CARE = 2e-3  # how far a squared error of one level moves the made recogniser


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


def portrait(person: int, photo: int, side: int = 128) -> np.ndarray:
    """A made face: smooth waves that are the person's, and a little that is the photo's."""
    a = 0.85 * SeededBits(4, f"person {person}").words(12) / 2.0**64
    a = a + 0.15 * SeededBits(4, f"photo {person} {photo}").words(12) / 2.0**64
    y, x = np.mgrid[0:side, 0:side] / side
    waves = sum(a[2 * i] * np.sin((i + 1) * (x + a[2 * i + 1]) * 3) * np.cos((i + 2) * y) for i in range(6))
    levels = 120 + 45 * np.asarray(waves)
    return np.clip(np.stack([levels, 0.9 * levels, 0.8 * levels], axis=2), 0, 255).astype(np.uint8)


def chips(pictures: np.ndarray) -> np.ndarray:
    """In the place of dlib's network: means of 12 × 15 pixels."""
    grey = pictures[:, 3:147].mean(axis=3).reshape(len(pictures), 12, 12, 10, 15).mean(axis=(2, 4))
    return np.pad(grey.reshape(len(pictures), -1), ((0, 0), (0, 8)))


def blocks(crops: np.ndarray) -> np.ndarray:
    """A recogniser of crops that is quick: means of 16 × 16 pixels."""
    means = crops.reshape(len(crops), 8, 16, 8, 16, 3).mean(axis=(2, 4))
    return np.asarray(means.reshape(len(crops), -1), np.float64)
