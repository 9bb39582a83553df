"""Recognition of faces by an embedding, of clean photos or learnt from releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.assets.network import Network
from dpveil.attacks.base import CONTEXT, PIXELS, View
from dpveil.attacks.memo import Memo
from dpveil.attacks.patches import largest_box
from dpveil.attacks.vectors import VectorAttack, Vectors
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError, UsageError
from dpveil.faces.embedding import LENGTH
from dpveil.faces.geometry.align import Frame, of_points
from dpveil.faces.geometry.landmarks import predictor

EXTRA: Final = "faces"
"""The extra with the network and the detector."""
ARCFACE: Final = Frame(112, 0.1)
LOWER: Final = 14.5
"""Pixels by which the face is lower in ArcFace's crop, where the eyes are at (38, 52) and (74, 52)."""
NUMBERS: Final = 512
"""Numbers of an embedding by a user's network."""
LARGE: Final = 12
"""Size of a user's network, relative to `Network`'s limits."""
LARGEST: Final = 1e4
"""Largest mean absolute number of an embedding of nothing."""
Numbers = Float64[np.ndarray, " d"]
FOUND: Final[Memo[Box | None]] = Memo()
EMBEDDED: Final[Memo[Numbers | None]] = Memo()


class _Embedded(VectorAttack):
    """Finds the largest face of each view and embeds it."""

    sees: ClassVar[tuple[str, ...]] = (PIXELS, CONTEXT)
    needs: ClassVar[str] = EXTRA
    everywhere: ClassVar[bool] = False
    """Whether a region without a face that can be found is taken for one, instead of giving up."""

    network: str = ""

    @property
    def label(self) -> str:
        """Its name, and that of the user's network."""
        return f"{self.name}:{Path(self.network).stem}" if self.network else self.name

    @classmethod
    def of(cls, text: str) -> _Embedded:
        """Return the attack with the network in this file."""
        return cls(text)  # type: ignore[call-arg]

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the embeddings, n × d; NaN without a face. Raises `UsageError` and `ModelError`."""
        embed = _embed(self.network)
        faces = [self._face(view) for view in views]
        found = [
            None
            if box is None
            else EMBEDDED(view.image, f"{box} {self.network}", partial(embed, view.image, box))
            for view, box in zip(views, faces, strict=True)
        ]
        out = np.full((len(views), NUMBERS if self.network else LENGTH), np.nan)
        for row, one in enumerate(found):
            if one is not None:
                out[row] = one
        return out

    def _face(self, view: View) -> Box | None:
        found = largest_face(view)
        if found is None and self.everywhere:
            height, width = view.image.shape[:2]
            return largest_box(view) or Box(0, 0, width, height)
        return found


@dataclass(frozen=True)
class Embedding(_Embedded):
    """Names the person whose clean photos are nearest: an attacker who uses a recogniser as it is.

    A release in which no face is found is a failure. `network` is the path of an ONNX file that embeds faces
    as ArcFace does: 1 × 3 × 112 × 112 pixels from -1 to 1, RGB, to 512 numbers; empty for dlib's network.
    Sources: King 2009 (dlib); Deng et al. 2019 (ArcFace), for the crop.
    """

    name: ClassVar[str] = "embedding"
    summary: ClassVar[str] = "embedding of the face found, nearest mean of clean photos"

    network: str = ""

    @property
    def learns(self) -> bool:
        """Whether it learns from releases: no."""
        return False


@dataclass(frozen=True)
class EmbeddingParrot(_Embedded):
    """Learns from the attacker's own releases what of an embedding stays.

    A region without a face that can be found is taken for one. `network` is as in `Embedding`. Sources:
    Newton, Sweeney & Malin 2005; McPherson, Shokri & Shmatikov 2016.
    """

    name: ClassVar[str] = "embedding-parrot"
    summary: ClassVar[str] = "linear discriminant of the face's embedding, learnt from releases"
    everywhere: ClassVar[bool] = True

    network: str = ""


def largest_face(view: View) -> Box | None:
    """Return the box of the largest face in what an attacker sees, forehead to chin, or None without one."""
    return FOUND(view.image, "", lambda: _largest(view.image))


def _largest(image: UInt8[np.ndarray, "h w c"]) -> Box | None:
    from dpveil.regions import Faces

    boxes = [found.box for found in Faces(margin=0).detect(Photo(image))]
    return max(boxes, key=lambda box: box.w * box.h, default=None)


def landmarked(
    image: UInt8[np.ndarray, "h w c"], box: Box, frame: Frame, *, lower: float = 0.0
) -> UInt8[np.ndarray, "s s 3"] | None:
    """Return the crop of a face by its landmarks, `lower` pixels down in the frame; None if they coincide."""
    try:
        points = predictor().near(image, box).points
        return of_points(points, frame.points() + np.array([0.0, lower])).crop(image, frame)
    except RegionError:
        return None


def _embed(network: str) -> Callable[[np.ndarray, Box], Numbers | None]:
    return _by_file(_loaded(network)) if network else _by_dlib


def _by_dlib(image: np.ndarray, box: Box) -> Numbers | None:
    from dpveil.faces.embedding import aligned, embedder

    chip = aligned(image, box)
    return None if chip is None else np.asarray(embedder()(chip[None])[0])


def _by_file(network: Network) -> Callable[[np.ndarray, Box], Numbers | None]:
    def embed(image: np.ndarray, box: Box) -> Numbers | None:
        crop = landmarked(image, box, ARCFACE, lower=LOWER)
        if crop is None:
            return None
        planes = crop.transpose(2, 0, 1)[None].astype(np.float32) / np.float32(127.5) - 1
        found = network(planes)[0].astype(np.float64)
        return np.asarray(found / max(float(np.linalg.norm(found)), 1e-12))

    return embed


@lru_cache(maxsize=2)
def _loaded(path: str) -> Network:
    """Return the network in a file; raises `UsageError` if it cannot be read, and `ModelError`."""
    try:
        contents = np.fromfile(path, np.uint8)
    except OSError as error:
        raise UsageError(f"{path} cannot be read", hint="give the path of an ONNX file") from error
    shape = (1, 3, ARCFACE.size, ARCFACE.size)
    return Network.of(contents, shape, (1, NUMBERS), "embeds faces", LARGEST, LARGE)
