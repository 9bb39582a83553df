"""Measures of similarity between an original and an output: one file each, and a row in this table.

They read the original, so their values are not private; code that releases photos never imports them.
"""

from typing import Final

from dpveil.metrics.base import Measure
from dpveil.metrics.mse import mse
from dpveil.metrics.psnr import psnr
from dpveil.metrics.ssim import ssim

METRICS: Final[dict[str, Measure]] = {"ssim": ssim, "psnr": psnr}
"""Measures for comparisons, where larger means more similar; PSNR is `mse` in decibels."""

__all__ = ["METRICS", "Measure", "mse", "psnr", "ssim"]
