"""Audit entries of the pixel methods, one per method, from `pixel.methods`.

To add a method: `audit/pixel/methods/<name>.py` with its `AUDIT`, and one name in this list.
"""

from __future__ import annotations

from typing import Final

from dpveil_audit.pixel.entry import MethodAudit
from dpveil_audit.pixel.methods import (
    baselines,
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
        *baselines.AUDITS,
    )
}
"""Method name to its audit."""
