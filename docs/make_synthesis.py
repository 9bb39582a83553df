"""Synthetic data sets of people who are public: faces of nobody in a gallery stand for photos."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np

from dpveil.assets.trained_files import default_path
from dpveil.codecs.base import load
from dpveil.codecs.network_codecs import ellipse_mask
from dpveil.faces.face_gallery import FaceGallery
from dpveil.noise.bits import SeededBits
from dpveil.synthesis import SetPlan, Simulator, evolve

SHOWN = 8
SIDE = 64
EPSILONS = (2, 8)

Tile = tuple[np.ndarray, str]


@cache
def simulator() -> Simulator:
    return Simulator(load(default_path("gan")))


@cache
def photos() -> np.ndarray:
    """Return the faces of women in the gallery of dpveil-faces, n × 64 × 64 × 3."""
    gallery = FaceGallery.load(default_path("gallery"))
    women = np.flatnonzero(gallery.labels["gender"] == gallery.values["gender"].index("female"))
    faces = gallery.decoded(women.tolist())
    return np.stack([cv2.resize(face, (SIDE, SIDE), interpolation=cv2.INTER_AREA) for face in faces])


def rows() -> list[list[Tile]]:
    """Return photos that vote, faces of nobody without votes, and data sets at two budgets."""
    made = simulator()
    votes = made.embed_all(photos())
    nobody = made.pictures(made.draw(SHOWN, SeededBits(4)))
    inside = ellipse_mask(SIDE)[..., None]  # as the codec can show them
    sets = [
        ("some of those who vote", np.where(inside, photos()[:: len(photos()) // SHOWN], np.uint8(128))),
        ("no votes", nobody),
    ]
    for epsilon in EPSILONS:
        settings = {"epsilon": epsilon, "delta": "1e-6", "people": len(votes), "pictures": SHOWN}
        plan = SetPlan(codec=made.codec, **settings)
        found = evolve(plan, made, votes, np.arange(len(votes)), SeededBits(epsilon))
        sets.append((f"epsilon {epsilon}", found.pictures))
    return [
        [(large(one), words if n == 0 else "") for n, one in enumerate(faces[:SHOWN])]
        for words, faces in sets
    ]


def large(face: np.ndarray) -> np.ndarray:
    return cv2.resize(face, (2 * SIDE, 2 * SIDE), interpolation=cv2.INTER_CUBIC)
