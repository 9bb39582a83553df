"""Composition: the total cost of several releases that read the same photo.

Sums are exact rationals. Every rule is a theorem for adaptive composition under one neighbour relation: pure
and approximate guarantees add (Dwork & Roth 2014, theorem 3.16), ρ adds and ε-DP is ε²/2-zCDP (Bun & Steinke
2016, lemma 1.7 and proposition 1.4). For metric guarantees with the same distance, each about its own region
or query, ε adds and d is the largest of their distances: Σ ε_i·d_i ≤ (Σ ε_i)·max d_i. Distances are compared
as data; a guarantee whose distance is only known in words does not compose.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any, Final

from dpveil.core.guarantee import KINDS, Guarantee, Relation, Scope
from dpveil.core.rationals import float_above
from dpveil.errors import InvalidParameter, UnsupportedRelation

MOST_POWER: Final = 700  # exponent kε above which δ is taken as 1: e^(kε) is near the largest float
SMALLEST_EPSILON: Final = Fraction(1, 10**300)
"""Replaces smaller ε above 0; δ of a group grows with ε, so this is sound."""
SLACK: Final = Fraction(1, 2**40)
"""A bound on the relative rounding error of the exponentials, which is a few units of 2^-53."""
EXACT_BITS: Final = 4096
"""Powers with at most this many bits are computed exactly; longer ones are rounded to `WORK_BITS`."""
WORK_BITS: Final = 256
DIGITS: Final = 12  # decimals of a probability that is stated


def whole_region(guarantee: Guarantee, pixels: int) -> Guarantee | None:
    """Return the guarantee about any two photos that follows by group privacy, or None if no rule is known.

    k·m pixels are k steps of m. Chaining the definition gives kε for pure guarantees and (kε, δ·(1 + e^ε + …
    + e^((k-1)ε))) for approximate ones, rounded up; zCDP gives k²ρ (Bun & Steinke 2016, proposition 1.9).
    `pixels` is the number of pixels in the region.
    """
    if guarantee.relation.m is None:
        return guarantee
    steps = -(-pixels // guarantee.relation.m)
    if steps <= 1:
        return guarantee
    epsilon, delta, rho = (getattr(guarantee, name) or Fraction(0) for name in ("epsilon", "delta", "rho"))
    rules: dict[str, dict[str, Fraction]] = {
        "pure": {"epsilon": epsilon * steps},
        "approximate": {"epsilon": epsilon * steps, "delta": _group_delta(epsilon, delta, steps)},
        "zcdp": {"rho": rho * steps**2},
    }
    if guarantee.kind not in rules:
        return None
    return replace(guarantee, relation=Relation("any-image"), **rules[guarantee.kind])  # type: ignore[arg-type]


def _group_delta(epsilon: Fraction, delta: Fraction, steps: int) -> Fraction:
    """Return δ·(e^(kε) - 1)/(e^ε - 1), rounded up and at most one."""
    if epsilon == 0:
        return min(Fraction(1), steps * delta)
    power = steps * max(epsilon, SMALLEST_EPSILON)
    if power > MOST_POWER:
        return Fraction(1)
    growth = math.expm1(float_above(power)) / math.expm1(-float_above(-max(epsilon, SMALLEST_EPSILON)))
    return min(Fraction(1), delta * Fraction(growth) * (1 + SLACK))


def any_of(chance: Fraction, count: int) -> Fraction:
    """Return the chance of at least one of `count` independent events, rounded up to 12 decimals.

    >>> any_of(Fraction(1, 100), 1), any_of(Fraction(1, 100), 2)
    (Fraction(1, 100), Fraction(199, 10000))
    """
    if chance.denominator.bit_length() * count <= EXACT_BITS:
        exact = 1 - (1 - chance) ** count
    else:
        exact = 1 - Fraction(_power_below(1 - chance, count), 1 << WORK_BITS)
    unit = 10**DIGITS
    return Fraction(-(-exact.numerator * unit // exact.denominator), unit)


def _power_below(base: Fraction, count: int) -> int:
    """Return base^count in units of 2^-WORK_BITS, rounded down at every product."""
    square, result = (base.numerator << WORK_BITS) // base.denominator, 1 << WORK_BITS
    while count:
        if count & 1:
            result = result * square >> WORK_BITS
        square = square * square >> WORK_BITS
        count >>= 1
    return result


Parts = Sequence[Guarantee]


def compose(guarantees: Parts) -> Guarantee:
    """Return one guarantee for releases that all read the same photo, in any order.

    It holds under the weakest of their relations (`meet`). One heuristic part makes the whole heuristic, with
    the relation of the first part. Raises `UnsupportedRelation` if no sound rule exists, and
    `InvalidParameter` for an empty list and for items that are not guarantees. Source: docs, "Guarantees".

    >>> photo = Scope("the photo")
    >>> half = Guarantee(kind="pure", epsilon=0.1, relation=Relation("any-image"), scope=photo)
    >>> str(compose([half, half, half]))
    '0.3-DP, any-image'
    """
    _check(guarantees)
    scope = union(*(part.scope for part in guarantees))
    if len(guarantees) == 1:
        return replace(guarantees[0], scope=scope)
    kinds = frozenset(part.kind for part in guarantees)
    if "heuristic" in kinds:
        known = dict.fromkeys(way for part in guarantees for way in part.broken_by or ())
        relation = guarantees[0].relation
        return Guarantee(kind="heuristic", broken_by=tuple(known), relation=relation, scope=scope)
    if kinds not in RULES:
        raise UnsupportedRelation(
            f"{' and '.join(sorted(kinds))} guarantees do not compose",
            hint="convert all to (epsilon, delta), or release them under separate certificates",
        )
    kind, relation = RULES[kinds], meet(*(part.relation for part in guarantees))
    names = ("epsilon", "delta", "rho")
    sums = {
        name: sum((getattr(one, name) or Fraction(0) for one in guarantees), Fraction(0)) for name in names
    }
    sums["delta"] = min(Fraction(1), sums["delta"])
    sums["rho"] += sum((part.epsilon**2 / 2 for part in guarantees if part.epsilon), Fraction(0))
    numbers: dict[str, Any] = {name: sums[name] for name in KINDS[kind] if name in sums}
    more = _metric(guarantees) if kind == "metric" else {}
    return Guarantee(kind=kind, relation=relation, scope=scope, **numbers, **more)


def _check(guarantees: object) -> None:
    parts = guarantees if isinstance(guarantees, Sequence) else [guarantees]
    wrong = [part for part in parts if not isinstance(part, Guarantee)]
    if parts is not guarantees or wrong:
        kind = type(wrong[0] if wrong else guarantees).__name__
        hint = "give a list of them, such as release.certificate.guarantees"
        raise InvalidParameter("guarantees", kind, "is not a list of guarantees", hint=hint)
    if not parts:
        raise InvalidParameter("guarantees", None, "is empty", hint="compose at least one")


def meet(*relations: Relation) -> Relation:
    """Return the relation among these that all others imply, so that every guarantee holds under it.

    Raises `UnsupportedRelation` if none is known to be implied by all.

    >>> str(meet(Relation("any-image"), Relation("m-pixels", 16), Relation("latent-cell")))
    'm-pixels (m = 16)'
    """
    different = dict.fromkeys(relations)
    for relation in different:
        if all(other.implies(relation) for other in different):
            return relation
    raise UnsupportedRelation(
        f"guarantees under {' and '.join(map(str, different))} do not compose",
        hint="release them under separate certificates",
    )


def union(*scopes: Scope) -> Scope:
    """Return the scope of several releases together, without repeating what they share."""
    covered = [scope.covers for scope in scopes]
    same = next((i for i, covers in enumerate(covered) if covers != covered[0]), len(covered))
    clear = dict.fromkeys(shown for scope in scopes for shown in scope.in_the_clear)
    return Scope("; ".join(covered[same - 1 :]), tuple(clear))


def _metric(parts: Parts) -> dict[str, Any]:
    """Return the metric of all parts, and the largest of their diameters."""
    metrics = dict.fromkeys(part.metric for part in parts)
    distances = dict.fromkeys(part.distance for part in parts)
    if None in distances or len(distances) > 1:
        unknown = ", of which one is only known in words," if None in distances else ""
        raise UnsupportedRelation(
            f"metric guarantees under {' and '.join(map(repr, metrics))}{unknown} do not compose",
            hint="use one metric for all of them, or promises of another kind",
        )
    ends = [part.diameter for part in parts if part.diameter is not None]
    diameter = max(ends) if len(ends) == len(parts) else None
    return {"metric": parts[0].metric, "distance": parts[0].distance, "diameter": diameter}


RULES: Final = {
    frozenset({"pure"}): "pure",
    frozenset({"approximate"}): "approximate",
    frozenset({"pure", "approximate"}): "approximate",
    frozenset({"zcdp"}): "zcdp",
    frozenset({"pure", "zcdp"}): "zcdp",
    frozenset({"metric"}): "metric",
}
"""The kind of guarantee in which parts of these kinds compose."""
