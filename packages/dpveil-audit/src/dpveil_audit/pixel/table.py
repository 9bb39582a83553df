"""Audits of the pixel methods.

To add a method: `pixel/methods/<name>.py` with its `AUDIT`, and one name in this list.
"""

from __future__ import annotations

from typing import Final

from dpveil.mechanisms.pixel import Blur, Mosaic, PixelMethod
from dpveil_audit.pixel.case import Level, Version, one_by_one
from dpveil_audit.pixel.gates import MethodAudit
from dpveil_audit.pixel.methods import (
    bit_planes,
    dct_gaussian,
    dp_pix,
    dp_pix_gaussian,
    dp_samp,
    dp_svd,
    fill,
    mse_exponential,
    snow,
    ssim_exponential,
)

LOOK: Final = "nothing to keep: a function of the photo, without noise and without a promise"


def nothing(method: type[PixelMethod], note: str) -> MethodAudit:
    """Return the entry of a method that promises nothing, with the reason."""
    intact = Version(name=method.name, releases=one_by_one)
    return MethodAudit(method=method, intact=intact, levels={"quick": Level(), "deep": Level()}, note=note)


AUDITS: Final = (nothing(Blur, LOOK), nothing(Mosaic, LOOK))


TABLE: Final[dict[str, MethodAudit]] = {
    entry.method.name: entry
    for entry in (
        dp_pix.AUDIT,
        dp_pix_gaussian.AUDIT,
        dct_gaussian.AUDIT,
        dp_svd.AUDIT,
        dp_samp.AUDIT,
        snow.AUDIT,
        ssim_exponential.AUDIT,
        mse_exponential.AUDIT,
        bit_planes.AUDIT,
        fill.AUDIT,
        *AUDITS,
    )
}
"""Method name to its audit."""
