"""Pixel-space methods: a file or a folder each, and this table, the only list to edit."""

from typing import Final

from dpveil.mechanisms.pixel.base import PixelMethod
from dpveil.mechanisms.pixel.bit_planes.method import BitPlanes
from dpveil.mechanisms.pixel.blur import Blur
from dpveil.mechanisms.pixel.dct.method import DCTGaussian
from dpveil.mechanisms.pixel.dp_pix import DPPix
from dpveil.mechanisms.pixel.dp_pix_gaussian import DPPixGaussian
from dpveil.mechanisms.pixel.dp_samp.method import DPSamp
from dpveil.mechanisms.pixel.dp_svd.method import DPSVD
from dpveil.mechanisms.pixel.fill import Fill
from dpveil.mechanisms.pixel.mosaic import Mosaic
from dpveil.mechanisms.pixel.mse.method import MSEExponential
from dpveil.mechanisms.pixel.snow import Snow
from dpveil.mechanisms.pixel.ssim.method import SSIMExponential

TABLE: Final[dict[str, type[PixelMethod]]] = {
    method.name: method
    for method in (
        DPPix,
        DPPixGaussian,
        SSIMExponential,
        MSEExponential,
        BitPlanes,
        DCTGaussian,
        DPSVD,
        DPSamp,
        Snow,
        Blur,
        Mosaic,
        Fill,
    )
}

__all__ = [
    "DPSVD",
    "TABLE",
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
