"""The cost of many draws under three definitions: pure ε-DP, ρ-zCDP and (ε, δ)-DP.

A method made of many small draws has one account per region. Noise is calibrated against it for a budget in
any of the three, and a release may state all that hold.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Final

from dpveil.accounting.compose import compose, meet, union
from dpveil.accounting.zcdp import (
    SMALLEST_DELTA,
    Shifts,
    float_slack,
    laplace_epsilon,
    laplace_rho,
    pure_epsilon,
    zcdp_epsilon,
)
from dpveil.core.guarantee import Guarantee
from dpveil.core.parameters import probability
from dpveil.core.rationals import Number, exact, float_above
from dpveil.errors import InvalidParameter, UnsupportedRelation

KINDS: Final = ("pure", "approximate", "zcdp")  # kinds of guarantee that convert to (ε, δ)


def to_approximate(guarantees: Sequence[Guarantee], delta: Number) -> Guarantee:
    """Return one (ε, δ) guarantee, at this δ, for releases that may all concern the same person.

    ε is the smallest of three sound accounts: basic composition; composition as zCDP, where (ε, δ)-DP counts
    as δ-approximate ε²/2-zCDP (Bun & Steinke 2016, §8); and, without zCDP parts, the pessimistic privacy loss
    distribution of the worst mechanisms with these parameters (Kairouz, Oh & Viswanath 2015, by
    `dp_accounting`). One heuristic part makes the whole heuristic. Raises `InvalidParameter` unless δ is
    above the sum of the parts' own, and `UnsupportedRelation` for metric parts and for relations that do not
    compose.

    >>> from dpveil.core.guarantee import Relation, Scope
    >>> one = Guarantee(kind="pure", epsilon="0.1", relation=Relation("any-image"), scope=Scope("a photo"))
    >>> float(compose([one] * 400).epsilon), round(float(to_approximate([one] * 400, "1e-6").epsilon), 1)
    (40.0, 10.9)
    """
    wanted = probability(delta, "delta")
    if not guarantees or any(part.kind not in KINDS for part in guarantees):
        return _refuse_or_heuristic(guarantees)
    spent = sum((part.delta or Fraction(0) for part in guarantees), Fraction(0))
    if spent >= wanted:
        raise InvalidParameter(
            "delta",
            delta,
            "is not above the sum of the parts' own deltas",
            hint=f"choose more than {float(spent):.3g}",
        )
    relation, scope = meet(*(part.relation for part in guarantees)), union(*(p.scope for p in guarantees))
    epsilon = min(_candidates(guarantees, wanted, wanted - spent))
    return Guarantee(kind="approximate", epsilon=epsilon, delta=wanted, relation=relation, scope=scope)


def _candidates(parts: Sequence[Guarantee], delta: Fraction, left: Fraction) -> list[Fraction]:
    epsilons = [part.epsilon or Fraction(0) for part in parts]
    rho = sum((part.rho or Fraction(0) for part in parts), Fraction(0))
    basic = sum(epsilons, Fraction(0)) + (zcdp_epsilon(rho, left) if rho else 0)
    as_zcdp = zcdp_epsilon(rho + sum(epsilon**2 for epsilon in epsilons) / 2, left)
    if rho or delta < SMALLEST_DELTA or left <= 2 * float_slack(len(parts)):
        return [basic, as_zcdp]
    by_pld = _pld_epsilon(parts, delta)
    return [basic, as_zcdp] + ([] if by_pld is None else [by_pld])


def _pld_epsilon(parts: Sequence[Guarantee], delta: Fraction) -> Fraction | None:
    from dp_accounting.pld import common, privacy_loss_distribution  # slow to import: a second

    counts = Counter((part.epsilon or Fraction(0), part.delta or Fraction(0)) for part in parts)
    grid = max(1e-4, float(max(epsilon for epsilon, _ in counts)) / 100)
    total = None
    for (epsilon, own), count in counts.items():
        worst = common.DifferentialPrivacyParameters(float_above(epsilon), float_above(own))
        one = privacy_loss_distribution.from_privacy_parameters(worst, value_discretization_interval=grid)
        many = one.self_compose(count)
        total = many if total is None else total.compose(many)
    found = 0.0 if total is None else total.get_epsilon_for_delta(float(delta) - float_slack(len(parts)))
    # exact() reads the shortest decimal of a float, which may be below it: take the next float.
    return None if found == math.inf else exact(math.nextafter(found, math.inf), "epsilon")


def _refuse_or_heuristic(guarantees: Sequence[Guarantee]) -> Guarantee:
    if any(part.kind == "heuristic" for part in guarantees):
        return compose(guarantees)
    if not guarantees:
        raise InvalidParameter("guarantees", None, "is empty", hint="compose at least one")
    kinds = ", ".join(sorted({part.kind for part in guarantees}))
    raise UnsupportedRelation(
        f"{kinds} guarantees are not stated as (epsilon, delta)", hint="compose metric guarantees separately"
    )


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
    """Discrete Laplace noise of one scale on integers, which a neighbour changes by at most `shifts`.

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
        return self.spent

    def epsilon(self, delta: Fraction) -> Fraction:
        return zcdp_epsilon(self.spent, delta)
