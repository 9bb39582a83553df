"""What is left of photos for those who use releases: one table of measures."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Literal

import cv2
import numpy as np

from dpveil.attacks.base import Memo, has_extra
from dpveil.attacks.iris import Eye, eye
from dpveil.bench import face_utility
from dpveil.core.arrays import UInt8
from dpveil.faces.attribute_model import SIDE as CROP
from dpveil.metrics import Measure, ms_ssim, mse, psnr, ssim
from dpveil.metrics.picture_sets import Bins, colours, frechet, sliced_wasserstein

FOUND: Final[Memo[Eye | None]] = Memo()
BALL: Final = 2.0  # radius of an eyeball, in radii of its iris: 12 mm and 6 mm


def _eye_pair(photo: Image, release: Image) -> tuple[Eye | None, Eye | None]:
    """Return the eye in a photo, and that in its release if its pupil is within the photo's iris."""
    first, second = _eye(photo), _eye(release)
    if first is None or second is None or _pupil_distance(first, second) > first.iris.radius:
        return first, None
    return first, second


def _eye(image: Image) -> Eye | None:
    return FOUND(image, "", lambda: eye(image))


def _pupil_distance(one: Eye, other: Eye) -> float:
    return float(np.hypot(one.pupil.x - other.pupil.x, one.pupil.y - other.pupil.y))


def pupil_detection(photo: Image, release: Image) -> float | None:
    """Return 1 if the pupil is found at its place, and 0 if not; None if the photo shows none."""
    first, second = _eye_pair(photo, release)
    return None if first is None else float(second is not None)


def pupil_shift(photo: Image, release: Image) -> float | None:
    """Return how far the middle of the pupil is away, in radii of the iris; None without two pupils."""
    first, second = _eye_pair(photo, release)
    return None if first is None or second is None else _pupil_distance(first, second) / first.iris.radius


def gaze(photo: Image, release: Image) -> float | None:
    """Return by how many degrees the gaze differs, by the middles of the pupils on an eyeball of two radii of
    the iris; None without two pupils.
    """
    away = pupil_shift(photo, release)
    return None if away is None else float(np.degrees(np.arcsin(min(1.0, away / BALL))))


Image = UInt8[np.ndarray, "h w c"]
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

    `alone` is a measure of one release, and `together` one of all of them; one of the two is None. `about` is
    what photos have to show, or an empty string for anything.
    """

    name: str
    unit: str
    better: Literal["more", "less"]
    summary: str
    alone: Alone | None = None
    together: Together | None = None
    extras: tuple[str, ...] = ()
    about: str = ""

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
    """Return a picture with three channels."""
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
        rows.append(face_utility.model().units(crops).astype(np.float64))
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
        face_utility.face_detection,
        extras=FACES,
        about="faces",
    ),
    Utility(
        "landmarks",
        "eye distances",
        "less",
        "how far five landmarks are away, on average, where a face is found",
        face_utility.landmark_shift,
        extras=FACES,
        about="faces",
    ),
    Utility(
        "yaw", "degrees", "less", "error of the head's turn", face_utility.yaw, extras=FACES, about="faces"
    ),
    Utility(
        "pitch", "degrees", "less", "error of the head's nod", face_utility.pitch, extras=FACES, about="faces"
    ),
    *(
        Utility(
            name,
            "",
            "more",
            f"the attribute model reads the same {name} as in the photo; no face is another one",
            face_utility.agrees(name),
            extras=FACES,
            about="faces",
        )
        for name in ("gender", "age", "smile")
    ),
    Utility("pupil-found", "", "more", "the pupil is found at its place", pupil_detection, about="eyes"),
    Utility(
        "pupil",
        "iris radii",
        "less",
        "how far the middle of the pupil is away, where it is found at its place",
        pupil_shift,
        about="eyes",
    ),
    Utility("gaze", "degrees", "less", "error of the gaze, where the pupil is found", gaze, about="eyes"),
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
        about="faces",
    ),
)
UTILITIES: Final[Mapping[str, Utility]] = {one.name: one for one in ROWS}
"""The measures, in the order of tables."""


def usable(subject: str) -> tuple[str, ...]:
    """Return the names of the measures that can be taken here, of photos that show this."""
    return tuple(name for name, one in UTILITIES.items() if one.there and one.about in ("", subject))


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
                None if b is None else _round_value(one.alone(_match_channels(a, b), b)) for a, b in pairs
            )
        if one.together is not None:
            there = [(a, b) for a, b in pairs if b is not None]
            value = one.together([a for a, _ in there], [b for _, b in there]) if there else None
            together[name] = _round_value(value)
    return alone, together


def _match_channels(photo: Image, release: Image) -> Image:
    """Return the photo with as many channels as the release."""
    return photo if photo.shape == release.shape else np.broadcast_to(photo, release.shape)


def _round_value(value: float | None) -> float | None:
    return None if value is None else round(float(value), 9)
