"""Measures of similarity between an original and an output: each a function, and a row in `METRICS`.

They read the original, so their values are not private; code that releases photos never imports them.
"""

from typing import Final

from dpveil.metrics.mse import Measure, mse, psnr
from dpveil.metrics.ssim import ms_ssim, ssim

METRICS: Final[dict[str, Measure]] = {"ssim": ssim, "psnr": psnr}
"""Measures that `dpveil compare` shows, where larger means more similar; PSNR is `mse` in decibels."""

__all__ = ["METRICS", "Measure", "ms_ssim", "mse", "psnr", "ssim"]
