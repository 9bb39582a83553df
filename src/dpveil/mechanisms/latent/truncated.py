"""Truncated and normalised Laplace noise on every coordinate, without clipping to the box."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from functools import lru_cache
from typing import ClassVar

from dpveil.core.guarantee import Scope
from dpveil.core.parameters import Positive
from dpveil.mechanisms.latent.base import STEPS, TIME, CodeSpace, LatentMechanism, Points
from dpveil.mechanisms.latent.posterior import Law
from dpveil.mechanisms.latent.shares import RULES, Allocation, rounded_up, whole
from dpveil.mechanisms.scalar.base import RECORD
from dpveil.mechanisms.scalar.laplace import TruncatedLaplace
from dpveil.noise.bits import BitSource


@dataclass(frozen=True, kw_only=True)
class BoxTruncatedLaplace(LatentMechanism):
    """Each coordinate is drawn from a Laplace law truncated to the box and normalised for its own position.

    Promises ε for any two inputs, divided by `allocation` as in `box-laplace`: coordinate i gets w_i·ε, at
    the smallest scale that a range with two ends allows, (high_i - low_i)/(w_i·ε). Fields as in
    `LatentMechanism`. Source: Croft thesis §5.1, thesis theorem 4 (errata E1); the family of
    `mechanisms.scalar`.

    *Proof.* Let f(a) be the sum of e^(-|y - a|/s) over the side. For a < b log-ratios are largest at y ≤ a,
    where they are (b - a)/s + ln f(b) - ln f(a), or symmetrically at y ≥ b. f changes by at most a factor
    e^(±1/s) per step, so this grows with b and falls with a: the two ends, where f is the same, are the
    worst, with 2^16/s. ∎
    """

    name: ClassVar[str] = "box-truncated-laplace"
    kind: ClassVar[str] = "pure"
    summary: ClassVar[str] = "truncated Laplace noise on every coordinate of a bounded code"
    source: ClassVar[str] = "Croft thesis §5.1, errata E1"

    epsilon: Positive = Positive()
    allocation: Allocation = Allocation(default="optimal")

    def scope(self, space: CodeSpace) -> Scope:
        """Return the scope, which adds that the time of a draw is revealed."""
        plain = super().scope(space)
        return replace(plain, in_the_clear=(*plain.in_the_clear, TIME))

    def prepare(self, space: CodeSpace) -> None:
        """Raise `NoiseError` if the noise cannot be drawn."""
        for one in self.coordinates(space):
            one.prepare()

    def coordinates(self, space: CodeSpace) -> tuple[TruncatedLaplace, ...]:
        """Return the scalar mechanism of every coordinate, on grid steps."""
        box = space.bounds(self.clip)
        shares = whole(RULES[self.allocation](box.high - box.low, space.column_energy))
        return tuple(_coordinate(1 / rounded_up(1 / (share * Fraction(self.epsilon)))) for share in shares)

    def laws(self, space: CodeSpace) -> tuple[Law, ...]:
        """Return the law of every coordinate."""
        return tuple(Law("truncated", float(1 / Fraction(one.epsilon))) for one in self.coordinates(space))

    def _draw(self, points: Points, space: CodeSpace, bits: BitSource) -> Points:
        out = points.copy()
        alike: dict[TruncatedLaplace, list[int]] = {}
        for column, one in enumerate(self.coordinates(space)):
            alike.setdefault(one, []).append(column)
        for one, columns in alike.items():
            drawn = one.draw(points[:, columns].ravel(), bits)
            out[:, columns] = drawn.reshape(len(points), len(columns))
        return out


@lru_cache(maxsize=1024)
def _coordinate(epsilon: Fraction) -> TruncatedLaplace:
    """Return the mechanism of a coordinate: for one face, making it takes longer than drawing."""
    return TruncatedLaplace(range=(0, STEPS), sensitivity=STEPS, epsilon=epsilon, relation=RECORD, step=1)
