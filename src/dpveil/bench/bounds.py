"""The highest success that a guarantee allows any attacker who names people."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence

from dpveil.accounting.compose import whole_region
from dpveil.accounting.meaning import success_bound
from dpveil.core.guarantee import Guarantee
from dpveil.core.rationals import Number, exact


def up(share: Number, digits: int) -> str:
    """Return a bound in digits after the point, rounded up: rounded to the nearest it would be none.

    >>> up(0.12341, 4), up(0.025, 4), up(1, 2)
    ('0.1235', '0.0250', '1.00')
    """
    return f"{math.ceil(exact(share) * 10**digits) / 10**digits:.{digits}f}"


def bound(
    guarantees: Sequence[Guarantee | None], people: Sequence[str], *, pixels: int, whole: bool
) -> float | None:
    """Return the highest expected share of releases whose person any attacker can name, rounded up.

    `guarantees` are those of the releases, whose people are `people`; `pixels` is the most pixels of a
    photo. None where no bound is known: for a heuristic method, for a relation under which photos of two
    people are no neighbours, and where more tells than what was replaced: `whole` says whether that is all of
    every photo and all have one size, else place, surroundings and sizes tell, too. Then all that an attacker
    has, file and certificate, follows from the release and public settings.

    *Proof.* Let w be the largest share of the releases that shows one person, and k the largest integer with
    1/k ≥ w. The attacker gets one release; its photo is drawn at random, and shows person i with probability
    w_i ≤ 1/k. Such a law is a mixture of uniform ones over k people (the vertices of the simplex that is cut
    off at 1/k). Told which k people, an attacker succeeds no less; then `success_bound` holds for k photos,
    all of them neighbours: photos of a person are a mixture, and the divergences are jointly convex. ∎
    """
    if not whole or not people:
        return None
    alone = max(Counter(people).values())
    candidates = len(people) // alone
    if candidates < 2:
        return 1.0
    found = [_bound_of(one, candidates, pixels) for one in guarantees]
    known = [one for one in found if one is not None]
    return max(known) if known and len(known) == len(found) else None


def _bound_of(guarantee: Guarantee | None, candidates: int, pixels: int) -> float | None:
    if guarantee is None or not guarantee.formal or guarantee.relation.name == "singular-values":
        return None
    grouped = whole_region(guarantee, pixels)
    return None if grouped is None else success_bound(grouped, candidates)
