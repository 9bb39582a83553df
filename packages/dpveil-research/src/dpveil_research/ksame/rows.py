"""Rows of the table: one attack on one method at one setting."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from jaxtyping import Float64

from dpveil.attacks import Identified
from dpveil_research.results import Row, estimate

VERY: Final = "very photos"
GROUPS: Final = "knows the groups"
OTHER_BEST: Final = "strongest, other photos"
VERY_BEST: Final = f"strongest, {VERY}"


@dataclass(frozen=True)
class Place:
    """The setting of a row. `releases` is 1 or 2, `known` how many of the others an attacker can exclude."""

    dataset: str
    question: str
    method: str
    x: str
    releases: int = 1
    known: int = 0


def row(
    place: Place,
    attack: str,
    found: Identified,
    *,
    limit: float | None = None,
    ssim: Float64[np.ndarray, " n"] | None = None,
) -> Row:
    """Return the success rate of an attack with its 95 % interval over people, chance, and its limit, if
    known.

    `limit` is 1/k for k-same, which holds for one release only, and the bound of `best_success` otherwise.
    """
    low, high = found.interval()
    return {
        "dataset": place.dataset,
        "question": place.question,
        "method": place.method,
        "x": place.x,
        "releases": str(place.releases),
        "known": str(place.known),
        "attack": attack,
        **estimate("rate", (found.rate, low, high), ".5g"),
        "limit": "" if limit is None else f"{limit:.5g}",
        "chance": f"{found.chance:.5g}",
        "ssim": "" if ssim is None else f"{ssim.mean():.4g}",
        "tries": str(len(found.people)),
        "people": str(len(set(found.people))),
    }


def share(values: Float64[np.ndarray, " n"], people: Sequence[str], chance: float) -> Identified:
    """Return success probabilities, one per try, as an attack's result."""
    return Identified(values, tuple(people), chance)


def strongest(rows: Sequence[Row]) -> list[Row]:
    """Return the rows with the highest rates, as attackers are free to choose.

    One is of those who hold other photos of everybody, one of those who hold the very photos, if any.
    """
    very = [VERY in one["attack"] or one["attack"] == GROUPS for one in rows]
    found = []
    for name, wanted in ((OTHER_BEST, False), (VERY_BEST, True)):
        of_it = [one for one, is_very in zip(rows, very, strict=True) if is_very == wanted]
        if of_it:
            found.append(max(of_it, key=lambda one: float(one["rate"])) | {"attack": name})
    return found
