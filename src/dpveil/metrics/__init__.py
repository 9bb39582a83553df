"""Measures: original and output in, one number out. One file each, and this table, the only list to edit.

They read the original, so their numbers are not private: what releases photos never imports them.
"""

from typing import Final

from dpveil.metrics.base import Measure
from dpveil.metrics.mse import mse
from dpveil.metrics.psnr import psnr
from dpveil.metrics.ssim import ssim

METRICS: Final[dict[str, Measure]] = {"ssim": ssim, "psnr": psnr}
"""Where more is more alike: what comparisons show. PSNR is `mse` in decibels, which experiments report."""

__all__ = ["METRICS", "Measure", "mse", "psnr", "ssim"]
