"""Rows of features, which measures between sets of pictures compare."""

from __future__ import annotations

from typing import Final

import cv2
import numpy as np
from jaxtyping import Float64, UInt8

from dpveil.errors import InvalidParameter

Rows = Float64[np.ndarray, "n d"]
"""n pictures by d features, or descriptors; finite."""
Pictures = UInt8[np.ndarray, "n h w c"]

LEAST: Final = 2
"""Least number of rows in a set."""


def check_rows(name: str, rows: Rows, width: int | None = None) -> Rows:
    """Return rows of `width` features as 64-bit floats, or raise `InvalidParameter`."""
    out = np.asarray(rows, np.float64)
    if out.ndim != 2 or len(out) < LEAST or out.shape[1] == 0:
        problem = f"are not {LEAST} or more rows of features"
        raise InvalidParameter(name, "×".join(map(str, out.shape)), problem, hint="n pictures × d features")
    if width is not None and out.shape[1] != width:
        problem = f"have {out.shape[1]} features, and the other set has {width}"
        raise InvalidParameter(name, None, problem, hint="compute both in the same way")
    if not np.isfinite(out).all():
        raise InvalidParameter(name, None, "are not all finite", hint="leave out pictures without features")
    return out


def colours(pictures: Pictures, side: int = 16) -> Rows:
    """Return the levels of pictures, n × h × w × c, averaged to `side` × `side` pixels: n × (side²·c).

    Raises `InvalidParameter`.
    """
    if pictures.dtype != np.uint8 or pictures.ndim != 4 or not 0 < side <= min(pictures.shape[1:3]):
        found = f"{pictures.dtype} {pictures.shape}"
        hint = f"uint8 n × h × w × c, with sides of {side} pixels or more"
        raise InvalidParameter("pictures", found, "cannot be averaged", hint=hint)
    small = [cv2.resize(one, (side, side), interpolation=cv2.INTER_AREA) for one in pictures]
    return np.reshape(small, (len(pictures), -1)).astype(np.float64)
