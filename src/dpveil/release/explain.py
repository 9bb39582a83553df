"""What a method would promise about a region, in numbers and in words, before any budget is spent."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, Context, Decimal
from fractions import Fraction
from typing import Final

from dpveil.accounting.meaning import (
    HARM,
    STRENGTHS,
    MetricMeaning,
    at_least,
    meaning,
    odds,
    strength,
    success_bound,
)
from dpveil.core.guarantee import Guarantee, pixels
from dpveil.core.rationals import Json, exact, show
from dpveil.core.region_origin import FACE, LINKED
from dpveil.errors import InvalidParameter, UsageError
from dpveil.mechanisms.method import Method, Size
from dpveil.mechanisms.pixel.base import check_size
from dpveil.release.quote import Quote, quote_of_sizes
from dpveil.release.words import large_delta_warning


@dataclass(frozen=True)
class Need:
    """What one strength takes: a budget, and its noise in grey levels; None where no value reaches it."""

    strength: str
    budget: dict[str, float] | None
    noise_scale: float | None

    def to_json(self) -> dict[str, Json]:
        budget: Json = None if self.budget is None else dict(self.budget)
        return {"budget": budget, "noise_scale": self.noise_scale}


def _numbers(method: Method) -> dict[str, float]:
    given = {name: getattr(method, name, None) for name in ("epsilon", "delta", "rho")}
    return {name: float(value) for name, value in given.items() if value is not None}


def budget_for(method: Method, name: str, size: Size) -> Method | None:
    """Return the method with the largest ε or ρ, to about two digits, that reaches the strength.

    A δ that is too large for the strength is lowered to the largest that it allows. None if none reaches it.
    """
    given = _numbers(method)
    knob = "rho" if "rho" in given else "epsilon"
    least = {"delta": min(method.delta, HARM[name])} if "delta" in given else {}  # type: ignore[attr-defined]
    if knob not in given:
        only = replace(method, **least) if least else None  # type: ignore[type-var]
        return only if only is not None and at_least(strength(only.guarantee(**size)), name) else None

    def try_value(value: Fraction) -> Method:
        return method.with_budget(**{knob: value}, **least)

    def good(value: Fraction) -> bool:
        return at_least(strength(try_value(value).guarantee(**size)), name)

    # bisection from 0.001 to 1000, to hundredths, or thousandths below 1: a budget that people type
    low, high = Fraction(1, 1000), Fraction(1000)
    if not good(low):
        return None
    for _ in range(26):
        middle = Fraction(round(math.sqrt(low * high), 3 if low < 1 else 2)).limit_denominator(1000)
        if not low < middle < high:
            break
        low, high = (middle, high) if good(middle) else (low, middle)
    return try_value(low)


CANDIDATES: Final = (2, 10, 100, 1000)
"""Numbers of equally likely candidates for which the adversary's success is bounded."""


@dataclass(frozen=True)
class Explanation:
    """What one release of one region means; every bound holds for every adversary.

    `noise_scale` is in grey levels on a full cell, None if the method adds no noise to levels. `odds` is the
    largest factor by which odds change, None unless the guarantee is pure. `success_bound` maps a number of
    equally likely candidates to the highest probability of naming the true one. `needs` say what each
    strength would take, and `metric` what ε·d means at several distances d.
    """

    method: Method
    guarantee: Guarantee
    noise_scale: float | None
    odds: float | None
    success_bound: dict[int, float]
    strength: str
    sentence: str
    needs: tuple[Need, ...]
    metric: MetricMeaning | None = None

    def to_json(self) -> dict[str, Json]:
        return {
            "method": self.method.name,
            "parameters": self.method.parameters(),
            "guarantee": self.guarantee.to_json(),
            "noise_scale": self.noise_scale,
            "odds": None if self.odds is None or math.isinf(self.odds) else self.odds,
            "success_bound": {str(k): bound for k, bound in self.success_bound.items()},
            "strength": self.strength,
            "sentence": self.sentence,
            "needed": {need.strength: need.to_json() for need in self.needs},
            "in_the_clear": list(self.guarantee.scope.in_the_clear),
            **({} if self.metric is None else {"metric": self.metric.to_json()}),
        }


def explain(method: Method, *, height: int, width: int, channels: int = 3) -> Explanation:
    """Return what one release of a height × width × channels region by `method` would mean.

    Spends nothing and reads no photo. Raises `InvalidParameter`. Source: docs, "What a budget means".

    >>> from dpveil.mechanisms.pixel import DPPix
    >>> explain(DPPix(epsilon=1, block=16, neighbourhood=256), height=128, width=128).noise_scale
    765.0
    """
    given: object = method
    if not isinstance(given, Method):
        hint = "such as DPPix(epsilon=1), from dpveil.mechanisms.pixel"
        raise InvalidParameter("method", given, "is not a ready-made method", hint=hint)
    check_size(height, width, channels)
    return explain_region(quote_of_sizes(method, [{"height": height, "width": width, "channels": channels}]))


def explain_largest(quote: Quote | None) -> Explanation:
    """Return what the guarantee of a quote's largest region means; raises `UsageError` without a quote."""
    if quote is None:
        raise UsageError("a copy promises nothing that could be explained")
    areas = [region.box.w * region.box.h for region in quote.regions]
    return explain_region(quote, areas.index(max(areas)))


def explain_region(quote: Quote, index: int = 0) -> Explanation:
    """Return what releasing the region of this `index`, from 0, would mean; spends nothing."""
    method, guarantee, record = quote.method, quote.guarantees[index], quote.regions[index]
    height, width, found = record.box.h, record.box.w, record.origin.kind == FACE
    size: Size = {"height": height, "width": width, "channels": quote.channels}
    reached = {name: budget_for(method, name, size) for name in STRENGTHS if odds(guarantee) != 1}
    needs = (
        Need(name, None, None) if one is None else Need(name, _numbers(one), one.noise_scale(**size))
        for name, one in reached.items()
    )
    return Explanation(
        method=method,
        guarantee=guarantee,
        noise_scale=method.noise_scale(**size),
        odds=odds(guarantee),
        success_bound={k: success_bound(guarantee, k) for k in CANDIDATES},
        strength=strength(guarantee),
        sentence=sentence(guarantee, quote.about_all(index), height * width, faces=found),
        needs=tuple(needs),
        metric=meaning(guarantee, method.pair_distances()) if guarantee.metric else None,
    )


def sentence(
    guarantee: Guarantee, whole: Guarantee | None = None, area: int = 0, *, faces: bool = False
) -> str:
    """Return what a guarantee means in one sentence; in a second one, what holds of the `whole` region.

    That has an `area` in pixels. `faces` says that regions are found faces.
    """
    if not guarantee.formal:
        return "No formal guarantee: nothing is promised, whatever the picture looks like."
    pair = success_bound(guarantee, 2)
    grade = strength(guarantee).capitalize()
    relation = guarantee.relation
    alike = "any two photos" if relation.name == "any-image" else relation.in_words()
    if faces and relation.name == "any-image":
        alike = "any two faces in the same place of the same photo"
    if LINKED in guarantee.scope.in_the_clear:
        alike += ", linked to the same faces"
    if relation.m is not None:
        alike = f"two photos that differ in at most {pixels(relation.m)}"
    if pair < 0.99995:
        limit = f"nobody names the true one with more than {percent_above(pair)}"
    else:
        limit = "an observer may name the true one almost surely"
    text = f"{grade}: of {alike}, equally likely before, {limit}."
    text += f" {exposed}." if (exposed := large_delta_warning(guarantee)) else ""
    if whole is None or whole == guarantee:
        return text
    numbers = [(name, getattr(whole, name)) for name in ("epsilon", "delta", "rho")]
    cost = ", ".join(f"{name} {show(value)}" for name, value in numbers if value is not None)
    return (
        f"{text} The region has {area:,} pixels: about all of them together the promise is"
        f" {strength(whole)} ({cost})."
    )


def percent_above(chance: float) -> str:
    """Return a probability in percent with four significant digits, rounded up: it is an upper bound.

    The float is read as its shortest decimal, which may be half an ulp lower; bounds are already rounded up
    by several.

    >>> percent_above(0.0267236), percent_above(0.1), percent_above(1.0)
    ('2.673 %', '10 %', '100 %')
    """
    percent = exact(chance) * 100
    above = Context(prec=4, rounding=ROUND_CEILING)
    rounded = above.divide(Decimal(percent.numerator), Decimal(percent.denominator))
    return f"{float(rounded):.4g} %"
