"""What is seen around a face that is replaced, by which somebody is chosen who suits it."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Final

import numpy as np

from dpveil.core.arrays import Bool, Float32, UInt8
from dpveil.faces.geometry.align import Similarity, quantile
from dpveil.faces.geometry.colour_match import skin_below
from dpveil.faces.geometry.fill import fill
from dpveil.faces.geometry.head_frame import INNER, HeadFrame, between, pixel_grid
from dpveil.faces.geometry.membrane import lab_of, may_be_skin
from dpveil.faces.geometry.protection import FACE
from dpveil.faces.geometry.tone import lightness
from dpveil.faces.geometry.view import seen

FRAME: Final = HeadFrame(128)
"""The frame in which a model sees what is around a face."""
BESIDE: Final = (1.0, 1.5)
"""Enlargements of the inner face's shape between which skin is looked for."""
CHIN: Final = 0.6
"""Row of the frame below which it is looked for: chin and jaws, which hair hardly covers."""
ENOUGH: Final = 40
"""Least number of pixels of skin there, in that frame."""
LIT: Final = 0.75
"""The quantile of its levels that counts: rims are in shadow more often than cheeks."""


LIGHTER: Final = 10.0
"""CIE L* that is added to it: cheeks are lighter than jaws by 4 (the median of 90 photos of LFW), and dim
light is commoner than the darker of two tones that a photo may show."""


@dataclass(frozen=True, eq=False)
class Around:
    """The photo around a face: `outside` has 0 under `hidden`, and no hidden pixel has influence.

    `place` maps the photo to a head's frame with a side of 1; `protect` is what is replaced.
    """

    place: Similarity
    outside: UInt8[np.ndarray, "H W c"]
    hidden: Bool[np.ndarray, "H W"]
    protect: str

    @cached_property
    def picture(self) -> UInt8[np.ndarray, "128 128 3"]:
        """What is around, in `FRAME`, continued smoothly where it is hidden."""
        levels, known = self._seen
        picture = np.rint(levels).astype(np.uint8)
        return np.where(known[..., None], picture, fill(picture, ~known))

    @cached_property
    def skin(self) -> float | None:
        """The CIE L* of skin around an inner face, or below a head; None where little is certain."""
        if self.protect != FACE:
            return skin_below(self.outside, self.hidden, self.place, HeadFrame(1))
        if self.outside.shape[2] == 1:
            return None
        levels, known = self._seen
        at = pixel_grid(FRAME.size)
        far = INNER.far(at)
        beside = levels[known & (far > BESIDE[0]) & (far < BESIDE[1]) & (at[..., 1] > CHIN)]
        skin = beside[may_be_skin(lab_of(beside))] if len(beside) else beside
        return LIGHTER + lightness(quantile(skin, LIT)[None]) if len(skin) >= ENOUGH else None

    @cached_property
    def _seen(self) -> tuple[Float32[np.ndarray, "128 128 3"], Bool[np.ndarray, "128 128"]]:
        """The photo in `FRAME`, and which pixels of it are known."""
        return seen(self.outside, self.hidden, between(self.place, HeadFrame(1), FRAME), FRAME.size)
