"""Plan and release in one call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dpveil.io import Source
from dpveil.mechanisms.method import Method
from dpveil.noise.bits import BitSource
from dpveil.postprocessing import Step
from dpveil.regions import Spec
from dpveil.release.payment import Budget
from dpveil.release.plan import plan
from dpveil.release.saving import Release


def obfuscate(
    photo: Source,
    method: str | Method | None = None,
    *,
    regions: Spec | Sequence[Spec] | None = None,
    bits: BitSource | None = None,
    ledger: Budget | None = None,
    subject: str | None = None,
    key: str | bytes | None = None,
    again: bool = False,
    other_regions: bool = False,
    if_none: str | None = None,
    post_processing: Sequence[str | Step] | str | Step = (),
    at_least: str | None = None,
    **parameters: Any,
) -> Release:
    """Return a release of `photo` in which `method` was applied to every pixel of `regions`.

    `bits`, `ledger`, `subject`, `key`, `again` and `other_regions` are as in `Plan.release`, all other
    arguments as in `plan`. With `bits` given, the result is a function of the arguments alone. Raises errors
    of `dpveil.errors` and then releases nothing. Source: docs, "Guarantees".

    >>> import numpy as np
    >>> release = obfuscate(np.zeros((8, 8), np.uint8), "dp-pix", epsilon=1, block=8)
    >>> release.image.shape, str(release.certificate.composition)
    ((8, 8, 1), '1-DP, any-image')
    """
    made = plan(
        photo,
        method,
        regions=regions,
        if_none=if_none,
        post_processing=post_processing,
        at_least=at_least,
        **parameters,
    )
    paying = {"ledger": ledger, "subject": subject, "key": key}
    return made.release(bits=bits, **paying, again=again, other_regions=other_regions)  # type: ignore[arg-type]
