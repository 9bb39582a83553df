"""The network that finds text: PP-OCRv6 (DB, arXiv 1911.08947), from the wheel of the package rapidocr.

Nothing of that package is imported, so nothing of it can download anything.
"""

from __future__ import annotations

import hashlib
import math
import threading
from functools import lru_cache
from importlib.util import find_spec
from pathlib import Path
from typing import Final

import numpy as np
from jaxtyping import Float, UInt8

from dpveil.assets.engines import fastest
from dpveil.errors import RegionError, UsageError

INSTALL: Final = "pip install 'dpveil[text]'"
FILE: Final = "PP-OCRv6_det_small.onnx"
SHA256: Final = "090f04abcd9d9a7498bc4ebf677e4cb9bdce1fe4197ddb7e529f1ef44e1ff94f"
"""The checksum of the file in rapidocr 3.10."""
MULTIPLE: Final = 32
"""The image's sides are padded to multiples of this, as the network halves them five times."""
LEAST: Final = 0.3
"""Least level of the network's map at a pixel of text (thresh of rapidocr)."""
WIDER: Final = 1.6
"""How much wider than what the network marks a text is (unclip_ratio of rapidocr; DB section 3.5)."""
THIN: Final = 3
"""Least shorter side of what is marked, in pixels (min_size of rapidocr)."""
REMEDY: Final = "give boxes instead, or protect the whole photo"


class TextNetwork:
    """Finds lines of text in an image, at any angle; may be called from several threads."""

    def __init__(self, contents: bytes) -> None:
        self._net, self._lock = fastest(contents)(contents), threading.Lock()

    def __call__(self, image: UInt8[np.ndarray, "h w 3"], threshold: float) -> Float[np.ndarray, "n 5"]:
        """Return left, top, width, height (pixels) and score of what scores at least `threshold`.

        `image` has sRGB levels 0..255. Raises `RegionError` if the network fails or gives anything but a map
        of finite numbers.
        """
        height, width = image.shape[:2]
        pad = ((0, -height % MULTIPLE), (0, -width % MULTIPLE), (0, 0))
        padded = np.pad(image[..., ::-1], pad, mode="edge").astype(np.float32) / 127.5 - 1
        try:
            with self._lock:
                (heat,) = self._net(np.ascontiguousarray(padded.transpose(2, 0, 1)[None]))
        except Exception as error:
            raise RegionError(f"the search for text failed ({type(error).__name__})", hint=REMEDY) from error
        if heat.shape != (1, 1, *padded.shape[:2]) or not np.isfinite(heat).all():
            raise RegionError("the network for text gave something that is no map of it", hint=REMEDY)
        return decode(heat[0, 0, :height, :width], threshold)


def decode(heat: Float[np.ndarray, "h w"], threshold: float) -> Float[np.ndarray, "n 5"]:
    """Return the upright boxes around what a map marks as text, with their mean levels as scores.

    Each is the box around the smallest rectangle at any angle, which is widened (DB section 3.5).
    """
    import cv2

    marked = cv2.dilate((heat > LEAST).astype(np.uint8), np.ones((2, 2), np.uint8))
    outlines, _ = cv2.findContours(marked, cv2.RETR_EXTERNAL, cv2.CHAIN_APPROX_SIMPLE)
    found = [row for outline in outlines if (row := _row(heat, outline, threshold))]
    return np.array(found, np.float64).reshape(-1, 5)


def _row(heat: Float[np.ndarray, "h w"], outline: np.ndarray, threshold: float) -> list[float]:
    """Return the box and score of what is in an outline; nothing if it is too thin or scores too little."""
    import cv2

    middle, (across, down), angle = cv2.minAreaRect(outline)
    if min(across, down) < THIN:
        return []
    left, top, width, height = cv2.boundingRect(outline)
    inner = np.zeros((height, width), np.uint8)
    cv2.drawContours(inner, [outline], -1, 1, cv2.FILLED, offset=(-left, -top))
    score = float(heat[top : top + height, left : left + width][inner > 0].mean())
    if score < threshold:
        return []
    more = WIDER * across * down / (across + down)
    corners = cv2.boxPoints((middle, (across + more, down + more), angle))
    start, stop = corners.min(axis=0), corners.max(axis=0)
    return [*map(float, start), *map(float, stop - start), min(1.0, score)]


def network() -> TextNetwork:
    """Return the network, loaded once per process.

    Raises `UsageError` with an install hint if it is not installed, or is another one.
    """
    path = network_path()
    if path is None:
        raise UsageError("what finds text is not installed", hint=INSTALL)
    found = path.stat()
    return _network(path, found.st_mtime_ns, found.st_size)


@lru_cache(maxsize=1)
def _network(path: Path, modified: int, size: int) -> TextNetwork:
    contents = path.read_bytes()
    if hashlib.sha256(contents).hexdigest() != SHA256:
        hint = f"{INSTALL}, in the version that dpveil's constraints name"
        raise UsageError("the network for text is not the one that dpveil was tested with", hint=hint)
    return TextNetwork(contents)


def network_path() -> Path | None:
    """Return the network's file in the installed package rapidocr, which is not imported; None without it."""
    spec = find_spec("rapidocr")
    places = (spec.submodule_search_locations if spec else None) or ()
    paths = (Path(place) / "models" / FILE for place in places)
    return next((path for path in paths if path.is_file()), None)


def parts(length: int, side: int, overlap: int) -> list[tuple[int, int]]:
    """Return the ends of equal parts of an axis, of at most `side` pixels, that overlap by `overlap`.

    >>> parts(100, 60, 10)
    [(0, 60), (40, 100)]
    """
    if length <= side:
        return [(0, length)]
    count = math.ceil((length - overlap) / (side - overlap))
    starts = [round(n * (length - side) / (count - 1)) for n in range(count)]
    return [(start, start + side) for start in starts]
