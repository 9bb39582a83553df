"""What is computed of a picture is kept, as several attacks look at the same releases."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from typing import Final, Generic, TypeVar

import numpy as np

MOST: Final = 50_000
"""Most answers that are kept; beyond that, all are forgotten."""
T = TypeVar("T")


class Memo(Generic[T]):
    """Answers of a pure function of an image and a text, by the image's hash; images are not kept."""

    def __init__(self) -> None:
        self._kept: dict[tuple[bytes, str], T] = {}

    def __call__(self, image: np.ndarray, about: str, make: Callable[[], T]) -> T:
        """Return the kept answer about an image, or make and keep it."""
        whole = hashlib.sha256(f"{image.shape} {image.dtype}".encode())
        whole.update(np.ascontiguousarray(image).tobytes())
        key = whole.digest(), about
        if key not in self._kept:
            if len(self._kept) >= MOST:
                self._kept.clear()
            self._kept[key] = make()
        return self._kept[key]
