"""A setting of a benchmark: a method with its parameters, and what an adversary sees of its releases."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final, TypeAlias

import numpy as np

from dpveil.accounting import compose
from dpveil.attacks.base import View
from dpveil.bench.items import Item
from dpveil.core.guarantee import Guarantee
from dpveil.core.rationals import Json
from dpveil.errors import RegionError
from dpveil.mechanisms.method import Method
from dpveil.noise.bits import SeededBits
from dpveil.release.plan import Plan, plan

BOX: Final = re.compile(r"\d{1,6}(,\d{1,6}){3}")  # a region of every photo: x, y, width and height in pixels
NOTHING: Final = "nothing"
"""The name of the setting in which photos are shown as they are: it says how strong an attacker is."""
Shown: TypeAlias = tuple[View, Guarantee | None] | None
"""What an adversary sees of one photo, and what that promises; None for no release."""


@dataclass(frozen=True)
class Setting:
    """A method, None for showing photos as they are, and the regions that it replaces.

    By default these are faces for methods that draw faces, and else the whole photo. `after` are steps of
    post-processing, such as "median:3". An adversary gets `releases` of each photo, which differ in their
    bits alone.
    """

    method: Method | None
    regions: str | None = None
    after: tuple[str, ...] = ()
    releases: int = 1

    @property
    def name(self) -> str:
        return NOTHING if self.method is None else self.method.name

    @property
    def parameters(self) -> dict[str, Json]:
        """Every parameter of the method, and of this setting what is not usual."""
        own = {} if self.method is None else dict(self.method.parameters())
        own |= {} if self.regions is None else {"regions": self.regions}
        own |= {"after": list(self.after)} if self.after else {}
        return own | ({"releases": self.releases} if self.releases > 1 else {})

    def adversary_view(self, item: Item, seed: int) -> Shown:
        """Return what an adversary sees of a photo, and the guarantee of all of it; None for no release.

        Nothing is released of a photo in which no region is found. The bits are a function of seed, photo,
        setting and the number of the release alone.
        """
        photo = item.read()
        if self.method is None:
            nowhere = np.zeros(photo.image.shape[:2], np.bool_)
            return View(photo.image, nowhere), None
        try:
            own = "faces" if self.method.draws_faces else "whole"
            planned = plan(photo, self.method, regions=self.regions or own, post_processing=self.after)
        except RegionError:
            return None
        name = f"{item.name} {self.method!r} {self.regions}"
        labels = [name, *(f"{name} again {number}" for number in range(1, self.releases))]
        first, *more = (_view(planned, SeededBits(seed, label)) for label in labels)
        total = None if planned.total is None else compose([planned.total] * self.releases)
        return replace(first, more=tuple(more)), total

    def all_shown(self, items: Sequence[Item], seed: int) -> Iterator[Shown]:
        """Yield `adversary_view` of every photo."""
        for item in items:
            yield self.adversary_view(item, seed)


def can_be_regions(text: object) -> bool:
    """Whether a benchmark can take these regions: a mask is a file of whoever made the run.

    >>> can_be_regions(None), can_be_regions("faces"), can_be_regions("1,2,3,4"), can_be_regions("mask.png")
    (True, True, True, False)
    """
    return text in (None, "whole", "faces") or (type(text) is str and BOX.fullmatch(text) is not None)


def _view(planned: Plan, bits: SeededBits) -> View:
    release = planned.release(bits=bits)
    hidden = np.zeros(release.image.shape[:2], np.bool_)
    for region in planned.regions:
        hidden[region.box.slices] |= True if region.mask is None else region.mask
    certificate: Mapping[str, Json] = release.certificate.to_json()
    return View(release.image, hidden, certificate)
