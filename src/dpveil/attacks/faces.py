"""Recognition of faces by an embedding, of clean photos or learnt from releases."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, ClassVar, Final

import numpy as np

from dpveil.assets.trained_files import default_path
from dpveil.attacks.base import CONTEXT, PIXELS, Memo, View
from dpveil.attacks.patches import largest_box
from dpveil.attacks.vectors import VectorAttack, Vectors
from dpveil.core.array_types import Float64, UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import ModelError, RegionError, UsageError
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.embedding import LENGTH
from dpveil.faces.geometry.align import Frame, of_points
from dpveil.faces.geometry.landmarks import predictor
from dpveil.opencv import cv2

HINT: Final = "give an ONNX file that takes 1 × 3 × 112 × 112 pixels, such as one of ArcFace"
EXTRA: Final = "faces"  # the extra with the network and the detector
ARCFACE: Final = Frame(112, 0.1)
LOWER: Final = 14.5
"""Pixels by which the face is lower in ArcFace's crop, where the eyes are at (38, 52) and (74, 52)."""
SHORTEST, LONGEST = 16, 4096
"""Numbers of an embedding by a user's network, at least and at most."""
MOST_NETWORK_BYTES: Final = 1 << 30  # largest file of a user's network, in bytes
Numbers = Float64[np.ndarray, " d"]
FOUND: Final[Memo[tuple[Box, ...]]] = Memo()
EMBEDDED: Final[Memo[Numbers | None]] = Memo()


class _Embedded(VectorAttack):
    sees: ClassVar[tuple[str, ...]] = (PIXELS, CONTEXT)
    needs: ClassVar[str] = EXTRA
    everywhere: ClassVar[bool] = False
    """Whether a region without a face that can be found is taken for one, instead of giving up."""

    network: str = ""

    @property
    def label(self) -> str:
        """Its name, and that of the user's network."""
        return f"{self.name}:{Path(self.network).stem}" if self.network else self.name

    @property
    def opens(self) -> bool:
        return bool(self.network)

    @classmethod
    def of(cls, text: str) -> _Embedded:
        """Return the attack with the network in this file."""
        return cls(text)  # type: ignore[call-arg]

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the embeddings, n × d; NaN without a face. Raises `UsageError` and `ModelError`."""
        own = _loaded(self.network) if self.network else None
        length, embed = (own.length, _by_file(own)) if own else (LENGTH, _by_dlib)
        faces = [self._face(view) for view in views]
        found = [
            None
            if box is None
            else EMBEDDED(view.image, f"{box} {self.network}", partial(embed, view.image, box))
            for view, box in zip(views, faces, strict=True)
        ]
        out = np.full((len(views), length), np.nan)
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
    as ArcFace does: 1 × 3 × 112 × 112 pixels from -1 to 1, RGB, to 16 to 4096 numbers; empty for dlib's
    network. OpenCV reads it, which hostile files may crash: take one that you trust.
    Sources: King 2009 (dlib); Deng et al. 2019 (ArcFace), for the crop.
    """

    name: ClassVar[str] = "embedding"
    summary: ClassVar[str] = "embedding of the face found, nearest mean of clean photos"
    learns: ClassVar[bool] = False

    network: str = ""


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
    return max(face_boxes(view.image), key=lambda box: box.w * box.h, default=None)


def face_boxes(image: UInt8[np.ndarray, "h w c"]) -> tuple[Box, ...]:
    return FOUND(image, "", lambda: _detect_faces(image))


def _detect_faces(image: UInt8[np.ndarray, "h w c"]) -> tuple[Box, ...]:
    from dpveil.regions import Faces

    return tuple(found.box for found in Faces(margin=0).detect(Photo(image)))


def aligned_crop(
    image: UInt8[np.ndarray, "h w c"], box: Box, frame: Frame, *, lower: float = 0.0
) -> UInt8[np.ndarray, "s s 3"] | None:
    """Return the crop of a face by its landmarks, `lower` pixels down in the frame; None if they coincide."""
    try:
        points = predictor().near(image, box).points
        return of_points(points, frame.points() + np.array([0.0, lower])).crop(image, frame)
    except RegionError:
        return None


def _by_dlib(image: np.ndarray, box: Box) -> Numbers | None:
    from dpveil.faces.embedding import aligned, embedder

    chip = aligned(image, box)
    return None if chip is None else np.asarray(embedder()(chip[None])[0])


def _by_file(network: Own) -> Callable[[np.ndarray, Box], Numbers | None]:
    def embed(image: np.ndarray, box: Box) -> Numbers | None:
        crop = aligned_crop(image, box, ARCFACE, lower=LOWER)
        return None if crop is None else network(crop)

    return embed


@dataclass(frozen=True, eq=False)
class Own:
    """A user's network, run by OpenCV, with the number of its outputs."""

    net: Any
    length: int

    @classmethod
    def of(cls, path: str) -> Own:
        """Return the network in an ONNX file; raises `UsageError` if it cannot be read, and `ModelError`."""
        try:
            if Path(path).stat().st_size > MOST_NETWORK_BYTES:
                raise ModelError(f"{path} is larger than {MOST_NETWORK_BYTES >> 20} MiB", hint=HINT)
            contents = np.fromfile(path, np.uint8)
        except OSError as error:
            raise UsageError(f"{path} cannot be read", hint="give the path of an ONNX file") from error
        try:
            made = cls(cv2.dnn.readNetFromONNX(contents), 0)
            length = len(made(np.zeros((ARCFACE.size, ARCFACE.size, 3), np.uint8)))
        except cv2.error as error:
            problem = f"{path} is no network that embeds crops of {ARCFACE.size} × {ARCFACE.size} pixels"
            raise ModelError(problem, hint=HINT) from error
        if not SHORTEST <= length <= LONGEST:
            raise ModelError(f"{path} gives {length} numbers, which are no embedding", hint=HINT)
        return replace(made, length=length)

    def __call__(self, crop: UInt8[np.ndarray, "112 112 3"]) -> Numbers:
        planes = crop.transpose(2, 0, 1)[None].astype(np.float32) / np.float32(127.5) - 1
        self.net.setInput(np.ascontiguousarray(planes))
        found = self.net.forward().astype(np.float64).ravel()
        return np.asarray(found / max(float(np.linalg.norm(found)), 1e-12))


_loaded = lru_cache(maxsize=2)(Own.of)


@dataclass(frozen=True)
class AttributeProfile(VectorAttack):
    """Names people by what the installed attribute model reads in their faces, learnt from releases.

    A region without a face that can be found is taken for one. Source: docs, "Attributes" (the model).
    """

    name: ClassVar[str] = "attributes"
    summary: ClassVar[str] = "gender, age and the like, as read by the attribute model, learnt from releases"
    sees: ClassVar[tuple[str, ...]] = (PIXELS, CONTEXT)
    needs: ClassVar[str] = "faces"
    extras: ClassVar[tuple[str, ...]] = ("faces", "models")

    def vectors(self, views: Sequence[View]) -> Vectors:
        """Return the model's scores of every value of every attribute; NaN without landmarks."""
        model = _model()
        found = [_crop(view, model) for view in views]
        out = np.full((len(views), len(model.out_bias)), np.nan)
        there = [row for row, crop in enumerate(found) if crop is not None]
        if there:
            out[there] = model.scores(np.stack([crop for crop in found if crop is not None]))
        return out


@lru_cache(maxsize=1)
def _model() -> AttributeModel:
    """Return the attribute model of dpveil-faces; raises `UsageError` if it is not installed."""
    return AttributeModel.load(default_path(AttributeModel.name))


def _crop(view: View, model: AttributeModel) -> np.ndarray | None:
    height, width = view.image.shape[:2]
    box = largest_face(view) or largest_box(view) or Box(0, 0, width, height)
    return aligned_crop(view.image, box, Frame(128))
