"""The cost of many draws under three definitions: pure ε-DP, ρ-zCDP and (ε, δ)-DP.

A method made of many small draws has one account per region. Noise is calibrated against it for a budget in
any of the three, and a release may state all that hold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from dpveil.accounting.laplace import Shifts, laplace_epsilon, laplace_rho, pure_epsilon
from dpveil.accounting.zcdp import zcdp_epsilon


class Account(ABC):
    """The cost of one release as frozen data; every number is rounded towards more cost."""

    @property
    @abstractmethod
    def pure(self) -> Fraction | None:
        """The ε of pure DP, or None if no finite one holds."""

    @property
    @abstractmethod
    def rho(self) -> Fraction | None:
        """The ρ of zCDP, or None if no finite one holds."""

    @abstractmethod
    def epsilon(self, delta: Fraction) -> Fraction:
        """Return the smallest ε that a valid accountant proves at this δ."""


@dataclass(frozen=True)
class LaplaceAccount(Account):
    """Discrete Laplace noise of one scale on integers of which a neighbour changes each by at most its entry
    of `shifts`.

    >>> LaplaceAccount(Fraction(255), ((255, 2),)).pure
    Fraction(2, 1)
    """

    scale: Fraction
    shifts: Shifts

    @property
    def pure(self) -> Fraction:
        """Σ shift / scale, exactly."""
        return pure_epsilon(self.scale, self.shifts)

    @property
    def rho(self) -> Fraction:
        """Σ (shift / scale)² / 2, as ε-DP is ε²/2-zCDP (Bun & Steinke 2016, proposition 1.4)."""
        return laplace_rho(self.scale, self.shifts)

    def epsilon(self, delta: Fraction) -> Fraction:
        """Return the smallest ε of pure composition, zCDP and privacy loss distributions."""
        return laplace_epsilon(self.scale, self.shifts, delta)


@dataclass(frozen=True)
class ZeroConcentrated(Account):
    """A release that is ρ-zCDP, with ρ = `spent`, such as one with discrete Gaussian noise."""

    spent: Fraction

    @property
    def pure(self) -> None:
        """None: zCDP implies no finite pure ε."""

    @property
    def rho(self) -> Fraction:
        """ρ."""
        return self.spent

    def epsilon(self, delta: Fraction) -> Fraction:
        """Return ε by the tight conversion of `zcdp_epsilon`."""
        return zcdp_epsilon(self.spent, delta)
