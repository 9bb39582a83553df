"""The methods of Reilly & Fan 2021, with m = 1: neighbours differ in one pixel."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dpveil.mechanisms.pixel import DPSVD, DPPix, DPSamp, Snow
from dpveil.mechanisms.pixel.base import PixelMethod

MEDIAN: Final = {"Snow-Med": ("median:3",)}
"""Steps after a release."""


def methods(*, block: int, clusters: int, rank: int) -> dict[str, Callable[[str], PixelMethod]]:
    """Return each method as a function of ε, or δ for Snow, with the parameters of table I for a data set."""
    return {
        "DP-Pix": lambda x: DPPix(epsilon=x, block=block, neighbourhood=1),
        "DP-Samp": lambda x: DPSamp(epsilon=x, clusters=clusters, neighbourhood=1),
        "DP-SVD": lambda x: DPSVD(epsilon=x, rank=rank),
        "Snow": lambda x: Snow(delta=x),
        "Snow-Med": lambda x: Snow(delta=x),
    }
