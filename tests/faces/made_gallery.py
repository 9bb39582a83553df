"""A gallery of made faces, with labels that can be seen in them."""

from __future__ import annotations

from functools import cache

import numpy as np
from made_faces import faces

from dpveil.assets.model_cards import Card
from dpveil.faces.face_gallery import FaceGallery, webp

VALUES = {"gender": ("female", "male"), "age": ("18-29", "30-44", "45-59", "60-90")}


@cache
def made_gallery(count: int = 24, seed: int = 5) -> FaceGallery:
    """Return a gallery: pairs of labels in turn, and features that are the mean levels of eight bands."""
    pictures = tuple(webp(face) for face in faces(count, seed=seed, canvas=(128, 128, 3)))
    numbers = np.arange(count)
    labels = {"gender": (numbers % 2).astype(np.int8), "age": (numbers // 2 % 4).astype(np.int8)}
    rows = np.zeros((8, 32, 32, 3), np.float32)
    for k in range(8):
        rows[k, 4 * k : 4 * k + 4] = 1 / 256
    card = Card("gallery", "made faces", "none", 5, {"contributors": 8}, {"distance": 0.7})
    ahead = np.zeros(count, np.int8)
    return FaceGallery(pictures, labels, VALUES, {}, ahead, rows.reshape(8, -1), card)
