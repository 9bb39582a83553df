"""Methods with Gaussian noise, whose budget is ρ or (ε, δ)."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from dpveil.accounting import zcdp_rho
from dpveil.accounting.account import ZeroConcentrated
from dpveil.mechanisms.pixel.budget import EPSILON_DELTA, RHO, BudgetedMethod


class ConcentratedMethod(BudgetedMethod):
    """A method that takes ρ, or ε and δ, from which the largest ρ follows; Gaussian noise has no pure ε."""

    kinds: ClassVar[tuple[str, ...]] = ("zcdp", "approximate")
    budgets: ClassVar[tuple[tuple[str, ...], ...]] = (RHO, EPSILON_DELTA)
    calibrations: ClassVar[Mapping[str, str]] = {"approximate": "the tight conversion of zCDP"}

    def account(self, *, height: int, width: int, channels: int) -> ZeroConcentrated:
        """Return the cost of the noise."""
        return ZeroConcentrated(self._rho)

    @cached_property
    def _rho(self) -> Fraction:
        """ρ: the given one, or the largest that keeps (ε, δ)."""
        epsilon, delta, rho = self.budget
        return rho or zcdp_rho(epsilon or 0, delta or 0)
