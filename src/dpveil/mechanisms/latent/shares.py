"""Division of a budget over the coordinates of a code: from public numbers only, exact after rounding."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.core.parameters import Value
from dpveil.errors import InvalidParameter, meant

Energies = Float64[np.ndarray, " m"]
FINE: Final = 1 << 40
"""Denominator to which shares are rounded down before they are normalised."""
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
    shares: Energies = np.cbrt(energy * width**2)
    return shares


def optimal_gaussian(width: Energies, energy: Energies) -> Energies:
    """Return shares ∝ S_m·√W_m, which minimise the squared error under Gaussian noise of ρ_m = S²/(2σ²).

    Σ W·S²/(2ρ_m) under Σρ_m = ρ is minimal where W·S²/ρ_m² is the same for all.
    """
    shares: Energies = width * np.sqrt(energy)
    return shares


RULES: Final[dict[str, Callable[[Energies, Energies], Energies]]] = {
    "equal": equal,
    "optimal": optimal_laplace,
}
"""The rules for dividing a pure budget, by name."""


class Allocation(Value[str, str]):
    """The rule for dividing a pure budget: "equal" or "optimal"."""

    def check(self, value: str) -> str:
        """Return `value` if it names a rule. Raises `InvalidParameter`."""
        if value not in RULES:
            hint = f"{meant(str(value), RULES)}write {' or '.join(RULES)}"
            raise InvalidParameter(self.name, value, "is unknown", hint=hint)
        return value


def whole(shares: Energies) -> tuple[Fraction, ...]:
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
