"""The audit of `fill`: the same picture for every photo, and versions that leak pixels."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.mechanisms.pixel import Fill
from dpveil_audit.divergence import Part, ProductLaw
from dpveil_audit.engine import Drawn, Level
from dpveil_audit.pixel.case import Case, Image, Images, method_audit, one_by_one, version

Shown = Callable[[Fill, Image], Image]


def flat(method: Fill, image: Image) -> Image:
    """Return the documented level, everywhere."""
    return np.full(image.shape, int(method.level), np.uint8)


def certain(shown: Shown) -> Callable[[Fill, Images], ProductLaw]:
    """Return the law of a function of the image: one outcome with probability 1."""

    def distribution(method: Fill, images: Images) -> ProductLaw:
        places = np.array(list(np.ndindex(*images.shape[1:])))
        pictures = np.stack([shown(method, image).ravel() for image in images])
        looks, own = np.unique(pictures, axis=0, return_inverse=True)
        chances = np.full((len(images), len(looks)), Fraction(0), object)
        chances[np.arange(len(images)), own.ravel()] = Fraction(1)
        return ProductLaw.of([chances], [Part(places, looks)])

    return distribution


def _last_column_kept(method: Fill, image: Image) -> Image:
    return np.concatenate([flat(method, image)[:, :-1], image[:, -1:]], axis=1)


WRONG: Final[dict[str, Shown]] = {
    "last column kept": _last_column_kept,
    "the region's own mean": lambda method, image: np.full(image.shape, np.uint8(image.mean())),
}
MUTANTS: Final = tuple(version(name, certain(shown)) for name, shown in WRONG.items())


def level() -> Level:
    black, grey = Fill(level=0), Fill()
    exact = (Case(1, 2, 1, black, (0, 1, 127, 255)), Case(1, 1, 3, grey, (0, 127, 255)), Case(2, 2, 1, grey))
    return Level(exact, (Drawn(Case(2, 3, 3, black), 1_000), Drawn(Case(1, 4, 1, grey), 1_000)))


AUDIT: Final = method_audit(Fill, one_by_one, certain(flat), MUTANTS, level())
