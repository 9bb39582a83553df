"""Photos that are drawn by dpveil's own code, so that a benchmark runs without any data."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar, Final

import numpy as np
from scipy.special import ndtri

from dpveil.bench.items import Item, digest_of
from dpveil.core.array_types import Float64
from dpveil.core.photo import Photo
from dpveil.faces.drawn_face import HeadFace, portrait
from dpveil.faces.geometry.cell import YAW
from dpveil.faces.head_gallery import default_heads
from dpveil.noise.bits import BitSource, SeededBits

MOST_SUBJECTS_AND_PHOTOS: Final = (10_000, 100)  # the most subjects, and photos of each


@dataclass(frozen=True)
class DrawnItem(Item):
    """A photo that is drawn: what `number` names stays the same, and the rest varies by `photo`."""

    kind: ClassVar[str]
    """What the data set is called, on the command line, too."""
    usual: ClassVar[tuple[int, int]]
    """Subjects, and photos of each, unless it is said."""
    summary: ClassVar[str]

    number: int
    photo: int

    @classmethod
    def of(cls, number: int, photo: int) -> DrawnItem:
        return cls(f"{number:04}", f"{number:04}/{photo:02}", number, photo)

    @property
    def subject_bits(self) -> SeededBits:
        """Public bits of the subject."""
        return SeededBits(self.number, self.kind)

    @property
    def moment(self) -> SeededBits:
        """Public bits of the photo alone."""
        return SeededBits(self.number * MOST_SUBJECTS_AND_PHOTOS[1] + self.photo, f"photo of {self.kind}")

    @abstractmethod
    def read(self) -> Photo:
        """Return the photo, the same in every run."""

    @property
    def digest(self) -> str:
        """A hash of the drawing's code and numbers."""
        return digest_of(f"{_code()} {self.kind} {self.number} {self.photo}")


@cache
def _code() -> str:
    return digest_of(f"{default_heads().digest} {Path(__file__).read_text(encoding='utf-8')}")


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


PERSON_SIZE: Final = (112, 92)  # rows and columns of a photo: AT&T's
PERSON_ROOM: Final = 16  # pixels around it, within which the head is shifted
LIGHT: Final = (0.75, 1.25)
PERSON_GRAIN: Final = 5.0  # standard deviation of the noise, in grey levels


@dataclass(frozen=True)
class DrawnPerson(DrawnItem):
    """A photo of a rendered head: the person stays, while pose, backdrop, light and place vary.

    There are as many people as heads in the default gallery; larger numbers begin again.
    """

    kind: ClassVar[str] = "drawn"
    usual: ClassVar[tuple[int, int]] = (20, 5)
    summary: ClassVar[str] = "rendered heads; pose, backdrop, light and place vary"

    def read(self) -> Photo:
        gallery = default_heads()
        bits = self.moment
        down, right, light, turn = shares(bits, 4)
        yaw = YAW * (int(3 * turn) - 1)
        person = np.array([self.number % len(gallery)])
        backdrop = int(bits.words(1)[0])
        shown = portrait(
            HeadFace(gallery, person, backdrop, yaw), *(side + PERSON_ROOM for side in PERSON_SIZE)
        )
        top, left = int(down * PERSON_ROOM), int(right * PERSON_ROOM)
        cut = shown[top : top + PERSON_SIZE[0], left : left + PERSON_SIZE[1]].astype(np.float64)
        return levels(cut * (LIGHT[0] + light * (LIGHT[1] - LIGHT[0])), bits, PERSON_GRAIN)


DRAWN: Final[Mapping[str, type[DrawnItem]]] = {DrawnPerson.kind: DrawnPerson}
"""The drawn data sets."""


def draw_items(made: type[DrawnItem], count: int | None, photos: int | None) -> list[DrawnItem]:
    numbers, each = (
        min(asked or usual, most)
        for asked, usual, most in zip((count, photos), made.usual, MOST_SUBJECTS_AND_PHOTOS, strict=True)
    )
    return [made.of(number, photo) for number in range(numbers) for photo in range(each)]
