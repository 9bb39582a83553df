"""Figure 6.14 of Croft's thesis, on faces of nobody: private releases, a head replaced without a look, and
k-same.
"""

from __future__ import annotations

import numpy as np

from dpveil.assets.store import default_path
from dpveil.codecs import load
from dpveil.faces.face_gallery import FaceGallery
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_thesis_6 import Told, nobodies, private, seen
from dpveil_research.ksame_methods import KSameM

EPSILON, K = 200, 5
SHOWN = 7
MANY = 35
"""Faces among which k-same finds groups."""

Tile = tuple[np.ndarray, str]


def rows() -> list[list[Tile]]:
    """Return faces of nobody, decoded, released twice by differential privacy, replaced, and by k-same."""
    gallery, codec = FaceGallery.load(default_path("gallery")), load(default_path("gan"))
    read = gallery.values["gender"].index("female")
    women = np.flatnonzero(gallery.labels["gender"] == read)[:MANY]
    faces, space = seen(gallery.faces[women], codec.canvas[0]), Told(codec, female=True)
    codes = space.encode(faces)
    drawn = [private(EPSILON).release(codes, codec.statistics, bits=SeededBits(n)) for n in (1, 2)]
    names = [str(n) for n in women]
    made = [
        (faces, "a face of nobody"),
        (space.decode(codes), "encoded, decoded"),
        *((space.decode(one), f"epsilon {EPSILON}") for one in drawn),
        (nobodies(codec.canvas[0]), "replaced, epsilon 0"),
        (KSameM(k=K, space=space).release_codes(codes, people=names).faces, f"k-same-m, k = {K}"),
    ]
    return [[(_large(face), words) for face in crops[:SHOWN]] for crops, words in made]


def _large(face: np.ndarray) -> np.ndarray:
    import cv2

    return np.asarray(cv2.resize(face, (192, 192), interpolation=cv2.INTER_CUBIC))
