"""What drawn data sets have in common: numbers in place of files."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from jaxtyping import Float64
from scipy.special import ndtri

from dpveil.bench.items import Item, digest_of
from dpveil.core.photo import Photo
from dpveil.noise.bits import BitSource, SeededBits

MOST: Final = (10_000, 100)
"""The most subjects, and photos of each."""


@dataclass(frozen=True)
class DrawnItem(Item):
    """A photo that is drawn: what `number` names stays the same, and the rest varies by `photo`."""

    kind: ClassVar[str]
    """What the data set is called, on the command line, too."""
    usual: ClassVar[tuple[int, int]]
    """Subjects, and photos of each, unless it is said."""
    subject: ClassVar[str]
    """What the photos show: faces, eyes, plates or scenes."""
    summary: ClassVar[str]

    number: int
    photo: int

    @classmethod
    def of(cls, number: int, photo: int) -> DrawnItem:
        """Return a photo of the subject with this number."""
        return cls(f"{number:04}", f"{number:04}/{photo:02}", number, photo)

    @property
    def own(self) -> SeededBits:
        """Public bits of the subject."""
        return SeededBits(self.number, self.kind)

    @property
    def moment(self) -> SeededBits:
        """Public bits of the photo alone."""
        return SeededBits(self.number * MOST[1] + self.photo, f"photo of {self.kind}")

    @abstractmethod
    def read(self) -> Photo:
        """Return the photo, the same in every run."""

    @property
    def digest(self) -> str:
        """A hash of the drawing's code and numbers."""
        return digest_of(f"{_code()} {self.kind} {self.number} {self.photo}")


@cache
def _code() -> str:
    """Return a hash of the code that draws."""
    from dpveil.faces.drawn.gallery import DrawnGallery

    files = sorted(Path(__file__).parent.glob("*.py"))
    return digest_of(" ".join([DrawnGallery().digest, *(one.read_text(encoding="utf-8") for one in files)]))


def shares(bits: BitSource, count: int) -> Float64[np.ndarray, " n"]:
    """Return numbers between 0 and 1, neither of which is one."""
    return ((bits.words(count) >> np.uint64(12)).astype(np.float64) + 0.5) / 2.0**52


def normals(bits: BitSource, *shape: int) -> Float64[np.ndarray, ...]:
    """Return normal numbers, which are not for privacy."""
    return np.asarray(ndtri(shares(bits, int(np.prod(shape)))).reshape(shape))


def levels(image: Float64[np.ndarray, "h w c"], bits: BitSource, grain: float) -> Photo:
    """Return a photo of these levels with a camera's noise, of `grain` levels' standard deviation."""
    noisy = image + grain * normals(bits, *image.shape)
    return Photo(np.rint(noisy.clip(0, 255)).astype(np.uint8))
