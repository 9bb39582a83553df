"""Regions that would be practically pure noise, and what another budget would do: known before a release.

It follows from the method and the regions' sizes, and from no level of a photo.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpveil.accounting.meaning import strength
from dpveil.core.numbers import exact, show, two_digits
from dpveil.errors import DPVeilError
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.placement import Size
from dpveil.release.quote import Quote
from dpveil.release.words import PURE_NOISE, worth

TRIES: Final = 12
"""Budgets that are tried: where noise falls as a power of the budget, the first is right."""


@dataclass(frozen=True)
class Noisy:
    """A region that would be practically pure noise: its size, and the noise's scale in grey levels."""

    size: Size
    scale: float


def noisiest(quote: Quote) -> Noisy | None:
    """Return the noisiest region of a quote, if one would be practically pure noise."""
    found = []
    for height, width in dict.fromkeys((record.box.h, record.box.w) for record in quote.regions):
        size: Size = {"height": height, "width": width, "channels": quote.channels}
        scale = quote.method.noise_scale(**size)
        if scale is not None and scale > PURE_NOISE:
            found.append(Noisy(size, scale))
    return max(found, key=lambda noisy: noisy.scale, default=None)


def remedy(method: Method, noisy: Noisy) -> str:
    """Return which budget would have less noise than that, and promise what; empty if none would.

    >>> from dpveil.mechanisms.pixel import DPPix
    >>> size = {"height": 32, "width": 32, "channels": 1}
    >>> remedy(DPPix(epsilon=1, block=4, neighbourhood=16), Noisy(size, 255.0))
    'epsilon 2 would have 128, and the promise be moderate about any 16 pixels'
    """
    better = _clearer(method, noisy)
    if better is None:
        return ""
    knob, changed = better
    scale = changed.noise_scale(**noisy.size) or 0.0
    guarantee = changed.guarantee(**noisy.size)
    promise = worth(guarantee, strength(guarantee))
    return (
        f"{knob} {show(exact(getattr(changed, knob)))} would have {scale:,.0f}, and the promise be {promise}"
    )


def _clearer(method: Method, noisy: Noisy) -> tuple[str, Method] | None:
    """Return the budget's name and the method with about the least with which a region is no pure noise."""
    knob = "rho" if getattr(method, "rho", None) is not None else "epsilon"
    value, scale = getattr(method, knob, None), noisy.scale
    if value is None:
        return None
    tried, power = exact(value), 2.0 if knob == "rho" else 1.0
    for _ in range(TRIES):
        before, factor = scale, Fraction((scale / PURE_NOISE) ** power)
        grown = two_digits(tried * factor)
        try:
            changed = method.with_budget(**{knob: grown})
            scale = changed.noise_scale(**noisy.size) or 0.0
        except (DPVeilError, OverflowError):
            return None
        if scale <= PURE_NOISE:
            return knob, changed
        if scale < before:
            power = math.log(grown / tried) / math.log(before / scale)
        tried = grown
    return None
