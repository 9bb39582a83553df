"""What is left of photos for those who use releases: one table of measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

import numpy as np
from scipy.special import softmax

from dpveil.assets.trained_files import default_path
from dpveil.attacks.base import Memo, has_extra
from dpveil.attacks.faces import face_boxes
from dpveil.core.array_types import Float64, UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.faces.attribute_model import CROP_SIDE, AttributeModel
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.landmarks import Landmarks
from dpveil.faces.geometry.place import place
from dpveil.metrics import Measure, ms_ssim, psnr, ssim
from dpveil.opencv import cv2

Image = UInt8[np.ndarray, "h w c"]


@dataclass(frozen=True, eq=False)
class Seen:
    """The face in a picture: its box and landmarks, and what a model reads.

    `likely` has the probability of every value of every attribute: the softmax of the model's scores.
    """

    box: Box
    points: Float64[np.ndarray, "5 2"]
    eyes: float
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
            placed = place(photo, box, frame=Frame(CROP_SIDE))
            landmarks: Landmarks = placed.landmarks  # type: ignore[assignment]
        except RegionError:
            continue
        crop = np.broadcast_to(placed.crop(photo), (CROP_SIDE, CROP_SIDE, 3))
        likely = _likely(np.ascontiguousarray(crop))
        read = {name: int(values.argmax()) for name, values in likely.items()}
        return Seen(box, landmarks.points, landmarks.distance, read, likely)
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
    whole = cv2.resize(np.broadcast_to(image, (*image.shape[:2], 3)), (CROP_SIDE, CROP_SIDE))
    return {name: int(values.argmax()) for name, values in _likely(whole).items()}


def _has_centre_in(box: Box, at: Box) -> bool:
    x, y = box.x + box.w / 2, box.y + box.h / 2
    return at.x <= x <= at.x + at.w and at.y <= y <= at.y + at.h


@lru_cache(maxsize=1)
def model() -> AttributeModel:
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
    """Return the landmarks' mean distance over that of the photo's eyes; None unless both have a face."""
    first, second = _face_pair(photo, release)
    if first is None or second is None:
        return None
    return float(np.linalg.norm(first.points - second.points, axis=1).mean() / first.eyes)


def agrees(name: str) -> Callable[[Image, Image], float | None]:
    """Return what says whether an attribute is read as in the photo: 0 also if no face is found."""

    def same(photo: Image, release: Image) -> float | None:
        first, second = _face_pair(photo, release)
        if first is None:
            return None
        return float(second is not None and first.read[name] == second.read[name])

    return same


Alone = Callable[[Image, Image], float | None]
"""A measure of one release, given the photo: None where it says nothing, such as about a face that the photo
does not show."""

HIGHEST: Final = 100.0  # PSNR in decibels of a photo that was left as it is


@dataclass(frozen=True)
class Utility:
    """A measure of one release: what tables call it, its unit, which way is better, and what it needs."""

    name: str
    unit: str
    better: Literal["more", "less"]
    summary: str
    alone: Alone
    extras: tuple[str, ...] = ()

    @property
    def there(self) -> bool:
        """Whether all that it needs is installed."""
        return all(has_extra(extra) for extra in self.extras)


def _pixels(measure: Measure) -> Alone:
    def compute(photo: Image, release: Image) -> float:
        return min(measure(photo, release, data_range=255), HIGHEST if measure is psnr else np.inf)

    return compute


FACES: Final = ("faces", "models")
ROWS: Final = (
    Utility("psnr", "dB", "more", "peak signal-to-noise ratio, 100 at most", _pixels(psnr)),
    Utility("ssim", "", "more", "structural similarity, windows of 7 × 7 pixels", _pixels(ssim)),
    Utility("ms-ssim", "", "more", "structural similarity at up to five scales", _pixels(ms_ssim)),
    Utility(
        "face-found", "", "more", "a face is found where the photo shows one", face_detection, extras=FACES
    ),
    Utility(
        "landmarks",
        "eye distances",
        "less",
        "how far five landmarks are away, on average, where a face is found",
        landmark_shift,
        extras=FACES,
    ),
    *(
        Utility(
            name,
            "",
            "more",
            f"the attribute model reads the same {name} as in the photo; no face is another one",
            agrees(name),
            extras=FACES,
        )
        for name in ("gender", "age", "smile")
    ),
)
UTILITIES: Final[Mapping[str, Utility]] = {one.name: one for one in ROWS}
"""The measures, in the order of tables."""


def usable() -> tuple[str, ...]:
    """Return the names of the measures that can be taken here."""
    return tuple(name for name, one in UTILITIES.items() if one.there)


def measure_all(
    names: Sequence[str], photos: Sequence[Image], releases: Sequence[Image | None]
) -> dict[str, tuple[float | None, ...]]:
    """Return each measure of every release; None for one that does not exist."""
    pairs = list(zip(photos, releases, strict=True))
    return {
        name: tuple(
            None if value is None else round(float(value), 9)
            for a, b in pairs
            for value in [None if b is None else UTILITIES[name].alone(np.broadcast_to(a, b.shape), b)]
        )
        for name in names
    }
