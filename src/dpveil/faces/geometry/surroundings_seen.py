"""What is seen around a face that is replaced, by which somebody is chosen who suits it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from dpveil.core.array_types import Bool, Float32, Float64, UInt8
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.colour_match import ColourMatch
from dpveil.faces.geometry.fill import fill
from dpveil.faces.geometry.head_frame import INNER, HeadFrame, between, pixel_grid
from dpveil.faces.geometry.head_picture import seen
from dpveil.faces.geometry.membrane import lab_of, skin_centre
from dpveil.faces.geometry.protection import PROTECT_FACE

FRAME: Final = HeadFrame(128)  # the frame in which a model sees what is around a face
BESIDE: Final = 1.8  # enlargement of the inner face's shape within which skin is looked for
NEAR: Final = 0.15  # by how much it is enlarged until skin counts 1/e of that at its edge
CHIN: Final = 0.6  # row of the frame below which it is looked for: chin and jaws, which hair hardly covers
NECK: Final = (0.14, 0.76, 0.95)
"""Where skin is looked for below a head: half the width, and the first and last row, in sides of the frame.
Nothing else is looked at: hands, other people and wood have the colour of skin, too."""
THROAT: Final = (0.08, 0.06)
"""Standard deviation across, and rows down from 0.8 until skin counts 1/e: necks are narrow and short."""
ENOUGH: Final = 2.0  # weight of skin there from which on it counts in full
LEAST: Final = 1.0  # weight below which it is taken for none
BARE: Final = 0.02  # share of skin below which none is seen beside a face
OF_JAW: Final = np.array([(0.9, 9.7), (1.0, 3.9), (0.85, 2.3)])
"""CIE Lab of cheeks and nose by that of chin and jaws, factors and addends: a* and b* are fits to 173 faces
of LFW (R² 0.64, 0.60; mean errors 2.6, 3.1). The factor of L* is larger than fits give (0.6 to 0.75), so
that dark and pale faces are less drawn to the middle."""
OF_NECK: Final = np.array([(0.4, 34.5), (0.7, 8.0), (0.53, 9.2)])
"""The same by that of the neck (R² 0.22, 0.39, 0.36; mean errors 7.1, 3.7, 4.4)."""
USUAL: Final = np.array([54.0, 15.4, 17.9])
"""CIE Lab of cheeks where nothing is known: the mean of these faces."""


@dataclass(frozen=True, eq=False)
class Around:
    """The photo around a face: `outside` has 0 under `hidden`, and no hidden pixel has influence.

    `place` maps the photo to a head's frame with a side of 1; `protect` is what is replaced; `match` is that
    of the whole photo; `shown` are the persons of the gallery who are shown elsewhere in it.
    """

    place: Similarity
    outside: UInt8[np.ndarray, "H W c"]
    hidden: Bool[np.ndarray, "H W"]
    protect: str
    match: ColourMatch
    shown: frozenset[int] = frozenset()

    @cached_property
    def picture(self) -> UInt8[np.ndarray, "128 128 3"]:
        """What is around, in `FRAME`, continued smoothly where it is hidden."""
        levels, known = self._seen
        picture = np.rint(levels).astype(np.uint8)
        return np.where(known[..., None], picture, fill(picture, ~known))

    @cached_property
    def grey(self) -> bool:
        """Whether the photo has no colour."""
        return self.outside.shape[2] == 1 or self.match.colour == 0

    @cached_property
    def cheeks(self) -> Float64[np.ndarray, " 3"] | None:
        """The CIE Lab that cheeks and nose have by the skin of chin and jaws, or below a head.

        A head below which no skin is seen, or in a grey photo, has any: None.
        """
        centre, weight, _ = self._skin
        if self.protect != PROTECT_FACE and (weight < LEAST or self.grey):
            return None
        share, fit = min(1.0, weight / ENOUGH), OF_JAW if self.protect == PROTECT_FACE else OF_NECK
        return np.asarray(USUAL + share * (fit[:, 0] * centre + fit[:, 1] - USUAL))

    @property
    def bare(self) -> bool:
        """Whether something is seen there, and no skin."""
        _, weight, seen_there = self._skin
        return weight < BARE * seen_there

    @cached_property
    def _skin(self) -> tuple[Float64[np.ndarray, " 3"], float, float]:
        """The CIE Lab of that skin, its weight, and the weight of all that is seen there."""
        levels, known = self._seen
        at = pixel_grid(FRAME.size)
        right, low = at[..., 0] - 0.5, at[..., 1]
        if self.protect == PROTECT_FACE:
            far = INNER.far(at)
            place, sure = (far < BESIDE) & (low > CHIN), np.exp((1 - far) / NEAR)
        else:
            half, top, bottom = NECK
            place = (abs(right) < half) & (low > top) & (low < bottom)
            sure = np.exp(-0.5 * (right / THROAT[0]) ** 2 - np.maximum(low - 0.8, 0) / THROAT[1])
        seen_there = known & place
        centre, like = skin_centre(lab_of(levels[seen_there]), sure[seen_there], grey=self.grey)
        return centre, float(like @ sure[seen_there]), float(sure[seen_there].sum())

    @cached_property
    def _seen(self) -> tuple[Float32[np.ndarray, "128 128 3"], Bool[np.ndarray, "128 128"]]:
        """The photo in `FRAME`, and which pixels of it are known."""
        return seen(self.outside, self.hidden, between(self.place, HeadFrame(1), FRAME), FRAME.size)
