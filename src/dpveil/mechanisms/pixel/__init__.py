"""Pixel-space methods: each a class, and a row in `core.registry`."""

from typing import TYPE_CHECKING

from dpveil.core import registry
from dpveil.core.lazy import lazy

if TYPE_CHECKING:
    from dpveil.mechanisms.pixel.base import PixelMethod
    from dpveil.mechanisms.pixel.bit_planes import BitPlanes
    from dpveil.mechanisms.pixel.common_practice import Blur, Fill, Mosaic, Snow
    from dpveil.mechanisms.pixel.dct_gaussian import DCTGaussian
    from dpveil.mechanisms.pixel.dp_pix import DPPix, DPPixGaussian
    from dpveil.mechanisms.pixel.dp_samp import DPSamp
    from dpveil.mechanisms.pixel.dp_svd import DPSVD
    from dpveil.mechanisms.pixel.mse_exponential import MSEExponential
    from dpveil.mechanisms.pixel.ssim.method import SSIMExponential

__all__ = [
    "DPSVD",
    "BitPlanes",
    "Blur",
    "DCTGaussian",
    "DPPix",
    "DPPixGaussian",
    "DPSamp",
    "Fill",
    "MSEExponential",
    "Mosaic",
    "PixelMethod",
    "SSIMExponential",
    "Snow",
]

__getattr__, __dir__ = lazy(__name__, {"base": "PixelMethod"}, registry.PIXEL.homes)
