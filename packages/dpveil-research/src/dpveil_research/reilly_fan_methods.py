"""The methods of Reilly & Fan 2021, with m = 1: neighbours differ in one pixel."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

from dpveil.mechanisms.pixel import DPSVD, DPPix, DPSamp, Snow
from dpveil.mechanisms.pixel.base import PixelMethod

MEDIAN: Final = {"Snow-Med": ("median:3",)}
"""Steps after a release."""
SVD_OF_ONE: Final = "DP-SVD, levels to 1"
"""The paper states no unit of singular values, which DP-SVD's ε multiplies: levels to 1 are ε/255 to 255."""


def methods(*, block: int, clusters: int, rank: int) -> dict[str, Callable[[str], PixelMethod]]:
    """Return each method as a function of ε, or δ for Snow, with the parameters of table I for a data set."""
    return {
        "DP-Pix": lambda x: DPPix(epsilon=x, block=block, neighbourhood=1),
        "DP-Samp": lambda x: DPSamp(epsilon=x, clusters=clusters, neighbourhood=1),
        "DP-SVD": lambda x: DPSVD(epsilon=x, rank=rank),
        "Snow": lambda x: Snow(delta=x),
        "Snow-Med": lambda x: Snow(delta=x),
        SVD_OF_ONE: lambda x: DPSVD(epsilon=Fraction(x) / 255, rank=rank),
    }
