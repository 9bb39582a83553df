"""Composition: what several releases that read the same photo cost together.

Sums are exact rationals. Every rule is a theorem for adaptive composition under one neighbour relation:
pure and approximate guarantees add (Dwork & Roth 2014, theorem 3.16), ρ adds and ε-DP is ε²/2-zCDP (Bun &
Steinke 2016, lemma 1.7 and proposition 1.4), metric guarantees with the same metric add.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Final

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import InvalidParameter, UnsupportedRelation


def compose(guarantees: Sequence[Guarantee]) -> Guarantee:
    """Return one guarantee for releases that all read the same photo.

    A heuristic part makes the whole heuristic. Raises `UnsupportedRelation` where no sound rule exists, and
    `InvalidParameter` for an empty list. Source: docs, "Guarantees".

    >>> photo = Scope("the photo")
    >>> half = Guarantee(kind="pure", epsilon=0.1, relation=Relation("any-image"), scope=photo)
    >>> str(compose([half, half, half]))
    '0.3-DP, any-image'
    """
    if not guarantees:
        raise InvalidParameter("guarantees", None, "is empty", hint="compose at least one")
    total = guarantees[0]
    for part in guarantees[1:]:
        total = _combine(total, part)
    return replace(total, scope=union(*(guarantee.scope for guarantee in guarantees)))


def _combine(a: Guarantee, b: Guarantee) -> Guarantee:
    if "heuristic" in (a.kind, b.kind):
        rule: Callable[[Guarantee, Guarantee], dict[str, object]] | None = _heuristic
    else:
        rule = RULES.get((a.kind, b.kind)) or RULES.get((b.kind, a.kind))
    if rule is None:
        raise UnsupportedRelation(
            f"a {a.kind} and a {b.kind} guarantee do not compose",
            hint="state both as (epsilon, delta), or release them under separate certificates",
        )
    relation = a.relation if rule is _heuristic else weaker(a.relation, b.relation)
    return Guarantee(relation=relation, scope=a.scope, **rule(a, b))  # type: ignore[arg-type]


def weaker(a: Relation, b: Relation) -> Relation:
    """Return the relation under which both guarantees hold: the one with fewer neighbours.

    Photos that differ in at most m pixels are among those that differ in more, and both are among any two
    photos. Raises `UnsupportedRelation` for relations that are not nested.
    """
    if a == b:
        return a
    if not {a.name, b.name} <= {"m-pixels", "any-image"}:
        raise UnsupportedRelation(
            f"guarantees under {a} and {b} do not compose", hint="release them under separate certificates"
        )
    return min(a, b, key=lambda relation: math.inf if relation.m is None else relation.m)


def union(*scopes: Scope) -> Scope:
    """Return the scope of several releases together; what they all cover is said once."""
    covered = [scope.covers for scope in scopes]
    same = next((i for i, covers in enumerate(covered) if covers != covered[0]), len(covered))
    clear = dict.fromkeys(shown for scope in scopes for shown in scope.in_the_clear)
    return Scope("; ".join(covered[same - 1 :]), tuple(clear))


def _heuristic(a: Guarantee, b: Guarantee) -> dict[str, object]:
    known = tuple(dict.fromkeys((a.broken_by or ()) + (b.broken_by or ())))
    return {"kind": "heuristic", "broken_by": known}


def _pure(a: Guarantee, b: Guarantee) -> dict[str, object]:
    return {"kind": "pure", "epsilon": _epsilon(a) + _epsilon(b)}


def _approximate(a: Guarantee, b: Guarantee) -> dict[str, object]:
    delta = min(Fraction(1), (a.delta or Fraction(0)) + (b.delta or Fraction(0)))
    return {"kind": "approximate", "epsilon": _epsilon(a) + _epsilon(b), "delta": delta}


def _zcdp(a: Guarantee, b: Guarantee) -> dict[str, object]:
    return {"kind": "zcdp", "rho": _rho(a) + _rho(b)}


def _metric(a: Guarantee, b: Guarantee) -> dict[str, object]:
    if a.metric != b.metric:
        raise UnsupportedRelation(
            f"metric guarantees under {a.metric!r} and {b.metric!r} do not compose",
            hint="use one metric for all of them",
        )
    ends = (a.diameter, b.diameter)
    diameter = None if None in ends else max(end for end in ends if end is not None)
    return {"kind": "metric", "epsilon": _epsilon(a) + _epsilon(b), "metric": a.metric, "diameter": diameter}


def _epsilon(guarantee: Guarantee) -> Fraction:
    return guarantee.epsilon or Fraction(0)


def _rho(guarantee: Guarantee) -> Fraction:
    return guarantee.rho if guarantee.rho is not None else _epsilon(guarantee) ** 2 / 2


RULES: Final[dict[tuple[str, str], Callable[[Guarantee, Guarantee], dict[str, object]]]] = {
    ("pure", "pure"): _pure,
    ("pure", "approximate"): _approximate,
    ("approximate", "approximate"): _approximate,
    ("zcdp", "zcdp"): _zcdp,
    ("pure", "zcdp"): _zcdp,
    ("metric", "metric"): _metric,
}
