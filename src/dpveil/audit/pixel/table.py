"""What is audited: one entry for every method, from `pixel.methods`, and every sampler.

To add a method: `audit/pixel/methods/<name>.py` with its `AUDIT`, and one name in this list.
"""

from __future__ import annotations

from functools import cache
from typing import Final

from dpveil.audit.pixel.case import MethodAudit
from dpveil.audit.pixel.methods import (
    baselines,
    bit_planes,
    dct_gaussian,
    dp_pix,
    dp_pix_gaussian,
    dp_samp,
    dp_svd,
    mse_exponential,
    snow,
    ssim_exponential,
)
from dpveil.audit.samplers import SamplerAudit, sampler_audits

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
        *baselines.AUDITS,
    )
}
"""Method name to its audit."""

SAMPLER_DRAWS: Final = {"quick": 100_000, "deep": 1_000_000}


@cache
def samplers() -> dict[str, SamplerAudit]:
    """Return the audits of the samplers, by name; their distributions take a while, and are made once."""
    return sampler_audits()
