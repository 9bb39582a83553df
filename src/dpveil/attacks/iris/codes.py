"""Iris codes: phases of a rubber sheet, with a mask, compared bit by bit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import cv2
import numpy as np

from dpveil.attacks.base import CONTEXT, PIXELS, Attack, Background, Fitted, Memo, Scores, View
from dpveil.attacks.iris.circles import Eye, eye
from dpveil.attacks.vectors import UNKNOWN, check_people
from dpveil.core.arrays import Bool, Float64, UInt8, UInt64

SHEET: Final = (16, 240)
"""Rows, from the pupil to the white, and columns around: four bits each make 64 of a column."""
WAVES: Final = (14.0, 28.0)
"""Wavelengths of the filters, in columns."""
SIGMA: Final = 0.5
"""Bandwidth of the filters: the standard deviation of the logarithm of the frequency (Masek 2003)."""
WEAK: Final = 0.25
"""Share of the phases whose filters answer least, which are masked: noise flips them."""
SHIFTS: Final = 10
"""Most columns by which a code is shifted: 15 degrees to each side."""
TYPICAL: Final = 911 / 2048
"""Share of the bits that usually count, on which distances are normalised (Daugman 2007, equation 4)."""
BRIGHT: Final = 1.35
"""What is lighter than so many medians of the iris is a reflection, or a lid."""
DARK: Final = 0.45
LIDS: Final = ((55.0, 125.0), (235.0, 305.0))
"""Degrees, clockwise from the right, of the lower and the upper part, of which lids cover the outer half."""
FREE: Final = 0.45
"""Share of the sheet, from the pupil, that lids leave."""


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
    seen = _seen(unrolled)
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
    return Code(_packed(bits), _packed(masks))


def _packed(planes: Sequence[Bool[np.ndarray, "16 240"]]) -> UInt64[np.ndarray, 240]:
    return np.ascontiguousarray(np.packbits(np.concatenate(planes).T, axis=1)).view(np.uint64)[:, 0]


def _seen(unrolled: Float64[np.ndarray, "16 240"]) -> Bool[np.ndarray, "16 240"]:
    """Return which places of a sheet show the iris."""
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


FOUND: Final[Memo[Code | None]] = Memo()


@dataclass(frozen=True)
class Iris(Attack):
    """Names the person one of whose irises is nearest: a recogniser as it is, which learns nothing.

    A release in which no pupil is found is a failure. After a median filter, as Reilly & Fan attack Snow, it
    is `denoised:median:3(iris)`. Source: Daugman 1993, 2004, 2007.
    """

    name: ClassVar[str] = "iris"
    summary: ClassVar[str] = "iris code of the eye found, nearest code of a clean photo"
    sees: ClassVar[tuple[str, ...]] = (PIXELS, CONTEXT)

    @property
    def about(self) -> str:
        """What photos have to show: eyes."""
        return "eyes"

    @property
    def enrols(self) -> bool:
        """Whether it can enrol new people: yes, it learns nothing of anybody but codes."""
        return True

    def fit(self, background: Background) -> Fitted:
        """Return the attacker that has everybody's iris codes.

        Raises `InvalidParameter` for a background without two people.
        """
        return _Known.of(background)


@dataclass(frozen=True, eq=False)
class _Known(Fitted):
    names: tuple[str, ...]
    owners: np.ndarray
    codes: tuple[Code, ...]

    @classmethod
    def of(cls, background: Background) -> _Known:
        check_people(background)
        found = [_code(view) for view in background.clean]
        rows = [row for row, one in enumerate(found) if one is not None]
        known = tuple(one for one in found if one is not None)
        return cls(background.names, background.owners[rows], known)

    def enrol(self, gallery: Background) -> Fitted:
        """Return the attacker that has the iris codes of a gallery."""
        return _Known.of(gallery)

    def score(self, releases: Sequence[View]) -> Scores:
        likeness = np.full((len(releases), len(self.names)), np.nan)
        for row, view in enumerate(releases):
            own = _code(view)
            if own is not None and self.codes:
                likeness[row] = UNKNOWN
                np.maximum.at(likeness[row], self.owners, -distance(own, self.codes))
        return Scores(likeness, self.names)


def _code(view: View) -> Code | None:
    """Return the iris code of the eye in a view; None if no pupil is found."""

    def made() -> Code | None:
        found = eye(view.image)
        return None if found is None else code(view.image, found)

    return FOUND(view.image, "", made)
