"""From a decoded frame to upright RGB levels: matrix, range, depth, turn, square pixels, transparency."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Final

import cv2
import numpy as np
from jaxtyping import UInt8

from dpveil.video.source import Source

MATRICES: Final = {1: 1, 4: 4, 5: 5, 6: 5, 7: 7, 9: 9}
"""FFmpeg's number of the matrix of a frame (ITU-T H.273), and swscale's for it."""
UNSTATED: Final = (2, 3)
RGB: Final = 0
HIGH: Final = (576, 1024)
"""A higher or wider picture that does not state its matrix has that of BT.709, as players take it."""
HDR: Final = {16: "PQ", 18: "HLG"}
"""Transfer functions of pictures that have brighter things than a sheet of white paper (ITU-R BT.2100)."""
BT709, BT2020, UNKNOWN = 1, 9, 2
FULL, LIMITED = 2, 1
MOST_ASPECT: Final = 4
"""A pixel that is longer than this many times its other side is a lie."""


@dataclass(frozen=True)
class Look:
    """What all frames of a clip share: size, format, display matrix, colours, and whether they are fields."""

    width: int
    height: int
    pixels: str
    turn: bytes
    aspect: Fraction
    matrix: int
    limited: bool
    fields: bool
    hdr: str = ""


def look_of(frame: Any, turn: bytes, aspect: Fraction | None, source: Source, most: int) -> Look:
    """Return the look of a decoded frame; raises `ClipError` for one that cannot be converted faithfully.

    `turn` is its display matrix as `turn_of` returns it, `aspect` the ratio of a pixel's width to its height,
    and `most` the largest number of pixels.
    """
    check_size(frame.width, frame.height, source, most)
    matrix, hdr = frame.colorspace, HDR.get(frame.color_trc, "")
    if matrix in UNSTATED:
        large = frame.height > HIGH[0] or frame.width > HIGH[1]
        matrix = BT2020 if hdr else BT709 if large else 6
    if matrix != RGB and matrix not in MATRICES:
        raise source.refused("its colours are coded in a way that dpveil does not read", "save it as H.264")
    name = frame.format.name
    full = frame.color_range == FULL or name.startswith("yuvj")
    full |= frame.color_range == 0 and (frame.format.is_rgb or name.startswith("gray"))
    return Look(
        width=frame.width,
        height=frame.height,
        pixels=name,
        turn=turn,
        aspect=_aspect(aspect, source),
        matrix=matrix,
        limited=not full,
        fields=bool(frame.interlaced_frame),
        hdr=hdr,
    )


def check_size(width: int, height: int, source: Source, most: int) -> None:
    """Raise `ClipError` if frames of this size have more than `most` pixels."""
    if width * height > most:
        problem = f"its frames have {width}×{height} pixels, above the limit of {most:,}"
        raise source.refused(problem, "make them smaller")


def turn_of(frame: Any) -> bytes:
    """Return a frame's display matrix, as FFmpeg stores it; empty if it has none."""
    found = frame.side_data.get("DISPLAYMATRIX")
    return b"" if found is None else bytes(found)


def _aspect(aspect: Fraction | None, source: Source) -> Fraction:
    if not aspect:
        return Fraction(1)
    if not Fraction(1, MOST_ASPECT) <= aspect <= MOST_ASPECT:
        raise source.refused("its pixels are not nearly square", "save it with square pixels")
    return Fraction(aspect)


class Upright:
    """Converts frames of one look; `width` and `height` are those of what it returns.

    Levels are rounded to the nearest; swscale's quick conversion makes them darker by one. HDR becomes SDR as
    it is seen up to its white (203 cd/m², ITU-R BT.2408); what is brighter is white.
    """

    def __init__(self, look: Look, source: Source, most: int) -> None:
        from av.video.reformatter import Interpolation, VideoReformatter

        self._look = look
        self._exact = Interpolation.BILINEAR | Interpolation.ACCURATE_RND | Interpolation.FULL_CHR_H_INT
        self._to_rgb = VideoReformatter()
        self._size = _square(look)
        self._turned = _flips(look.turn, source)
        self.width, self.height = self._size[::-1] if self._turned[0] else self._size
        check_size(self.width, self.height, source, most)
        self._alpha = bool(_has_alpha(look.pixels))

    def image(self, frame: Any) -> UInt8[np.ndarray, "h w 3"]:
        """Return the upright levels of a frame, read-only; what is transparent is shown on black."""
        look, (width, height) = self._look, self._size
        if look.hdr and frame.color_primaries == UNKNOWN:
            frame.color_primaries = BT2020
        plain = self._to_rgb.reformat(
            frame,
            width,
            height,
            "rgba" if self._alpha else "rgb24",
            dst_colorspace=BT709 if look.hdr else None,
            dst_color_trc=BT709 if look.hdr else None,
            dst_color_primaries=BT709 if look.hdr else None,
            src_colorspace=MATRICES.get(look.matrix, 5),
            src_color_range=LIMITED if look.limited else FULL,
            dst_color_range=FULL,
            interpolation=self._exact,
            threads=1,
        )
        levels = _levels(plain, 4 if self._alpha else 3)
        if self._alpha:
            levels = (levels[:, :, :3].astype(np.uint16) * levels[:, :, 3:] // 255).astype(np.uint8)
        levels = np.ascontiguousarray(_turned(levels, self._turned))
        levels.flags.writeable = False
        return levels


def _levels(frame: Any, channels: int) -> UInt8[np.ndarray, "h w c"]:
    """Return the levels of a packed frame without copying; they keep the frame alive."""
    plane = frame.planes[0]
    rows = np.frombuffer(plane, np.uint8).reshape(plane.height, plane.line_size)
    return rows[:, : channels * plane.width].reshape(plane.height, plane.width, channels)


def _has_alpha(pixels: str) -> bool:
    from av.video.format import VideoFormat

    return any(part.is_alpha for part in VideoFormat(pixels).components) or pixels == "pal8"


def _square(look: Look) -> tuple[int, int]:
    """Return the size with square pixels: the shorter side of a pixel is stretched, so nothing is lost."""
    if look.aspect >= 1:
        return round(look.width * look.aspect), look.height
    return look.width, round(look.height / look.aspect)


def _flips(turn: bytes, source: Source) -> tuple[bool, bool, bool]:
    """Return whether to swap rows and columns, then to mirror left and right, then top and bottom.

    `turn` is FFmpeg's display matrix: nine signed numbers a b u, c d v, x y w; a point goes to
    (a·x + c·y, b·x + d·y).
    """
    if len(turn) < 36:
        return False, False, False
    a, b, _, c, d, *_ = np.frombuffer(turn[:36], np.int32).astype(float)
    scale = max(abs(a), abs(b), abs(c), abs(d)) / 100
    if max(abs(b), abs(c)) < scale <= 50 * min(abs(a), abs(d)):
        return False, bool(a < 0), bool(d < 0)
    if max(abs(a), abs(d)) < scale <= 50 * min(abs(b), abs(c)):
        return True, bool(c < 0), bool(b < 0)
    raise source.refused("its pictures are turned by an angle other than 90, 180 or 270°", "save it upright")


def _turned(levels: np.ndarray, flips: tuple[bool, bool, bool]) -> np.ndarray:
    swap, across, down = flips
    if swap:
        levels = cv2.transpose(levels)
    if across or down:
        levels = cv2.flip(levels, -1 if across and down else int(across))
    return levels
