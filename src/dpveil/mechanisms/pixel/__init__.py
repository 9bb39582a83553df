"""Pixel-space methods: one file each, and this table, the only list to edit."""

from typing import Final

from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil.mechanisms.pixel.dp_pix import DPPix
from dpveil.mechanisms.pixel.dp_pix_gaussian import DPPixGaussian
from dpveil.mechanisms.pixel.ssim_exponential import SSIMExponential

TABLE: Final[dict[str, type[PixelMethod]]] = {
    method.name: method for method in (DPPix, DPPixGaussian, SSIMExponential)
}

__all__ = ["TABLE", "DPPix", "DPPixGaussian", "PixelMethod", "SSIMExponential"]
