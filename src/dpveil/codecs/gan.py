"""A neural codec: an encoder to 1 × 1 × n, and a decoder that is given gender and pose beside the code."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from dpveil.codecs.base import Crops
from dpveil.codecs.neural import EncoderDecoder
from dpveil.codecs.statistics import Codes
from dpveil.errors import InvalidParameter


@dataclass(frozen=True, eq=False)
class StyleGAN(EncoderDecoder):
    """A code holds coordinates of W+, layers × style: leading principal components, or its own.

    The generator's noise inputs are constants of its network, so that a picture is a function of its code.
    Pictures have the pose of the code. Its networks may be four times as large as those of other codecs.
    Source: Li & Clifton 2021 §3; Karras et al. 2020.
    """

    name: ClassVar[str] = "stylegan"
    summary: ClassVar[str] = "an encoder network to the styles of StyleGAN2's generator"
    source: ClassVar[str] = "Li & Clifton 2021 §3"
    large: ClassVar[int] = 4
    bright: ClassVar[float] = 2.0


CONDITIONS: Final = ("gender", "yaw", "pitch")
"""What the decoder is given beside a code: gender, 1 for female and -1 for male, and angles in radians."""
CLEAR: Final = 2.0
"""Largest gender that is passed on; training had 1. Of random codes 97 % are read as told, or 78 % at 1."""
OBEYED: Final = 0.36
"""The part of a yaw or pitch by which faces turn if the decoder is told it, measured with dpveil-faces'
codec.
"""
WHOLE: Final = 0.6
"""Largest angle at which decoded faces are seldom broken, in radians: they are turned by 12° then."""
STEEP: Final = 1.2
"""Largest angle that is passed on, in radians."""


@dataclass(frozen=True, eq=False)
class GAN(EncoderDecoder):
    """A code holds the leading principal components of what an encoder network makes of a crop.

    The decoder was trained on noisy codes. Source: Croft thesis §6.4-6.5, tables 6.1 and 6.2.
    """

    name: ClassVar[str] = "gan"
    summary: ClassVar[str] = "an encoder and a decoder network, trained against a critic on noisy codes"
    source: ClassVar[str] = "Croft thesis §6.4-6.5"
    frontal: ClassVar[bool] = True
    posed: ClassVar[bool] = True
    conditions: ClassVar[tuple[str, ...]] = CONDITIONS
    attributes: ClassVar[Mapping[str, tuple[str, tuple[float, ...]]]] = {
        "gender": ("gender", (-CLEAR, CLEAR))
    }

    def turning(self, yaw: float, pitch: float) -> Mapping[str, float]:
        """Return what `render` is given for faces that are turned by so many degrees: more than that, as
        decoders obey in part, up to `WHOLE`.
        """
        asked = {"yaw": yaw, "pitch": pitch}
        return {name: max(-WHOLE, min(WHOLE, math.radians(at) / OBEYED)) for name, at in asked.items()}

    def render(self, codes: Codes, *, gender: float = 0.0, yaw: float = 0.0, pitch: float = 0.0) -> Crops:
        """Return the crops of codes in another gender or pose: the same code may be rendered at no cost.

        `gender` is -1 (male) to 1 (female), or up to ±2 to outweigh what the code says; angles are in
        radians, at most ±1.2. They must be public or released themselves. Raises `InvalidParameter` for other
        values, and as `decode`.
        """
        given = {"gender": gender, "yaw": yaw, "pitch": pitch}
        for name, value in given.items():
            most = CLEAR if name == "gender" else STEEP
            if not abs(value) <= most:
                raise InvalidParameter(name, value, f"is not from {-most} to {most}", hint="0 is neutral")
        self.decode(codes[:0])
        low, high = self.statistics.quantiles[:, 0]
        kept = np.clip(codes.astype(np.float64), low, high)
        return self._rendered(kept, np.array([given[name] for name in CONDITIONS]))
