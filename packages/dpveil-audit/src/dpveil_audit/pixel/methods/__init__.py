"""The audits of pixel methods: one file each, with its laws, mutants and settings.

To add a method: `<name>.py` with its `AUDIT`, and one name in this list.
"""

from __future__ import annotations

from typing import Final

from dpveil.mechanisms.pixel import Blur, Mosaic
from dpveil_audit.engine import Audit
from dpveil_audit.pixel.case import one_by_one, version
from dpveil_audit.pixel.methods import (
    bit_planes,
    dct_gaussian,
    dp_samp,
    dp_svd,
    fill,
    mse_exponential,
    pixelisation,
    snow,
    ssim_exponential,
)

NOTHING: Final = tuple(
    Audit(
        method=method,
        intact=version(method.name, None, one_by_one),
        note="nothing to keep: a function of the photo, without noise and without a promise",
    )
    for method in (Blur, Mosaic)
)
TABLE: Final[dict[str, Audit]] = {
    entry.method.name: entry
    for entry in (
        *pixelisation.AUDITS,
        dct_gaussian.AUDIT,
        dp_svd.AUDIT,
        dp_samp.AUDIT,
        snow.AUDIT,
        ssim_exponential.AUDIT,
        mse_exponential.AUDIT,
        bit_planes.AUDIT,
        fill.AUDIT,
        *NOTHING,
    )
}
"""Method name to its audit."""
