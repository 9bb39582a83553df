"""Text: a box for every line that a network finds, at any angle."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar, Final
from weakref import WeakKeyDictionary

import numpy as np

from dpveil.core.numbers import to_json
from dpveil.core.origin import TEXT
from dpveil.core.parameters import Between, Count, Probability
from dpveil.core.photo import Photo
from dpveil.regions.text.network import network, parts
from dpveil.regions.things import Rows, Things, merged
from dpveil.regions.tiling import resized

THRESHOLD: Final = Fraction(2, 5)
MARGIN: Final = Fraction(1, 10)
SMALLEST: Final = 8
"""Height of a line in pixels from which nearly all upright ones were found (benchmarks, text_recall)."""
COARSE: Final = (320, 960)
"""Longer sides of the photo in searches in which large letters are small enough."""
TILE: Final = 1280
OVERLAP: Final = 160
"""Sides of tiles of the finest search and what they have in common, in pixels of the resized photo."""
LEAST: Final = 736
"""Smaller photos are enlarged until their shorter side has so many pixels (limit_side_len of rapidocr)."""
MOST: Final = 2
"""Photos are enlarged at most so many times."""
NEAR: Final = 0.75
"""A search at more than this share of the finest size would find nothing else."""
JOINED: Final = 0.7
"""Share of a box that is in another one, from which both are one line."""
CACHE: Final[WeakKeyDictionary[Photo, dict[object, Rows]]] = WeakKeyDictionary()
"""Lines of photos in memory, by threshold and smallest: text and plates are searched for once."""


@dataclass(frozen=True, kw_only=True)
class Text(Things):
    """One box for every line of text that a network finds; text that is missed stays in the clear.

    The network is PP-OCRv6 of the package rapidocr (extra `text`). A line must score at least `threshold`,
    between 0 and 1. Lines from `smallest` pixels of height are looked for, at the photo's own size where that
    is 8. Each box is the upright one around a line, extended by `margin` times its shorter side. Raises
    `InvalidParameter`. Source: docs, "Text and other objects"; DB (arXiv 1911.08947).

    >>> Text(threshold=0.5).description
    'text threshold=0.5'
    """

    kind = TEXT
    noun = "text"
    word: ClassVar[str] = "text"
    usual: ClassVar[Fraction] = MARGIN

    threshold: Probability = Probability(default=THRESHOLD)
    margin: Between = Between(0, 2, hint="0.25 adds a quarter on each side", default=MARGIN)
    smallest: Count = Count(default=SMALLEST)

    @property
    def description(self) -> str:
        """Return "text", or "plates", and every setting that is not the default, in a fixed order."""
        return " ".join([self.word, *stated(self.threshold, self.margin, self.smallest, self.usual)])

    @property
    def around(self) -> Fraction:
        """The margin."""
        return self.margin

    def prepare(self) -> None:
        """Load the network; raises `UsageError` with an install hint if it is not installed."""
        network()

    def smallest_in(self, photo: Photo) -> int:
        """Return the height in pixels below which no line is searched for."""
        return self.smallest

    def rows(self, photo: Photo) -> list[tuple[str, Rows]]:
        """Return the lines of a photo."""
        return [(TEXT, lines(photo, float(self.threshold), self.smallest))]


def stated(threshold: Fraction, margin: Fraction, smallest: int, usual: Fraction) -> list[str]:
    """Return the settings that are not the defaults, as certificates state them; `usual` is the margin's."""
    given = {
        "threshold": to_json(threshold) if threshold != THRESHOLD else "",
        "margin": to_json(margin) if margin != usual else "",
        "smallest": "" if smallest == SMALLEST else smallest,
    }
    return [f"{name}={value}" for name, value in given.items() if value != ""]


def lines(photo: Photo, threshold: float, smallest: int) -> Rows:
    """Return the lines of a photo in its pixels; cached."""
    own = CACHE.setdefault(photo, {})
    if (threshold, smallest) not in own:
        seen = [_searched(photo, ratio, threshold) for ratio in _ratios(photo, smallest)]
        own[threshold, smallest] = merged(np.concatenate(seen), JOINED)
    return own[threshold, smallest]


def _ratios(photo: Photo, smallest: int) -> list[float]:
    """Return how often a photo is enlarged in each search, the coarsest first."""
    height, width = photo.image.shape[:2]
    fine = min(MOST, max(SMALLEST / smallest, LEAST / min(height, width)))
    ratios = [side / max(height, width) for side in COARSE]
    return [*(ratio for ratio in ratios if ratio < NEAR * fine), fine]


def _searched(photo: Photo, ratio: float, threshold: float) -> Rows:
    """Return the lines in a photo that is resized, in tiles where it is large."""
    height, width = (max(1, round(side * ratio)) for side in photo.image.shape[:2])
    image, net = resized(photo.image, height, width), network()
    scale = np.array([photo.width / width, photo.height / height] * 2 + [1])
    found = [
        (net(image[top:bottom, left:right], threshold) + np.array([left, top, 0, 0, 0])) * scale
        for top, bottom in parts(height, TILE, OVERLAP)
        for left, right in parts(width, TILE, OVERLAP)
    ]
    return np.concatenate(found)
