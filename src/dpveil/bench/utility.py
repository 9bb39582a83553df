"""What is left of photos for those who use releases: one table of measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Final, Literal

import cv2
import numpy as np
from scipy.special import softmax

from dpveil.assets.trained_files import default_path
from dpveil.attacks.base import Memo, has_extra
from dpveil.attacks.faces import face_boxes
from dpveil.core.arrays import Float64, UInt8
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.faces.attribute_model import SIDE as CROP
from dpveil.faces.attribute_model import AttributeModel
from dpveil.faces.geometry import place
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.landmarks import Landmarks, pose_of
from dpveil.metrics import Measure, ms_ssim, mse, psnr, ssim
from dpveil.metrics.picture_sets import Bins, colours, frechet, sliced_wasserstein

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
            placed = place(photo, box, frame=Frame(CROP))
            landmarks: Landmarks = placed.landmarks  # type: ignore[assignment]
            turned = pose_of(landmarks)
        except RegionError:
            continue
        crop = np.broadcast_to(placed.crop(photo), (CROP, CROP, 3))
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
    whole = cv2.resize(np.broadcast_to(image, (*image.shape[:2], 3)), (CROP, CROP))
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


Alone = Callable[[Image, Image], float | None]
"""A measure of one release, given the photo: None where it says nothing, such as about a face that the photo
does not show."""
Together = Callable[[Sequence[Image], Sequence[Image]], float | None]
"""A measure of all releases, given all their photos."""

HIGHEST: Final = 100.0  # PSNR in decibels of a photo that was left as it is
SIDE: Final = 16  # side to which pictures are reduced before their colours are compared, in pixels
EACH: Final = 20  # photos for each bin, at least, and the most bins, of the number of different bins
MOST_BINS: Final = 100


@dataclass(frozen=True)
class Utility:
    """A measure: what tables call it, its unit, which way is better, and what it needs.

    `alone` is a measure of one release, and `together` one of all of them; one of the two is None.
    """

    name: str
    unit: str
    better: Literal["more", "less"]
    summary: str
    alone: Alone | None = None
    together: Together | None = None
    extras: tuple[str, ...] = ()

    @property
    def there(self) -> bool:
        """Whether all that it needs is installed."""
        return all(has_extra(extra) for extra in self.extras)


def _pixels(measure: Measure) -> Alone:
    def compute(photo: Image, release: Image) -> float:
        return min(measure(photo, release, data_range=255), HIGHEST if measure is psnr else np.inf)

    return compute


def _colours(images: Sequence[Image]) -> np.ndarray | None:
    """Return the colours of pictures of any sizes, n × d; None if one is too small."""
    if len(images) < 2 or min(min(one.shape[:2]) for one in images) < SIDE:
        return None
    return np.concatenate([colours(rgb(one)[None], SIDE) for one in images])


def rgb(image: Image) -> UInt8[np.ndarray, "h w 3"]:
    return np.ascontiguousarray(np.broadcast_to(image, (*image.shape[:2], 3)))


def _wasserstein(photos: Sequence[Image], releases: Sequence[Image]) -> float | None:
    rows = _colours(photos), _colours(releases)
    return None if rows[0] is None or rows[1] is None else sliced_wasserstein(rows[0], rows[1])


def _ndb(photos: Sequence[Image], releases: Sequence[Image]) -> float | None:
    rows, count = (_colours(photos), _colours(releases)), min(MOST_BINS, len(photos) // EACH)
    if rows[0] is None or rows[1] is None or count < 2:
        return None
    return Bins.of(rows[0], count).compare(rows[1]).ndb


def _frechet(photos: Sequence[Image], releases: Sequence[Image]) -> float | None:
    if len(photos) < 2:
        return None
    size, rows = (CROP, CROP), []
    for of in (photos, releases):
        crops = np.stack([cv2.resize(rgb(one), size, interpolation=cv2.INTER_AREA) for one in of])
        rows.append(model().units(crops).astype(np.float64))
    return frechet(*rows)


FACES: Final = ("faces", "models")
ROWS: Final = (
    Utility("mse", "levels²", "less", "mean squared error of the pixels", _pixels(mse)),
    Utility("psnr", "dB", "more", "peak signal-to-noise ratio, 100 at most", _pixels(psnr)),
    Utility("ssim", "", "more", "structural similarity, windows of 7 × 7 pixels", _pixels(ssim)),
    Utility("ms-ssim", "", "more", "structural similarity at up to five scales", _pixels(ms_ssim)),
    Utility(
        "face-found",
        "",
        "more",
        "a face is found where the photo shows one",
        face_detection,
        extras=FACES,
    ),
    Utility(
        "landmarks",
        "eye distances",
        "less",
        "how far five landmarks are away, on average, where a face is found",
        landmark_shift,
        extras=FACES,
    ),
    Utility(
        "yaw",
        "degrees",
        "less",
        "error of the head's turn",
        yaw,
        extras=FACES,
    ),
    Utility(
        "pitch",
        "degrees",
        "less",
        "error of the head's nod",
        pitch,
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
    Utility(
        "wasserstein",
        "levels",
        "less",
        "sliced Wasserstein distance of the colours of 16 × 16 pixels",
        together=_wasserstein,
    ),
    Utility(
        "ndb",
        "",
        "less",
        "share of clusters of the photos' colours that are too full or too empty; 0.05 by chance",
        together=_ndb,
    ),
    Utility(
        "frechet",
        "",
        "less",
        "Fréchet distance of the hidden units of the attribute model, which sees the whole picture",
        together=_frechet,
        extras=("models",),
    ),
)
UTILITIES: Final[Mapping[str, Utility]] = {one.name: one for one in ROWS}
"""The measures, in the order of tables."""


def usable() -> tuple[str, ...]:
    """Return the names of the measures that can be taken here."""
    return tuple(name for name, one in UTILITIES.items() if one.there)


def measure_all(
    names: Sequence[str], photos: Sequence[Image], releases: Sequence[Image | None]
) -> tuple[dict[str, tuple[float | None, ...]], dict[str, float | None]]:
    """Return each measure of every release, None for one that does not exist, and those of all together."""
    pairs = list(zip(photos, releases, strict=True))
    alone, together = {}, {}
    for name in names:
        one = UTILITIES[name]
        if one.alone is not None:
            alone[name] = tuple(
                None if b is None else _round_value(one.alone(np.broadcast_to(a, b.shape), b))
                for a, b in pairs
            )
        if one.together is not None:
            there = [(a, b) for a, b in pairs if b is not None]
            value = one.together([a for a, _ in there], [b for _, b in there]) if there else None
            together[name] = _round_value(value)
    return alone, together


def _round_value(value: float | None) -> float | None:
    return None if value is None else round(float(value), 9)
