"""k-same as a setting of a benchmark: photos are released with those of others, a gallery at a time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import ClassVar, Final

import numpy as np

from dpveil.attacks.base import View
from dpveil.bench.items import Item
from dpveil.bench.settings import MOST_RELEASES, Shown
from dpveil.bench.split import Split
from dpveil.core.numbers import Json
from dpveil.errors import InvalidParameter, UsageError
from dpveil.io import encode
from dpveil.mechanisms.ksame import KSame, KSamePixel
from dpveil.noise.bits import SeededBits

METHODS: Final[Mapping[str, type[KSamePixel]]] = {KSamePixel.name: KSamePixel}
"""The methods that release galleries, by name."""
TWO: Final = 2
"""Into so many galleries people are dealt for each release, if there are several."""


@dataclass(frozen=True)
class GallerySetting:
    """A method of galleries, of which each holds one photo of everybody.

    With several `releases`, as of publishers who do not know of each other, people are dealt into two
    galleries for each, by bits of its own. Otherwise it is as `Setting`.
    """

    method: KSame
    releases: int = 1
    regions: ClassVar[None] = None

    @classmethod
    def stated(cls, name: str, parameters: Mapping[str, Json]) -> GallerySetting:
        """Return the setting with the `parameters` of a cell from anybody; raises `InvalidParameter`."""
        given = dict(parameters)
        releases = given.pop("releases", 1)
        if set(given) != {"k"} or type(releases) is not int or not 1 <= releases <= MOST_RELEASES:
            raise InvalidParameter("parameters", None, f"are not those of {name}", hint="run it again")
        return cls(METHODS[name](k=given["k"]), releases)  # type: ignore[arg-type]

    @property
    def name(self) -> str:
        """The method's name."""
        return self.method.name

    @property
    def parameters(self) -> dict[str, Json]:
        """How many share a picture, and the number of releases if there are several."""
        own: dict[str, Json] = {"k": self.method.k}
        return own | ({"releases": self.releases} if self.releases > 1 else {})

    def check(self, parts: Split) -> None:
        """Raise `UsageError` unless all photos have one size, and some galleries enough people."""
        items = [*parts.known, *parts.probes, *parts.strangers]
        sizes = {item.read().image.shape for item in items}
        if len(sizes) > 1:
            problem = f"{self.name} takes photos of one size and number of channels, not of {len(sizes)}"
            raise UsageError(problem, hint="align and crop the faces first")
        least, there = self._least, len({item.person for item in parts.probes})
        if there < least:
            problem = f"{self.name} needs {least} people for k = {self.method.k}, and there are {there}"
            raise UsageError(problem, hint="take a lower k, or more people")

    @property
    def _least(self) -> int:
        return self.method.k * (TWO if self.releases > 1 else 1)

    def all_shown(self, items: Sequence[Item], seed: int) -> Iterator[Shown]:
        """Yield what an adversary sees of each photo, as `Setting.all_shown`; of galleries that are too small
        nothing is released.
        """
        found: list[list[View]] = [[] for _ in items]
        for gallery in _galleries(items):
            if len(gallery) >= self._least:
                name = items[gallery[0]].name  # the attacker's galleries are dealt by other bits
                faces = np.stack([items[place].read().image for place in gallery])
                for release in range(self.releases):
                    bits = SeededBits(seed, f"{self.method!r} {name} release {release}")
                    for place, image in zip(gallery, self._released(faces, bits), strict=True):
                        found[place].append(self._view(image))
        promise = self.method.guarantee(faces=max(self._least, len({item.person for item in items})))
        for views in found:
            yield (replace(views[0], more=tuple(views[1:])), promise) if views else None

    def _released(self, faces: np.ndarray, bits: SeededBits) -> np.ndarray:
        """Return the pictures of one release, in the order of the faces."""
        order = np.argsort(bits.words(len(faces)), kind="stable")
        out = np.empty_like(faces)
        for part in np.array_split(order, TWO if self.releases > 1 else 1):
            out[part] = self.method.release(faces[part], people=[str(face) for face in part]).faces
        return out

    def _view(self, image: np.ndarray) -> View:
        """Return one release with its public settings."""
        certificate: dict[str, Json] = {
            "method": self.name,
            "parameters": {"k": self.method.k},
            "regions": [],
        }
        return View(image, np.ones(image.shape[:2], np.bool_), certificate, len(encode(image, "png")))

    def points(self, items: Sequence[Item]) -> None:
        """Return None: nothing is promised of any distance."""
        return


def _galleries(items: Sequence[Item]) -> list[list[int]]:
    """Return the places of the first photo of everybody, of the second, and so on."""
    found: list[list[int]] = []
    seen: dict[str, int] = {}
    for place, item in enumerate(items):
        number = seen[item.person] = seen.get(item.person, -1) + 1
        if number == len(found):
            found.append([])
        found[number].append(place)
    return found
