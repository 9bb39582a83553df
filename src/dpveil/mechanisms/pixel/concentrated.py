"""Methods of Gaussian noise, whose budget is ρ, or ε and δ."""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from functools import cached_property
from typing import ClassVar

from dpveil.accounting import zcdp_rho
from dpveil.accounting.account import ZeroConcentrated
from dpveil.mechanisms.pixel.budget import EPSILON_DELTA, RHO, BudgetedMethod


class ConcentratedMethod(BudgetedMethod):
    """Takes ρ, or ε and δ, and then the largest ρ that keeps them: Gaussian noise has no pure ε."""

    kinds: ClassVar[tuple[str, ...]] = ("zcdp", "approximate")
    budgets: ClassVar[tuple[tuple[str, ...], ...]] = (RHO, EPSILON_DELTA)
    calibrations: ClassVar[Mapping[str, str]] = {"approximate": "the tight conversion of zCDP"}

    def account(self, *, height: int, width: int, channels: int) -> ZeroConcentrated:
        """Return what the noise costs."""
        return ZeroConcentrated(self._rho)

    @cached_property
    def _rho(self) -> Fraction:
        epsilon, delta, rho = self.budget
        return rho or zcdp_rho(epsilon or 0, delta or 0)
