"""Recognition of faces by an embedding, of clean photos or learnt from releases."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float64

from dpveil.attacks.base import PIXELS, View
from dpveil.attacks.vectors import VectorAttack, Vectors
from dpveil.core.photo import Photo
from dpveil.core.region import Box

EXTRA: Final = "faces"
"""The extra with the network and the detector."""
MOST: Final = 20_000
"""Most embeddings that are kept, 1 KB each."""
_KEPT: Final[dict[bytes, np.ndarray]] = {}


class _Embedded(VectorAttack):
    """Finds the largest face of each release and embeds it by dlib's network; none found is a failure."""

    sees: ClassVar[tuple[str, ...]] = (PIXELS,)
    needs: ClassVar[str] = EXTRA

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the embeddings, n × 128; NaN without a face."""
        return np.stack([_known(view) for view in views])


@dataclass(frozen=True)
class Embedding(_Embedded):
    """Names the person whose clean photos are nearest: an attacker who uses a recogniser as it is."""

    name: ClassVar[str] = "embedding"
    summary: ClassVar[str] = "dlib's embedding of the face found, nearest mean of clean photos"

    @property
    def learns(self) -> bool:
        """Whether it learns from releases: no."""
        return False


@dataclass(frozen=True)
class EmbeddingParrot(_Embedded):
    """Learns from the attacker's own releases what of an embedding stays. Source: Newton et al. 2005."""

    name: ClassVar[str] = "embedding-parrot"
    summary: ClassVar[str] = "linear discriminant of dlib's embedding, learnt from releases"


def _known(view: View) -> Float64[np.ndarray, 128]:
    """Return the embedding of a picture, which is kept: clean photos are seen again with every method."""
    key = hashlib.sha256(repr(view.image.shape).encode() + view.image.tobytes()).digest()
    if key not in _KEPT:
        if len(_KEPT) >= MOST:
            _KEPT.clear()
        _KEPT[key] = _embedded(view)
    return _KEPT[key]


def _embedded(view: View) -> Float64[np.ndarray, 128]:
    from dpveil.faces.embedding import LENGTH, aligned, embedder

    box = largest_face(view)
    chip = None if box is None else aligned(view.image, box)
    return np.full(LENGTH, np.nan) if chip is None else np.asarray(embedder()(chip[None])[0], np.float64)


def largest_face(view: View) -> Box | None:
    """Return the box of the largest face in what an attacker sees, forehead to chin, or None without one."""
    from dpveil.regions import Faces

    boxes = [found.box for found in Faces(margin=0).detect(Photo(view.image))]
    return max(boxes, key=lambda box: box.w * box.h, default=None)
