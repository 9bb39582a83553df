"""What is seen of the face in a picture: where it is, how it is turned, and what an attribute model reads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final

import cv2
import numpy as np
from scipy.special import softmax

from dpveil.assets.store import default_path
from dpveil.attacks.base import Memo
from dpveil.attacks.faces import face_boxes
from dpveil.core.arrays import Float64, UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.faces.attribute_model import SIDE, AttributeModel
from dpveil.faces.geometry import place
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.landmarks import Landmarks, pose_of

Image = UInt8[np.ndarray, "h w c"]


@dataclass(frozen=True, eq=False)
class Seen:
    """The face in a picture: its box and landmarks, yaw and pitch in degrees, and what a model reads.

    `likely` has the probability of every value of every attribute: the softmax of the model's scores.
    """

    box: Box
    points: Float64[np.ndarray, "5 2"]
    eyes: float
    yaw: float
    pitch: float
    read: dict[str, int]
    likely: Mapping[str, Float64[np.ndarray, " k"]] = field(default_factory=dict)


KEPT: Final[Memo[Seen | None]] = Memo()
NOWHERE: Final = "whole"


def largest_face(image: Image, at: Box | None = None) -> Seen | None:
    """Return the largest face in a picture; with `at`, the largest whose middle is in that box; or None."""
    return KEPT(image, NOWHERE if at is None else str(at), lambda: _find_largest_face(image, at))


def _find_largest_face(image: Image, at: Box | None) -> Seen | None:
    photo = Photo(np.ascontiguousarray(image))
    boxes = [box for box in face_boxes(photo.image) if at is None or _has_centre_in(box, at)]
    for box in sorted(boxes, key=lambda one: -one.w * one.h):
        try:
            placed = place(photo, box, frame=Frame(SIDE))
            landmarks: Landmarks = placed.landmarks  # type: ignore[assignment]
            turned = pose_of(landmarks)
        except RegionError:
            continue
        crop = np.broadcast_to(placed.crop(photo), (SIDE, SIDE, 3))
        likely = _likely(np.ascontiguousarray(crop))
        read = {name: int(values.argmax()) for name, values in likely.items()}
        angles = np.degrees([turned.yaw, turned.pitch])
        return Seen(
            box, landmarks.points, landmarks.distance, float(angles[0]), float(angles[1]), read, likely
        )
    return None


def _likely(crop: UInt8[np.ndarray, "128 128 3"]) -> dict[str, Float64[np.ndarray, " k"]]:
    scores = model().scores(crop[None])[0].astype(np.float64)
    return {name: softmax(scores[columns]) for name, columns in model().columns.items()}


def reading(image: Image) -> Mapping[str, int]:
    """Return the value of every attribute as the model reads it in a picture, by its number: of the largest
    face, or of all of the picture where none is found.
    """
    there = largest_face(image)
    if there is not None:
        return there.read
    whole = cv2.resize(np.broadcast_to(image, (*image.shape[:2], 3)), (SIDE, SIDE))
    return {name: int(values.argmax()) for name, values in _likely(whole).items()}


def _has_centre_in(box: Box, at: Box) -> bool:
    x, y = box.x + box.w / 2, box.y + box.h / 2
    return at.x <= x <= at.x + at.w and at.y <= y <= at.y + at.h


@lru_cache(maxsize=1)
def model() -> AttributeModel:
    """Return the attribute model of dpveil-faces."""
    return AttributeModel.load(default_path("attributes"))


def _face_pair(photo: Image, release: Image) -> tuple[Seen | None, Seen | None]:
    """Return the face in the photo and that at its place in the release."""
    first = largest_face(photo)
    return first, None if first is None else largest_face(release, first.box)


def face_detection(photo: Image, release: Image) -> float | None:
    """Return 1 if a face is found at the place of the photo's, and 0 if not; None if the photo shows none."""
    first, second = _face_pair(photo, release)
    return None if first is None else float(second is not None)


def landmark_shift(photo: Image, release: Image) -> float | None:
    """Return the mean distance of five landmarks, in distances between the photo's eyes; None without two
    faces.
    """
    first, second = _face_pair(photo, release)
    if first is None or second is None:
        return None
    return float(np.linalg.norm(first.points - second.points, axis=1).mean() / first.eyes)


def yaw(photo: Image, release: Image) -> float | None:
    """Return by how many degrees the turn of the head differs; None without two faces."""
    first, second = _face_pair(photo, release)
    return None if first is None or second is None else abs(first.yaw - second.yaw)


def pitch(photo: Image, release: Image) -> float | None:
    """Return by how many degrees the nod of the head differs; None without two faces."""
    first, second = _face_pair(photo, release)
    return None if first is None or second is None else abs(first.pitch - second.pitch)


def agrees(name: str) -> Callable[[Image, Image], float | None]:
    """Return what says whether an attribute is read as in the photo: 0 also if no face is found."""

    def same(photo: Image, release: Image) -> float | None:
        first, second = _face_pair(photo, release)
        if first is None:
            return None
        return float(second is not None and first.read[name] == second.read[name])

    return same
