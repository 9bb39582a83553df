"""The cost of many draws under three definitions: pure ε, ρ, and (ε, δ).

A method made of many small draws has one account for each region; a budget in any of the three currencies is
calibrated against it, and all that hold can be stated of one release.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from fractions import Fraction

from dpveil.accounting.laplace import Shifts, laplace_epsilon, laplace_rho, pure_epsilon
from dpveil.accounting.zcdp import zcdp_epsilon


class Account(ABC):
    """What one release costs: frozen data, every number rounded to the private side."""

    @property
    @abstractmethod
    def pure(self) -> Fraction | None:
        """The pure ε, or None where no finite one holds."""

    @property
    @abstractmethod
    def rho(self) -> Fraction | None:
        """The ρ of zCDP, or None where no finite one holds."""

    @abstractmethod
    def epsilon(self, delta: Fraction) -> Fraction:
        """Return an ε for which the release is (ε, δ)-DP: the smallest that a valid accountant proves."""


@dataclass(frozen=True)
class LaplaceAccount(Account):
    """Discrete Laplace noise of one scale on integers that a neighbour moves by at most `shifts`.

    >>> LaplaceAccount(Fraction(255), ((255, 2),)).pure
    Fraction(2, 1)
    """

    scale: Fraction
    shifts: Shifts

    @property
    def pure(self) -> Fraction:
        """Σ movement / scale, exactly."""
        return pure_epsilon(self.scale, self.shifts)

    @property
    def rho(self) -> Fraction:
        """Half the sum of squares, as ε-DP is ε²/2-zCDP (Bun & Steinke 2016, proposition 1.4)."""
        return laplace_rho(self.scale, self.shifts)

    def epsilon(self, delta: Fraction) -> Fraction:
        """Return the smallest ε of pure composition, zCDP and privacy-loss distributions."""
        return laplace_epsilon(self.scale, self.shifts, delta)


@dataclass(frozen=True)
class ZeroConcentrated(Account):
    """A release of which ρ-zCDP is all that is known, such as one with discrete Gaussian noise."""

    spent: Fraction

    @property
    def pure(self) -> None:
        """No finite one."""

    @property
    def rho(self) -> Fraction:
        """ρ itself."""
        return self.spent

    def epsilon(self, delta: Fraction) -> Fraction:
        """Return ε by the tight conversion."""
        return zcdp_epsilon(self.spent, delta)
