"""The budget, or the neighbourhood, with which a method reaches a strength."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from fractions import Fraction

from dpveil.accounting.meaning import HARM, reaches
from dpveil.core.numbers import Json
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.placement import Size


@dataclass(frozen=True)
class Need:
    """What one strength takes: a budget with its noise in grey levels, or a neighbourhood in pixels.

    Each is None if no value reaches the strength, or if it does not apply to the method.
    """

    strength: str
    budget: dict[str, float] | None
    noise_scale: float | None
    neighbourhood: int | None

    def to_json(self) -> dict[str, Json]:
        """Return the JSON object."""
        budget: Json = None if self.budget is None else dict(self.budget)
        return {"budget": budget, "noise_scale": self.noise_scale, "neighbourhood": self.neighbourhood}


def need(method: Method, name: str, size: Size) -> Need:
    """Return what it takes to reach the strength `name` on a region of this size."""
    budget = _budget(method, name, size)
    scale = None if budget is None else budget.noise_scale(**size)
    numbers = None if budget is None else _numbers(budget)
    return Need(name, numbers, scale, _neighbourhood(method, budget, size))


def _numbers(method: Method) -> dict[str, float]:
    given = {name: getattr(method, name, None) for name in ("epsilon", "delta", "rho")}
    return {name: float(value) for name, value in given.items() if value is not None}


def _budget(method: Method, name: str, size: Size) -> Method | None:
    """Return the method with the largest ε or ρ, to about two digits, that reaches the strength.

    A δ that is too large for the strength is lowered to the largest that it allows. None if none reaches it.
    """
    given = _numbers(method)
    knob = "rho" if "rho" in given else "epsilon"
    least = {"delta": min(method.delta, HARM[name])} if "delta" in given else {}  # type: ignore[attr-defined]
    if knob not in given:
        only = replace(method, **least) if least else None  # type: ignore[type-var]
        return only if only is not None and reaches(only.guarantee(**size), name) else None

    def tried(value: Fraction) -> Method:
        return method.with_budget(**{knob: value}, **least)

    def good(value: Fraction) -> bool:
        return reaches(tried(value).guarantee(**size), name)

    value = _largest(good, 12)
    return None if value is None else tried(value)


def _largest(good: Callable[[Fraction], bool], steps: int) -> Fraction | None:
    """Return the largest `good` value from 0.001 to 1000, to hundredths (thousandths below 1), by bisection.

    `good` holds up to some value and not beyond; None if it never does.
    """
    low, high = Fraction(1, 1000), Fraction(1000)
    if not good(low):
        return None
    for _ in range(steps + 14):
        middle = Fraction(round(math.sqrt(low * high), 3 if low < 1 else 2)).limit_denominator(1000)
        if not low < middle < high:
            break
        low, high = (middle, high) if good(middle) else (low, middle)
    return low


def _neighbourhood(method: Method, budget: Method | None, size: Size) -> int | None:
    """Return the largest neighbourhood, in pixels, that reaches the strength with the method's own noise."""
    names = {field.name for field in fields(method)}  # type: ignore[arg-type]
    now = method.noise_scale(**size)
    if budget is None or "neighbourhood" not in names or now is None:
        return None
    if not method.one_scale:
        return None  # the noise has several parameters, so an equal scale is not equal noise

    def noise(m: int) -> float:
        return replace(budget, neighbourhood=m).noise_scale(**size) or 0.0  # type: ignore[type-var]

    return _last(noise, now * (1 + 1e-12), size["height"] * size["width"])


def _last(noise: Callable[[int], float], most: float, end: int) -> int | None:
    """Return the largest m up to `end` with `noise(m)` of at most `most`, for noise that grows with m.

    Interpolates the noise as a power of m, because some methods take seconds to calibrate for each m.
    """
    low, high = 1, end
    under, over = noise(low), noise(high)
    if under > most or over <= most:
        return None if under > most else high
    for step in range(high):
        if high - low < 2:
            break
        power = math.log(over / under) / math.log(high / low)
        guess = low * (most / under) ** (1 / power) if step % 4 < 3 else math.sqrt(low * high)
        middle = min(max(int(guess) + step % 2, low + 1), high - 1)  # alternate sides, to bracket the guess
        value = noise(middle)
        if value <= most:
            low, under = middle, value
        else:
            high, over = middle, value
    return low
