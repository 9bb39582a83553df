"""Iris recognition after Daugman: circles, a rubber sheet, phases with a mask, and Hamming distances."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import cv2
import numpy as np
from jaxtyping import Bool, Float64, Int64, UInt8, UInt64

from dpveil.attacks.base import Memo

SMALLEST: Final = 32  # least rows and columns of a picture
COARSE: Final = 100  # rows to which a picture is reduced for the first search
PUPILS: Final = (0.06, 0.22)  # radii of pupils, in the shorter side of the picture
IRISES: Final = (1.7, 4.2)  # radii of irises, in radii of the pupil
LARGEST: Final = 0.45  # largest radius of an iris, in the shorter side of the picture
MOVED: Final = 0.3  # how far the middle of the iris may be from that of the pupil, in radii of the pupil
ANGLES: Final = 64
SIDES: Final = 35.0
"""Degrees from the horizontal within which the edge of an iris is looked for: lids cover the rest."""
EDGE: Final = 6.0  # least step of the mean level, in grey levels, at the edge of a pupil
BLUR: Final = 2.0  # standard deviation of the blur before the search, in pixels of the coarse picture

Grey = Float64[np.ndarray, "h w"]


@dataclass(frozen=True)
class Circle:
    """A circle in pixels of the picture."""

    x: float
    y: float
    radius: float


@dataclass(frozen=True)
class Eye:
    """The circles of an eye."""

    pupil: Circle
    iris: Circle


def eye(image: UInt8[np.ndarray, "h w c"]) -> Eye | None:
    """Return where pupil and iris are in a picture of an eye, or None if no edge of a pupil is found.

    The pupil is the circle across whose edge the mean level grows most, and whose inside is dark; the iris
    is that around it, by its edge beside the lids. The search is coarse first, and then in full.
    Source: Daugman 1993, equation 1; Daugman 2004, equation 2.
    """
    if min(image.shape[:2]) < SMALLEST:
        return None
    grey = np.asarray(image, np.float64).mean(axis=2)
    scale = max(1.0, min(grey.shape) / COARSE)
    small = _downscale(grey, scale)
    found = _pupil(small)
    if found is None:
        return None
    blurred = cv2.GaussianBlur(grey, (0, 0), max(0.8, BLUR * scale / 2))
    pupil = _finer(blurred, found, scale, np.arange(ANGLES) * (360 / ANGLES))
    sides = np.concatenate(
        [np.linspace(-SIDES, SIDES, ANGLES // 2), 180 + np.linspace(-SIDES, SIDES, ANGLES // 2)]
    )
    coarse = _iris(small, found, sides)
    return None if coarse is None else Eye(pupil, _finer(blurred, coarse, scale, sides))


def _downscale(grey: Grey, scale: float) -> Grey:
    size = round(grey.shape[1] / scale), round(grey.shape[0] / scale)
    small = cv2.resize(grey, size, interpolation=cv2.INTER_AREA)
    return np.asarray(cv2.GaussianBlur(small, (0, 0), BLUR), np.float64)


def _pupil(grey: Grey) -> Circle | None:
    short = min(grey.shape)
    radii = np.arange(max(3, round(PUPILS[0] * short)), round(PUPILS[1] * short) + 3, dtype=np.float64)
    rows, columns = np.mgrid[: grey.shape[0] : 2, : grey.shape[1] : 2]
    margin = radii[0] + 1
    inside = (rows > margin) & (rows < grey.shape[0] - margin) & (columns > margin)
    inside &= columns < grey.shape[1] - margin
    dark = grey[rows, columns] <= np.quantile(grey, 0.25)
    centres = np.stack([columns[inside & dark], rows[inside & dark]], axis=1).astype(np.float64)
    if not len(centres):
        return None
    means = _means(grey, centres, radii, np.arange(ANGLES) * (360 / ANGLES))
    steps = means[:, 2:] - means[:, :-2]
    inner = np.cumsum(means, axis=1)[:, :-2] / np.arange(1, len(radii) - 1)
    score = steps - 0.5 * np.maximum(0, inner - inner.min())
    best, radius = np.unravel_index(score.argmax(), score.shape)
    if steps[best, radius] < EDGE:
        return None
    return _circle(centres[best], radii[radius + 1])


def _iris(grey: Grey, pupil: Circle, angles: Float64[np.ndarray, " a"]) -> Circle | None:
    most = min(IRISES[1] * pupil.radius, LARGEST * min(grey.shape)) + 3
    radii = np.arange(round(IRISES[0] * pupil.radius), most)
    if len(radii) < 4:
        return None
    reach = np.arange(-round(MOVED * pupil.radius), round(MOVED * pupil.radius) + 1)
    across, down = np.meshgrid(reach, reach)
    centres = np.stack([pupil.x + across.ravel(), pupil.y + down.ravel()], axis=1)
    means = _means(grey, centres, radii, angles)
    steps = means[:, 2:] - means[:, :-2]
    best, radius = np.unravel_index(steps.argmax(), steps.shape)
    return _circle(centres[best], radii[radius + 1])


def _circle(centre: Float64[np.ndarray, " 2"], radius: float) -> Circle:
    return Circle(float(centre[0]), float(centre[1]), float(radius))


def _finer(grey: Grey, found: Circle, scale: float, angles: Float64[np.ndarray, " a"]) -> Circle:
    x, y = (found.x + 0.5) * scale - 0.5, (found.y + 0.5) * scale - 0.5
    reach, radius = np.arange(-round(2 * scale), round(2 * scale) + 1), found.radius * scale
    across, down = np.meshgrid(reach, reach)
    centres = np.stack([x + across.ravel(), y + down.ravel()], axis=1)
    radii = np.arange(max(2.0, radius - 2 * scale - 1), radius + 2 * scale + 2)
    means = _means(grey, centres, radii, angles)
    steps = means[:, 2:] - means[:, :-2]
    best, place = np.unravel_index(steps.argmax(), steps.shape)
    return _circle(centres[best], radii[place + 1])


def _means(
    grey: Grey,
    centres: Float64[np.ndarray, "n 2"],
    radii: Float64[np.ndarray, " r"],
    angles: Float64[np.ndarray, " a"],
) -> Float64[np.ndarray, "n r"]:
    """Return the mean levels along circles; outside of the picture its edge goes on."""
    turn = np.radians(angles)
    out = np.empty((len(centres), len(radii)))
    for place, radius in enumerate(radii):
        columns = _places(centres[:, :1] + radius * np.cos(turn), grey.shape[1])
        rows = _places(centres[:, 1:] + radius * np.sin(turn), grey.shape[0])
        out[:, place] = grey[rows, columns].mean(axis=1)
    return out


def _places(at: Float64[np.ndarray, "n a"], size: int) -> Int64[np.ndarray, "n a"]:
    return np.asarray(np.rint(at).astype(np.int64).clip(0, size - 1))


SHEET: Final = (16, 240)
"""Rows, from the pupil to the white, and columns around: four bits each make 64 of a column."""
WAVES: Final = (14.0, 28.0)  # wavelengths of the filters, in columns
SIGMA: Final = 0.5
"""Bandwidth of the filters: the standard deviation of the logarithm of the frequency (Masek 2003)."""
WEAK: Final = 0.25  # share of the phases whose filters answer least, which are masked: noise flips them
SHIFTS: Final = 10  # most columns by which a code is shifted: 15 degrees to each side
TYPICAL: Final = 911 / 2048
"""Share of the bits that usually count, on which distances are normalised (Daugman 2007, equation 4)."""
BRIGHT: Final = 1.35  # what is lighter than so many medians of the iris is a reflection, or a lid
DARK: Final = 0.45
LIDS: Final = ((55.0, 125.0), (235.0, 305.0))
"""Degrees, clockwise from the right, of the lower and the upper part, of which lids cover the outer half."""
FREE: Final = 0.45  # share of the sheet, from the pupil, that lids leave


@dataclass(frozen=True, eq=False)
class Code:
    """Two bits of each filter's phase at each place of the sheet, and which of them count.

    Both are packed: 64 bits for each column of the sheet.
    """

    bits: UInt64[np.ndarray, 240]
    mask: UInt64[np.ndarray, 240]


def sheet(image: UInt8[np.ndarray, "h w c"], found: Eye) -> Float64[np.ndarray, "16 240"]:
    """Return the iris unrolled between its two circles, which need not have one middle (Daugman 2004, §3)."""
    grey = np.asarray(image, np.float32).mean(axis=2)
    depth = ((np.arange(SHEET[0]) + 0.5) / SHEET[0])[:, None]
    turn = 2 * np.pi * (np.arange(SHEET[1]) + 0.5) / SHEET[1]
    x, y = (
        (1 - depth) * (inner + found.pupil.radius * way) + depth * (outer + found.iris.radius * way)
        for inner, outer, way in (
            (found.pupil.x, found.iris.x, np.cos(turn)),
            (found.pupil.y, found.iris.y, np.sin(turn)),
        )
    )
    return np.asarray(
        cv2.remap(grey, x.astype(np.float32), y.astype(np.float32), cv2.INTER_LINEAR), np.float64
    )


def code(image: UInt8[np.ndarray, "h w c"], found: Eye) -> Code:
    """Return the iris code of an eye: signs of the real and the imaginary part of log-Gabor filters.

    Lids and reflections do not count, nor the places where a filter answers least.
    Source: Daugman 2004, equation 3; Masek 2003, §3.4, for the filters.
    """
    unrolled = sheet(image, found)
    seen = _iris_mask(unrolled)
    filled = np.where(seen, unrolled, np.median(unrolled[seen]) if seen.any() else 0.0)
    spectrum = np.fft.fft(filled - filled.mean(axis=1, keepdims=True), axis=1)
    frequency = np.fft.fftfreq(SHEET[1])
    bits, masks = [], []
    for wave in WAVES:
        gain = np.zeros(SHEET[1])
        ahead = frequency > 0
        gain[ahead] = np.exp(-(np.log(frequency[ahead] * wave) ** 2) / (2 * SIGMA**2))
        answer = np.fft.ifft(spectrum * gain, axis=1)
        strong = np.abs(answer) >= np.quantile(np.abs(answer)[seen] if seen.any() else [0.0], WEAK)
        bits += [answer.real > 0, answer.imag > 0]
        masks += [seen & strong] * 2
    return Code(_pack_bits(bits), _pack_bits(masks))


def _pack_bits(planes: Sequence[Bool[np.ndarray, "16 240"]]) -> UInt64[np.ndarray, 240]:
    return np.ascontiguousarray(np.packbits(np.concatenate(planes).T, axis=1)).view(np.uint64)[:, 0]


def _iris_mask(unrolled: Float64[np.ndarray, "16 240"]) -> Bool[np.ndarray, "16 240"]:
    middle = np.median(unrolled)
    out = (unrolled < BRIGHT * middle) & (unrolled > DARK * middle)
    degrees = 360 * (np.arange(SHEET[1]) + 0.5) / SHEET[1]
    for least, most in LIDS:
        out[round(FREE * SHEET[0]) :, (degrees >= least) & (degrees <= most)] = False
    return np.asarray(out)


def distance(one: Code, others: Sequence[Code]) -> Float64[np.ndarray, " n"]:
    """Return the normalised Hamming distances of a code to others, the least over shifts.

    It is 0 for equal codes, and for two irises 0.5 or, for the least of several shifts, less.
    Source: Daugman 2004, equation 4; Daugman 2007, equation 4, for the number of bits.
    """
    bits, masks = (np.stack([getattr(other, name) for other in others]) for name in ("bits", "mask"))
    best, most = np.full(len(others), 0.5), 64 * SHEET[1]
    for shift in range(-SHIFTS, SHIFTS + 1):
        both = masks & np.roll(one.mask, shift)
        differ = (bits ^ np.roll(one.bits, shift)) & both
        count, wrong = (np.bitwise_count(part).sum(axis=1, dtype=np.int64) for part in (both, differ))
        share = wrong / np.maximum(1, count)
        best = np.minimum(best, 0.5 - (0.5 - share) * np.sqrt(count / (TYPICAL * most)))
    return best


Image = UInt8[np.ndarray, "h w c"]
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


SPREAD: Final = 1.5  # standard deviation of the window over which shown pixels are averaged, in pixels
SHARE: Final = 0.1  # share of a picture that one level takes at least, so that it is taken for paint
LEAST: Final = 1e-3  # least weight of shown pixels around one that is filled


def fill_commonest(image: Image) -> Image:
    """Return a picture with its most frequent level, in each channel, filled by means of pixels around.

    That is taken for paint, if it takes a tenth of the picture: Snow's level tells which pixels it shows
    (Reilly & Fan 2021, algorithm 4).
    """
    return np.stack([_plane(np.ascontiguousarray(one)) for one in np.moveaxis(image, 2, 0)], axis=2)


def _plane(levels: UInt8[np.ndarray, "h w"]) -> UInt8[np.ndarray, "h w"]:
    counts = np.bincount(levels.ravel(), minlength=256)
    paint = int(counts.argmax())
    if not SHARE <= counts[paint] / levels.size < 1:
        return levels
    shown = (levels != paint).astype(np.float32)
    sums = cv2.GaussianBlur(levels * shown, (0, 0), SPREAD)
    weight = cv2.GaussianBlur(shown, (0, 0), SPREAD)
    found = np.where(weight > LEAST, sums / np.maximum(weight, LEAST), paint)
    return np.where(shown > 0, levels, np.rint(found)).astype(np.uint8)
