"""Rasters of a clip: what was drawn of a region, shown in every frame in which it is replaced."""

from __future__ import annotations

import numpy as np
from jaxtyping import UInt8

from dpveil.core.region import Region

Image = UInt8[np.ndarray, "h w 3"]


def show(image: Image, region: Region, raster: Image) -> None:
    """Write a raster over a region of an image, resampled to its size: post-processing."""
    import cv2

    box = region.box
    if raster.shape[:2] != (box.h, box.w):
        smaller = box.w * box.h < raster.shape[0] * raster.shape[1]
        mode = cv2.INTER_AREA if smaller else cv2.INTER_LINEAR
        raster = np.asarray(cv2.resize(raster, (box.w, box.h), interpolation=mode)).reshape(box.h, box.w, 3)
    region.paste(image, raster)
