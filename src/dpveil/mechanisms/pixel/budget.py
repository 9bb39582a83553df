"""Methods made of many small draws: one budget as ε, ρ or (ε, δ), and the noise that it allows."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar, Final, NamedTuple, TypeVar

from dpveil.accounting.account import Account
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.parameters import MISSING_HINTS, OptionalPositive, OptionalProbability
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel.base import PixelMethod, check_size
from dpveil.mechanisms.placement import Size

EPSILON: Final = ("epsilon",)
EPSILON_DELTA: Final = ("epsilon", "delta")
RHO: Final = ("rho",)
KIND: Final = {EPSILON: "pure", EPSILON_DELTA: "approximate", RHO: "zcdp"}
"""The numbers of a budget, and the kind of guarantee that they are."""


T = TypeVar("T")


MOST_SIZES: Final = 64
"""Different sizes of regions that are counted as one release where each takes a plan or a calibration."""


def different(sizes: Sequence[Size]) -> list[Size]:
    """Return every size once, in the order in which they come."""
    return list({tuple(size.items()): size for size in sizes}.values())


def only(values: Iterable[T]) -> T | None:
    """Return the one value that all `values` are, or None; of several, only the first two are computed."""
    every = iter(values)
    first = next(every)
    return first if all(value == first for value in every) else None


def least(*costs: Fraction | None) -> Fraction:
    """Return the least of the costs that are known."""
    return min(cost for cost in costs if cost is not None)


class Budget(NamedTuple):
    """The numbers that were given, exactly; the others are None."""

    epsilon: Fraction | None
    delta: Fraction | None
    rho: Fraction | None

    @property
    def given(self) -> tuple[str, ...]:
        """The names of those that were given."""
        return tuple(name for name, value in self._asdict().items() if value is not None)


@dataclass(frozen=True, kw_only=True)
class BudgetedMethod(PixelMethod):
    """Takes ε alone, ε and δ, or ρ, and draws the least noise that a valid accountant allows for it.

    `budgets` are the currencies that a concrete method takes; `account` states what its noise costs in all.
    """

    budgets: ClassVar[tuple[tuple[str, ...], ...]] = (EPSILON, EPSILON_DELTA, RHO)

    epsilon: OptionalPositive = OptionalPositive(optional=True)
    delta: OptionalProbability = OptionalProbability(optional=True)
    rho: OptionalPositive = OptionalPositive(optional=True)

    def __post_init__(self) -> None:
        given = self.budget.given
        if given in self.budgets:
            return
        if not given and EPSILON in self.budgets:
            raise InvalidParameter("epsilon", None, "is missing", hint=MISSING_HINTS["epsilon"])
        ways = [" and ".join(budget) if len(budget) > 1 else f"{budget[0]} alone" for budget in self.budgets]
        raise InvalidParameter(
            "budget",
            " and ".join(given) or None,
            f"is not a budget that {self.name} takes" if given else "is missing",
            hint=f"give {', or '.join(ways)}; rho = 0.5 is about epsilon 4.7 at delta 1e-5",
        )

    @property
    def budget(self) -> Budget:
        """What one release of one region may cost."""
        return Budget(self.epsilon, self.delta, self.rho)

    @property
    def kind(self) -> str:
        """The kind of guarantee, which follows from the budget: pure, approximate or zcdp."""
        return KIND[self.budget.given]

    @abstractmethod
    def account(self, *, height: int, width: int, channels: int) -> Account:
        """Return what the noise of one release of a region costs, in every currency that holds."""

    def cost_of_disjoint(self, total: Guarantee, sizes: Sequence[Size]) -> Guarantee:
        """Return what regions of these sizes cost together; no two overlap, and `total` is their sum.

        A neighbour changes m pixels in all, wherever they lie. So boxes without a common pixel, under noise
        of one scale, are one release of all their cells (docs: accounting, "Regions of one photo"). An (ε, δ)
        is taken over only where that release costs what one region alone does: nothing is calibrated here.
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
        """Return what an account costs in the currency of the budget, as one number beside its δ.

        Raises `InvalidParameter` where it has no finite cost.
        """
        cost = account.rho if self.rho is not None else account.pure
        cost = account.epsilon(self.delta) if self.delta is not None else cost
        if cost is None:
            raise InvalidParameter("budget", self.kind, "is not a currency of this noise")
        return cost

    def relation(self) -> Relation:
        """Return m-pixels where the method has a `neighbourhood` m, and any-image otherwise."""
        m = getattr(self, "neighbourhood", None)
        return Relation("any-image") if m is None else Relation("m-pixels", m)

    def in_the_clear(self) -> tuple[str, ...]:
        """Return what a release shows beside its pixels, such as how long it took; nothing by default."""
        return ()

    def guarantee(self, *, height: int, width: int, channels: int) -> Guarantee:
        """Return the budget as a guarantee, for m pixels or for any two images."""
        height, width, channels = check_size(height, width, channels)
        return Guarantee(
            kind=self.kind,
            **self.budget._asdict(),
            relation=self.relation(),
            scope=Scope(f"{width}×{height} pixels, {channels} channels", self.in_the_clear()),
        )
