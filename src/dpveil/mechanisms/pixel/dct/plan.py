"""The coefficients of a region that are kept, and their noise variances, from public settings alone.

Squared shifts are in orthonormal units. What t changed pixels of one block can move is bounded in three ways:

1. a clipped coefficient by the width of its range;
2. the c coefficients of one frequency, whose colour planes are orthogonal, together by c times the square of
   255 times its t largest weights;
3. all coefficients together by 255²·c·t, as no shift is longer than that of the pixels (Parseval).

The bounds are nested sets, so the most expensive shift within them, of cost f(t), fills the coefficients with
the least noise first. Over blocks, Σ f(t_j) with Σ t_j ≤ m is at most λ·m + blocks·max(f(t) - λ·t) for every
λ ≥ 0 (Lagrange), of which the smallest is taken.

Candidates for the allocation are variances ∝ width S, which is ρ_m ∝ S_m·√W_m (W = 1 in orthonormal units),
the L2 optimum within the first bound alone, under a ceiling: where the other bounds bind, more variance saves
nothing. Variances are powers of two apart, so that few samplers serve all. The candidate with the least
expected error is scaled to cost ρ.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property, lru_cache
from typing import Final

import numpy as np
from jaxtyping import Float64, Int64

from dpveil.mechanisms.pixel.cells import TOP
from dpveil.mechanisms.pixel.dct.transform import UNIT, BlockTransform

Steps = Int64[np.ndarray, " coefficients"]
"""The variance of each coefficient as the number of halvings; -1 if the coefficient is dropped."""
MOST_HALVINGS: Final = 16
MULTIPLIERS: Final = np.linspace(0, 1, 33)
"""Lagrange multipliers λ that are tried, relative to the largest useful one."""
ABOVE: Final = 1 + Fraction(1, 1 << 30)
"""Factor on a cost for rounding: a sum of fewer than 2^20 positive floats is off by less than 2^-32."""


@dataclass(frozen=True)
class Reach:
    """What a neighbour can move by changing `changed` pixels (None: all) of a region of `blocks` blocks."""

    transform: BlockTransform
    blocks: int
    changed: int | None

    @cached_property
    def pixels(self) -> Int64[np.ndarray, " t"]:
        """The numbers of changed pixels in one block that have to be considered."""
        area = self.transform.tall * self.transform.wide
        return np.array([area]) if self.changed is None else np.arange(1, min(self.changed, area) + 1)

    @cached_property
    def of_frequency(self) -> Float64[np.ndarray, "t 1 frequencies"]:
        """The second bound, for each number of pixels and each frequency."""
        moved = self.transform.moved[self.pixels - 1, None].astype(np.float64)
        return self.transform.channels * moved**2 / (4 * UNIT**4)

    @cached_property
    def squares(self) -> Float64[np.ndarray, "t planes frequencies"]:
        """The smaller of the first two bounds for each coefficient alone."""
        widths = (2.0 * self.transform.bounds) ** 2 / self.transform.norms
        squares: Float64[np.ndarray, "t planes frequencies"]
        squares = np.minimum(widths.reshape(self.transform.channels, -1), self.of_frequency)
        return squares

    def cost(self, steps: Steps) -> float:
        """Return ρ for variances 2^-step: Σ shift²/(2·variance) of the most expensive shift."""
        left = float(self.transform.stretch) * TOP**2 * self.transform.channels * self.pixels
        of_frequency = self.of_frequency[:, 0].copy()
        spent = np.zeros(len(left))
        planes = steps.reshape(self.transform.channels, -1)
        for step in sorted(set(steps.tolist()) - {-1}, reverse=True):
            room = np.minimum((self.squares * (planes == step)).sum(axis=1), of_frequency)
            of_frequency -= room
            taken = np.minimum(room.sum(axis=1), left)
            spent, left = spent + taken * 2.0**step / 2, left - taken
        if self.changed is None:
            return float(self.blocks * spent[0])
        prices = np.max(spent / self.pixels) * MULTIPLIERS
        most = np.maximum(spent - prices[:, None] * self.pixels, 0).max(axis=1)
        return float(np.min(prices * self.changed + self.blocks * most))


@dataclass(frozen=True)
class Plan:
    """A transform, and the noise variance of each coefficient: None for dropped ones."""

    transform: BlockTransform
    variances: tuple[Fraction | None, ...]

    def groups(self) -> list[tuple[Fraction, Int64[np.ndarray, " columns"]]]:
        """Return the coefficients that share a variance, in a fixed order."""
        shared: dict[Fraction, list[int]] = {}
        for column, variance in enumerate(self.variances):
            if variance is not None:
                shared.setdefault(variance, []).append(column)
        return [(variance, np.array(columns)) for variance, columns in sorted(shared.items())]

    def noise(self) -> Float64[np.ndarray, " coefficients"]:
        """Return the noise variances in orthonormal units; infinite for dropped coefficients."""
        known = [np.inf if variance is None else float(variance) for variance in self.variances]
        noise: Float64[np.ndarray, " coefficients"] = np.array(known) / self.transform.norms
        return noise

    def shrinkage(self) -> Float64[np.ndarray, " coefficients"]:
        """Return the factor on each noisy coefficient that has the least expected error."""
        expected = self.transform.expected**2
        share: Float64[np.ndarray, " coefficients"] = expected / (expected + self.noise())
        return share


@lru_cache(maxsize=64)
def plan(
    size: tuple[int, int, int], block: int, changed: int | None, kept: int | None, rho: Fraction, raw: bool
) -> Plan:
    """Return the plan that costs `rho` for a region of `size` (height, width, channels).

    `kept` is the number of lowest frequencies of each colour plane; None takes the number with the least
    error under the public expectation, shrunk or `raw`.
    """
    reach = reach_of(size, block, changed)
    transform, most = reach.transform, reach.transform.frequencies.size
    counts = [min(kept, most)] if kept else sorted({most} | {1 << k for k in range(most.bit_length())})
    tried = [steps for count in counts for steps in _allocations(reach, min(count, most))]
    steps = min(tried, key=lambda steps: _error(transform, steps, reach.cost(steps) / float(rho), raw))
    unit = Fraction(reach.cost(steps)) * ABOVE / rho
    halved = zip(transform.norms.tolist(), steps.tolist(), strict=True)
    return Plan(transform, tuple(unit * norm / 2**step if step >= 0 else None for norm, step in halved))


@lru_cache(maxsize=16)
def reach_of(size: tuple[int, int, int], block: int, changed: int | None) -> Reach:
    """Return what a neighbour that differs in `changed` pixels (None: all) can move."""
    height, width, channels = size
    down, across = -(-height // block), -(-width // block)
    transform = BlockTransform(-(-height // down), -(-width // across), channels)
    blocks = -(-height // transform.tall) * -(-width // transform.wide)
    return Reach(transform, blocks, changed if changed is None else min(changed, height * width))


def spent(made: Plan, blocks: int, changed: int | None) -> Fraction:
    """Return ρ of a plan's noise on so many blocks if `changed` of their pixels (None: all) differ.

    For the region that the plan was made for, this is its ρ exactly.
    """
    norms = made.transform.norms.tolist()
    units: list[Fraction | None] = [
        None if variance is None else variance / norm
        for norm, variance in zip(norms, made.variances, strict=True)
    ]
    most = max(unit for unit in units if unit is not None)
    steps = [-1 if unit is None else int(most / unit).bit_length() - 1 for unit in units]  # powers of two
    cost = Fraction(Reach(made.transform, blocks, changed).cost(np.array(steps)))
    return cost * ABOVE / most


def _allocations(reach: Reach, kept: int) -> list[Steps]:
    """Return variances ∝ width, to a power of two, for the `kept` lowest frequencies, under every ceiling."""
    transform = reach.transform
    order = np.argsort(transform.frequencies.ravel(), kind="stable")
    rank = np.tile(np.argsort(order), transform.channels)
    widths = np.log2(reach.squares[-1].ravel()) / 2
    halvings = np.clip(np.rint(widths.max() - widths), 0, MOST_HALVINGS).astype(np.int64)
    ceilings = np.unique(halvings[rank < kept])
    return [np.where(rank < kept, np.maximum(halvings - ceiling, 0), -1) for ceiling in ceilings]


def _error(transform: BlockTransform, steps: Steps, unit: float, raw: bool) -> float:
    """Return the expected squared error of a block under the public expectation."""
    expected = transform.expected**2
    noise = unit * 0.5 ** np.maximum(steps, 0)
    kept = noise if raw else expected / (1 + expected / noise)
    return float(np.sum(np.where(steps >= 0, kept, expected)))
