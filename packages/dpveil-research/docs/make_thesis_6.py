"""Figure 6.14 of Croft's thesis, on faces of nobody: private releases, a head replaced without a look, and
k-same.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from dpveil.assets.trained_files import default_path
from dpveil.codecs import load
from dpveil.codecs.network_codecs import CLEAR
from dpveil.faces.face_gallery import FaceGallery
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_thesis_6 import private
from dpveil_research.faces import FRAME, heads, large, seen
from dpveil_research.ksame_methods import average_codes

EPSILON, K = 200, 5
SHOWN = 7
MANY = 35  # faces among which k-same finds groups

Tile = tuple[np.ndarray, str]


def rows() -> list[list[Tile]]:
    """Return faces of nobody, decoded, released twice by differential privacy, replaced, and by k-same."""
    gallery, codec = FaceGallery.load(default_path("gallery")), load(default_path("gan"))
    read = gallery.values["gender"].index("female")
    women = np.flatnonzero(gallery.labels["gender"] == read)[:MANY]
    faces, decode = seen(gallery.faces[women], codec.canvas[0]), partial(codec.render, gender=CLEAR)
    codes = codec.encode(faces)
    drawn = [private(EPSILON).release(codes, codec.statistics, bits=SeededBits(n)) for n in (1, 2)]
    made = [
        (faces, "a face of nobody"),
        (decode(codes), "encoded, decoded"),
        *((decode(one), f"epsilon {EPSILON}") for one in drawn),
        (seen(heads(FRAME), codec.canvas[0]), "replaced, epsilon 0"),
        (average_codes(codes, K, decode).faces, f"k-same-m, k = {K}"),
    ]
    return [[(face, words) for face in large(crops[:SHOWN])] for crops, words in made]
