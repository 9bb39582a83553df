"""One setting of a benchmark: a method with its parameters, or nothing at all, and the releases it makes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np

from dpveil.attacks.base import View
from dpveil.bench.items import Item
from dpveil.core.guarantee import Guarantee
from dpveil.core.numbers import Json
from dpveil.errors import RegionError
from dpveil.io import encode
from dpveil.mechanisms.method import Method
from dpveil.noise.bits import SeededBits
from dpveil.release.plan import plan

NOTHING: Final = "nothing"
"""The name of the setting in which photos are shown as they are: it says how strong an attacker is."""


@dataclass(frozen=True)
class Setting:
    """A method, None for showing photos as they are, and the regions that it replaces, None for its own.

    `after` are steps of post-processing, such as "median:3".
    """

    method: Method | None
    regions: str | None = None
    after: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """The method's name."""
        return NOTHING if self.method is None else self.method.name

    @property
    def parameters(self) -> dict[str, Json]:
        """Every parameter of the method; and the regions and the steps after it, if there are any."""
        own = {} if self.method is None else dict(self.method.parameters())
        own |= {} if self.regions is None else {"regions": self.regions}
        return own | ({"after": list(self.after)} if self.after else {})

    def shown(self, item: Item, seed: int) -> tuple[View, Guarantee | None] | None:
        """Return what an adversary sees of a photo, and the guarantee; None if no region was found in it.

        The bits are a function of seed, photo and setting alone.
        """
        photo = item.read()
        if self.method is None:
            nowhere = np.zeros(photo.image.shape[:2], np.bool_)
            return View(photo.image, nowhere, None, len(encode(photo.image, "png"))), None
        try:
            planned = plan(photo, self.method, regions=self.regions, post_processing=self.after)
        except RegionError:
            return None
        release = planned.release(bits=SeededBits(seed, f"{item.name} {self.method!r} {self.regions}"))
        hidden = np.zeros(photo.image.shape[:2], np.bool_)
        for region in planned.regions:
            hidden[region.box.slices] |= True if region.mask is None else region.mask
        certificate: Mapping[str, Json] = release.certificate.to_json()
        size = len(encode(release.image, "png"))
        return View(release.image, hidden, certificate, size), planned.total


def all_shown(
    setting: Setting, items: Sequence[Item], seed: int
) -> list[tuple[View, Guarantee | None] | None]:
    """Return `Setting.shown` of every photo."""
    return [setting.shown(item, seed) for item in items]
