"""Methods made of many small draws: a budget as ε, ρ or (ε, δ), and the noise calibrated to it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from functools import cached_property
from typing import ClassVar, Final, NamedTuple, TypeVar

from dpveil.accounting import zcdp_rho
from dpveil.accounting.account import Account, ZeroConcentrated
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import MISSING_HINTS, OptionalPositive, OptionalProbability
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel.base import PixelMethod, check_size
from dpveil.mechanisms.placement import Size

EPSILON: Final = ("epsilon",)
EPSILON_DELTA: Final = ("epsilon", "delta")
RHO: Final = ("rho",)
KIND: Final = {EPSILON: "pure", EPSILON_DELTA: "approximate", RHO: "zcdp"}
"""The kind of guarantee of each budget, by the names of its numbers."""


T = TypeVar("T")


MOST_SIZES: Final = 64
"""Most different region sizes that are accounted as one release, where each needs its own calibration."""


def different(sizes: Sequence[Size]) -> list[Size]:
    """Return the distinct sizes, in order of appearance."""
    return list({tuple(size.items()): size for size in sizes}.values())


def only(values: Iterable[T]) -> T | None:
    """Return the common value of all `values`, or None if they differ; stops at the first difference."""
    every = iter(values)
    first = next(every)
    return first if all(value == first for value in every) else None


def least(*costs: Fraction | None) -> Fraction:
    """Return the smallest of the costs that are not None."""
    return min(cost for cost in costs if cost is not None)


class Budget(NamedTuple):
    """The numbers of a budget, exactly; those not given are None."""

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None

    @property
    def given_names(self) -> tuple[str, ...]:
        """The names of the numbers that are given."""
        return tuple(name for name, value in self._asdict().items() if value is not None)


@dataclass(frozen=True, kw_only=True)
class BudgetedMethod(PixelMethod):
    """A method that takes ε, (ε, δ) or ρ, and draws the least noise that a valid accountant allows.

    `budgets` are the definitions that a concrete method accepts, and `calibrations` the accountant that
    chooses the noise, by kind of guarantee; `account` states the total cost of its noise.
    """

    budgets: ClassVar[tuple[tuple[str, ...], ...]] = (EPSILON, EPSILON_DELTA, RHO)
    calibrations: ClassVar[Mapping[str, str]] = {}

    epsilon: OptionalPositive = OptionalPositive(optional=True)
    delta: OptionalProbability = OptionalProbability(optional=True)
    rho: OptionalPositive = OptionalPositive(optional=True)

    def __post_init__(self) -> None:
        given = self.budget.given_names
        if given in self.budgets:
            return
        if not given and EPSILON in self.budgets:
            raise InvalidParameter("epsilon", None, "is missing", hint=MISSING_HINTS["epsilon"])
        named = [[f"{{{name}}}" for name in budget] for budget in self.budgets]
        ways = [" and ".join(names) if len(names) > 1 else f"{names[0]} alone" for names in named]
        raise InvalidParameter(
            "budget",
            " and ".join(given) or None,
            f"is not a budget that {self.name} takes" if given else "is missing",
            hint=f"give {', or '.join(ways)}; rho = 0.5 is about epsilon 4.7 at delta 1e-5",
            arguments={name: name for name in Budget._fields},
        )

    @property
    def budget(self) -> Budget:
        """The cost of one release of one region."""
        return Budget(self.epsilon, self.delta, self.rho)

    @property
    def kind(self) -> str:
        """The kind of guarantee, which follows from the budget: pure, approximate or zcdp."""
        return KIND[self.budget.given_names]

    @property
    def calibration(self) -> str:
        """The accountant that determined the noise."""
        return self.calibrations.get(self.kind, "")

    @abstractmethod
    def account(self, *, height: int, width: int, channels: int) -> Account:
        """Return the cost of the noise of one release of a region under every definition that holds."""

    def cost_of_disjoint(self, total: Guarantee, sizes: Sequence[Size]) -> Guarantee:
        """Return the total cost of disjoint regions of these sizes; `total` is the sum of their costs.

        A neighbour changes m pixels in all, wherever they lie. So disjoint boxes with noise of one scale are
        one release of all their cells (docs: accounting, "Regions of one photo"). An (ε, δ) is only replaced
        if that release costs as much as one region alone, as nothing is calibrated here.
        """
        account = self.account_of(sizes, total.relation.m)
        if account is None:
            return total
        if any(account == self.account(**size) for size in different(sizes)):
            return replace(total, epsilon=self.epsilon, delta=self.delta, rho=self.rho)
        if total.kind == "zcdp":
            return replace(total, rho=least(account.rho, total.rho))
        return replace(total, epsilon=least(account.pure, total.epsilon)) if total.kind == "pure" else total

    @property
    def limit(self) -> Fraction:
        """The number of the budget that `spent` must not exceed: ε or ρ."""
        return self.rho or self.epsilon or Fraction(0)

    def spent(self, account: Account) -> Fraction:
        """Return the cost of an account in the unit of the budget: ρ, or ε at the budget's δ if there is one.

        Raises `InvalidParameter` if the account has no finite cost in that unit.
        """
        cost = account.rho if self.rho is not None else account.pure
        cost = account.epsilon(self.delta) if self.delta is not None else cost
        if cost is None:
            raise InvalidParameter("budget", self.kind, "is not a currency of this noise")
        return cost

    def relation(self) -> Relation:
        """Return m-pixels if the method has a `neighbourhood` m, else any-image."""
        m = getattr(self, "neighbourhood", None)
        return Relation("any-image") if m is None else Relation("m-pixels", m)

    def in_the_clear(self) -> tuple[str, ...]:
        """Return what a release reveals besides its pixels, such as its time; nothing by default."""
        return ()

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return the budget as a guarantee, about m pixels or any two images."""
        height, width, channels = check_size(height, width, channels)
        return Guarantee(
            kind=self.kind,
            **self.budget._asdict(),
            relation=self.relation(),
            scope=Scope(f"{width}×{height} pixels, {channels} channels", self.in_the_clear()),
        )


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
