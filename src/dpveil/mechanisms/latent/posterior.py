"""Likely codes: what a private code says of the original, together with what public codes are like.

A decoder has seen codes of faces, and at small budgets a private code is mostly noise. Replacing it by a draw
from the posterior distribution keeps what the private code says and is a face: post-processing, as it is a
function of the private code, of public numbers and of fresh bits.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

import numpy as np

from dpveil.core.array_types import Float64
from dpveil.core.parameters import Value, positive
from dpveil.errors import InvalidParameter, suggestion
from dpveil.mechanisms.latent.base import STEPS, Codes, CodeSpace, LatentMechanism
from dpveil.noise.bits import BitSource

Energies = Float64[np.ndarray, " m"]
FINE: Final = 1 << 40  # denominator to which shares are rounded down before they are normalised
A_DOUBLING: Final = 8
"""Shares are rounded to this many steps per doubling, so that few noise scales need a table."""


def equal(width: Energies, energy: Energies) -> Energies:
    """Return equal shares (Li & Clifton 2021 §3.3, w_i = 1/m)."""
    return np.ones(len(width))


def optimal_laplace(width: Energies, energy: Energies) -> Energies:
    """Return shares ∝ W_m^(1/3)·S_m^(2/3), which minimise the picture's squared error under Laplace noise.

    `width` is S and `energy` is W. The noise of coordinate m has variance 2·(S_m/(p_m·ε))², which adds W_m
    times that to the picture; Σ W·S²/p² under Σp = 1 is minimal where W·S²/p³ is the same for all. Source:
    FaceIDP eq. 19, with public S_m (errata E4), over all coordinates.
    """
    return np.asarray(np.cbrt(energy * width**2))


def optimal_gaussian(width: Energies, energy: Energies) -> Energies:
    """Return shares ∝ S_m·√W_m, which minimise the squared error under Gaussian noise of ρ_m = S²/(2σ²).

    Σ W·S²/(2ρ_m) under Σρ_m = ρ is minimal where W·S²/ρ_m² is the same for all.
    """
    return np.asarray(width * np.sqrt(energy))


RULES: Final[dict[str, Callable[[Energies, Energies], Energies]]] = {
    "equal": equal,
    "optimal": optimal_laplace,
}
"""The rules for dividing a pure budget, by name."""


GROUP: Final = re.compile(r"(\d{1,6})(?:-(\d{1,6}))?=([^,=]{1,40})")
"""Coordinates from 1 on, the last included, and their weight."""


class Allocation(Value[str, str]):
    """How a pure budget is divided: "equal", "optimal", or weights of groups of coordinates by hand.

    "1-12=4,20=1/2" gives each of the first twelve coordinates four times the share of one that no group
    names, and the twentieth half of it: a budget per component of Li & Clifton 2021 §3.3. Such weights must
    be public, as they are part of a certificate.
    """

    def check(self, value: str) -> str:
        """Return `value` if it names a rule or weights. Raises `InvalidParameter`."""
        if value in RULES:
            return value
        seen: set[int] = set()
        for group in str(value).split(","):
            if not (found := GROUP.fullmatch(group.strip())):
                hint = f"{suggestion(str(value), RULES)}write {', '.join(RULES)}, or weights: 1-12=4,20=1/2"
                raise InvalidParameter(self.name, value, "is unknown", hint=hint)
            first, last = int(found[1]), int(found[2] or found[1])
            positive(found[3], self.name)
            if not 0 < first <= last or not seen.isdisjoint(range(first, last + 1)):
                hint = "each group from 1 on, from the smaller number, and no coordinate twice"
                raise InvalidParameter(self.name, value, f"has a wrong group {group.strip()}", hint=hint)
            seen.update(range(first, last + 1))
        return str(value)


def divide(allocation: str, width: Energies, energy: Energies) -> tuple[Fraction, ...]:
    """Return the shares of an `Allocation`; raises `InvalidParameter` for groups of a longer code."""
    if allocation in RULES:
        return rational_shares(RULES[allocation](width, energy))
    weights = np.ones(len(width))
    for first, last, weight in GROUP.findall(allocation):
        if int(last or first) > len(width):
            hint = f"a code has {len(width)} coordinates here"
            raise InvalidParameter(
                "allocation", allocation, "names more coordinates than a code has", hint=hint
            )
        weights[int(first) - 1 : int(last or first)] = float(positive(weight, "allocation"))
    return rational_shares(weights)


def rational_shares(shares: Energies) -> tuple[Fraction, ...]:
    """Return the shares as positive rationals that sum to exactly 1, each rounded to an eighth of a doubling.

    Rounding changes a share by at most 4.5 %, and the squared error, which is flat around its minimum, by 0.6
    %. Raises `InvalidParameter` for shares that are not finite or negative, or all 0.
    """
    if not (np.isfinite(shares).all() and shares.min() >= 0 and shares.max() > 0):
        raise InvalidParameter("shares", None, "are not finite numbers of at least 0", hint="another codec")
    with np.errstate(divide="ignore"):  # a share of 0 stays 0 here, and becomes the smallest below
        rounded = np.exp2(np.rint(np.log2(shares) * A_DOUBLING) / A_DOUBLING)
    parts = np.maximum(1, np.floor(rounded / rounded.sum() * FINE)).astype(np.int64).tolist()
    total = sum(parts)
    return tuple(Fraction(part, total) for part in parts)


def rounded_up(scale: Fraction) -> Fraction:
    """Return the scale rounded up to 5 or 6 significant bits, so that coordinates share tables of noise.

    This adds at most a part in 16 to the noise.

    >>> rounded_up(Fraction(1000)), rounded_up(Fraction(33, 64))
    (Fraction(1008, 1), Fraction(33, 64))
    """
    unit = Fraction(2) ** (scale.numerator.bit_length() - scale.denominator.bit_length() - 5)
    return -(-scale // unit) * unit


GRID: Final = 257  # positions on every side of the box at which the posterior distribution is computed

Line = Float64[np.ndarray, " k"]


def likely(codes: Codes, mechanism: LatentMechanism, space: CodeSpace, *, bits: BitSource) -> Codes:
    """Return a draw from the posterior distribution of the original code, for every private code.

    `codes` (n × m) are those that `mechanism` released. Coordinates of public codes are taken as independent
    and normal with the `deviations` of the space, of at least a step of the grid, and mean 0, within the box.
    Codes are returned as they are if the space has no deviations, or the mechanism states no noise.

    *Why it costs nothing.* Only the private codes are read, and `bits` that are used for nothing else. ∎
    """
    laws, spread = mechanism.laws(space), space.deviations
    if laws is None or spread is None:
        return codes
    box = space.bounds(mechanism.clip)
    width = box.high - box.low
    uniform = (bits.words(codes.size).astype(np.float64) + 0.5).reshape(codes.shape) / 2.0**64
    at = np.linspace(0, 1, GRID)
    out = np.empty_like(codes)
    for column, law in enumerate(laws):
        where = box.low[column] + width[column] * at
        prior = -0.5 * (where / max(spread[column], width[column] / GRID)) ** 2
        seen = (codes[:, column] - box.low[column]) / width[column]
        logs = law.logs(seen[:, None], at) + prior
        inside = drawn_on(logs, uniform[:, column])
        out[:, column] = box.low[column] + width[column] * inside
    return out


def drawn_on(logs: Float64[np.ndarray, "n k"], uniform: Line) -> Line:
    """Return a place from 0 to 1 for every row of logarithms of densities on a grid, by a uniform number."""
    share = np.exp(logs - logs.max(axis=1, keepdims=True))
    total = np.cumsum(share, axis=1)
    wanted = uniform * total[:, -1]
    rows = (total < wanted[:, None]).sum(axis=1)
    own, upto = (np.take_along_axis(one, rows[:, None], axis=1)[:, 0] for one in (share, total))
    part = 1 - (upto - wanted) / own
    return np.asarray(np.clip((rows + part - 0.5) / (logs.shape[1] - 1), 0, 1))


@dataclass(frozen=True)
class Law:
    """The noise of one coordinate: "laplace" or "gaussian", clipped to the box, "truncated" (a Laplace law
    truncated to the box), or "none", if the coordinate says nothing. `scale` is in sides of the box.
    """

    name: str
    scale: float = 1.0

    def logs(self, seen: Float64[np.ndarray, "n 1"], at: Line) -> Float64[np.ndarray, "n k"]:
        """Return the logarithm of the likelihood that a coordinate `at` becomes what is `seen`, 0 to 1."""
        if self.name == "none":
            return np.zeros((len(seen), len(at)))
        away = np.abs(seen - at) / self.scale
        if self.name == "truncated":
            ends = np.exp(-at / self.scale) + np.exp(-(1 - at) / self.scale)
            return np.asarray(-away - np.log(2 - ends))
        from scipy.special import log_ndtr

        normal = self.name == "gaussian"
        density = -0.5 * away**2 if normal else -away
        # At an end of the box the draw was there or beyond: a probability and no density.
        beyond = log_ndtr(-away) if normal else density + np.log(0.5)
        end = (seen <= 0.5 / STEPS) | (seen >= 1 - 0.5 / STEPS)
        return np.asarray(np.where(end, beyond, density))
