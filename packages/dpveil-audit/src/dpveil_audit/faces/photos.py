"""Synthetic photos for the audits of growth and recombination: scenes, hidden contents, encoded files."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any, Final

import cv2
import numpy as np
from jaxtyping import Bool, UInt8
from PIL import Image

from dpveil.core.photo import Photo
from dpveil.core.region import Region
from dpveil.io import read_bytes
from dpveil.noise.bits import BitSource
from dpveil_audit.engine import Audit, Bits, Check, Level

Pixels = UInt8[np.ndarray, "h w c"]
Places = Bool[np.ndarray, "h w"]

SEES: Final = "one pixel by one level"
SAMPLINGS: Final = {"4:4:4": 0, "4:2:2": 1, "4:2:0": 2}
"""Chroma subsampling, as Pillow's option."""
FACTORS: Final = {"4:4:0": 0x121111, "4:1:1": 0x411111}
"""Subsampling that Pillow cannot write, as OpenCV's option."""
STORED: Final = {
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}
"""How the upright picture is transformed before it is stored with this orientation (EXIF 2.32, tag
0x0112).
"""
TIFF: Final = b"II*\0\x08\0\0\0\x01\0\x12\x01\x03\0\x01\0\0\0"
"""EXIF with one entry, the orientation, up to its value."""


@dataclass(frozen=True)
class Encoding:
    """The encoding of a synthetic photo; `sampling` is that of chroma, "grey" or "CMYK".

    `turn` is the EXIF orientation; the picture is stored so that it is decoded upright.
    """

    sampling: str = "4:2:0"
    quality: int = 75
    progressive: bool = False
    turn: int = 1
    format: str = "jpeg"

    @property
    def channels(self) -> int:
        """The number of channels of the photo."""
        return 1 if self.sampling == "grey" else 3

    def file(self, upright: Pixels) -> bytes:
        """Return the bytes of the file."""
        picture = Image.fromarray(upright.squeeze(2) if upright.shape[2] == 1 else upright)
        picture = picture.convert("CMYK") if self.sampling == "CMYK" else picture
        picture = picture.transpose(STORED[self.turn]) if self.turn in STORED else picture
        exif = b"Exif\0\0" + TIFF + self.turn.to_bytes(4, "little") + bytes(4)
        if self.sampling in FACTORS:
            return _with(exif, self._by_opencv(np.asarray(picture)))
        options: dict[str, Any] = {"quality": self.quality}
        if self.format == "webp":
            options["exif"] = exif
        elif self.sampling in SAMPLINGS:
            options |= {"subsampling": SAMPLINGS[self.sampling]}
        buffer = BytesIO()
        picture.save(buffer, self.format, progressive=self.progressive, **options)
        data = buffer.getvalue()
        return data if self.format == "webp" else _with(exif, data)

    def _by_opencv(self, levels: np.ndarray) -> bytes:
        options = [cv2.IMWRITE_JPEG_SAMPLING_FACTOR, FACTORS[self.sampling]]
        options += [
            cv2.IMWRITE_JPEG_QUALITY,
            self.quality,
            cv2.IMWRITE_JPEG_PROGRESSIVE,
            int(self.progressive),
        ]
        _, contents = cv2.imencode(".jpg", cv2.cvtColor(levels, cv2.COLOR_RGB2BGR), options)
        return bytes(contents.tobytes())

    def photo(self, upright: Pixels) -> Photo:
        """Return the photo as dpveil decodes it from the file."""
        return read_bytes(self.file(upright), "made photo")

    def __str__(self) -> str:
        name = "WebP" if self.format == "webp" else f"JPEG {self.sampling}"
        more = (", progressive" if self.progressive else "") + (
            f", turn {self.turn}" if self.turn > 1 else ""
        )
        return f"{name}, quality {self.quality}{more}"


def _with(exif: bytes, jpeg: bytes) -> bytes:
    return jpeg[:2] + b"\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif + jpeg[2:]


def noise(bits: BitSource, height: int, width: int, channels: int) -> Pixels:
    """Return uniform levels."""
    count = height * width * channels
    return bits.words(-(-count // 8)).view(np.uint8)[:count].reshape(height, width, channels)


def scene(bits: BitSource, height: int, width: int, channels: int) -> Pixels:
    """Return a picture of flat patches and noise."""
    patches = noise(bits, -(-height // 7), -(-width // 7), channels).repeat(7, 0).repeat(7, 1)
    rough = noise(bits, height, width, channels) // 4
    made: Pixels = (patches[:height, :width] // 4 * 3 + rough).astype(np.uint8)
    return made


def places(regions: Sequence[Region], height: int, width: int) -> Places:
    """Return which pixels the regions cover."""
    inside = np.zeros((height, width), np.bool_)
    for region in regions:
        view = inside[region.box.slices]
        view |= True if region.mask is None else region.mask
    return inside


def neighbours(image: Pixels, inside: Places, bits: BitSource) -> Iterator[tuple[str, Pixels]]:
    """Yield photos that differ from `image` only inside, as much and as irregularly as possible, by name."""
    height, width, channels = image.shape
    y, x = np.mgrid[:height, :width]
    odd = ((x + y) % 2)[..., None]
    red = np.array([255, 0, 0][-channels:], np.uint8)
    ring = inside & ~cv2.erode(inside.astype(np.uint8), np.ones((3, 3), np.uint8)).astype(np.bool_)
    contents = {
        "inverted": 255 - image,
        "red and cyan by pixels": np.where(odd, red, 255 - red).astype(np.uint8),
        "noise": noise(bits, height, width, channels),
        "black": np.zeros_like(image),
        "white": np.full_like(image, 255),
        "red and cyan by columns": np.where(x[..., None] % 2, red, 255 - red).astype(np.uint8),
        "red": np.broadcast_to(red, image.shape),
        "cyan": np.broadcast_to(255 - red, image.shape),
    }
    for name, levels in contents.items():
        yield name, np.where(inside[..., None], levels, image).astype(np.uint8)
    for name, level in (("edge in black", 0), ("edge in white", 255)):
        yield name, np.where(ring[..., None], level, image).astype(np.uint8)
    for name, at in (("first pixel", 0), ("last pixel", -1)):
        one = image.copy()
        place = np.unravel_index(np.flatnonzero(inside)[at], inside.shape)
        one[place] = np.where(image[place] < 128, 255, 0)
        yield name, one


@dataclass(frozen=True, kw_only=True)
class PhotoAudit(Audit):
    """The audit of a step around a draw; `made` makes the photos of a case, once."""

    made: Callable[[Any, Bits], Any]

    def checks(self, level: Level[Any, Any], bits: Bits) -> Iterable[Check]:
        """Yield every gate with every setting."""
        return super().checks(Level(tuple(self.made(case, bits) for case in level.exact)), bits)
