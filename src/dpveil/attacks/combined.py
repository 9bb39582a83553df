"""Attacks together: several by one name, and an attack by its label, such as restored(pixels)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import ClassVar, Final

import numpy as np
from scipy.optimize import minimize
from scipy.special import logsumexp

from dpveil.attacks.base import SEES, Attack, Background, Fitted, Scores, View, has_extra
from dpveil.attacks.measures import standard
from dpveil.attacks.preprocessing import Wrapped
from dpveil.attacks.surroundings import Context, Placement
from dpveil.attacks.vectors import check_people
from dpveil.core.array_types import Bool, Float64
from dpveil.core.registry import ATTACKS
from dpveil.errors import InvalidParameter

LARGEST_WEIGHT: Final = 20.0  # largest weight of an attacker


@dataclass(frozen=True)
class Joint(Attack):
    """Adds up the scores of several attackers, each weighted by what it is worth.

    Scores are standardised over people; weights are those under which held-out photos of the attacker's own
    are likeliest to show their people. An attacker who says nothing of a release adds nothing there.
    """

    name: ClassVar[str] = "joint"
    summary: ClassVar[str] = (
        "the weighted sum of several attacks' scores, of placement and context by default"
    )
    sees: ClassVar[tuple[str, ...]] = SEES

    parts: tuple[Attack, ...] = field(default_factory=lambda: (Placement(), Context()))

    def __post_init__(self) -> None:
        if not self.parts:
            raise InvalidParameter("parts", None, "are none", hint="such as (Placement(), Context())")

    @property
    def label(self) -> str:
        return "+".join(part.label for part in self.parts)

    @property
    def reads(self) -> tuple[str, ...]:
        return tuple(kind for kind in SEES if any(kind in part.reads for part in self.parts))

    @property
    def opens(self) -> bool:
        return any(part.opens for part in self.parts)

    @property
    def extras(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(extra for part in self.parts for extra in part.extras))

    def fit(self, background: Background) -> Fitted:
        check_people(background)
        weights = self._weights(background)
        return _Joint(tuple(part.fit(background) for part in self.parts), weights, background.names)

    def _weights(self, background: Background) -> Float64[np.ndarray, " parts"]:
        place, count = background.places, np.bincount(background.owners)[background.owners]
        held = np.where(
            count < 3, place == 1, place % 3 == 2
        )  # every third photo of a person, of two the second
        if (
            len(self.parts) == 1
            or not held.any()
            or len(set(background.owners[~held])) < len(background.names)
        ):
            return np.ones(len(self.parts))
        learnt, tried = _restrict(background, ~held), _restrict(background, held)
        scores = [standard(part.fit(learnt).score(tried.released)) for part in self.parts]
        return fit_weights(
            np.stack(scores), np.searchsorted(np.array(background.names), np.array(tried.people))
        )


@dataclass(frozen=True, eq=False)
class _Joint(Fitted):
    parts: tuple[Fitted, ...]
    weights: Float64[np.ndarray, " parts"]
    names: tuple[str, ...]

    def score(self, releases: Sequence[View]) -> Scores:
        found = [part.score(releases) for part in self.parts]
        whole = np.tensordot(self.weights, np.stack([standard(one) for one in found]), 1)
        silent = np.all([~np.isfinite(one.likeness).all(axis=1) for one in found], axis=0)
        whole[silent] = np.nan
        return Scores(whole, self.names)


def fit_weights(
    scores: Float64[np.ndarray, "parts n people"], owners: np.ndarray
) -> Float64[np.ndarray, " parts"]:
    """Return the weights, 0 to `LARGEST_WEIGHT`, at which owners are likeliest by a softmax of the sum."""
    rows = np.arange(len(owners))

    def loss(weights: np.ndarray) -> tuple[float, np.ndarray]:
        whole = np.tensordot(weights, scores, 1)
        logs = whole - logsumexp(whole, axis=1, keepdims=True)
        expected = (np.exp(logs) * scores).sum(axis=2).mean(axis=1)
        return -float(logs[rows, owners].mean()), expected - scores[:, rows, owners].mean(axis=1)

    found = minimize(loss, np.ones(len(scores)), jac=True, bounds=[(0, LARGEST_WEIGHT)] * len(scores))
    return np.asarray(found.x, np.float64) if found.x.any() else np.ones(len(scores))


def _restrict(background: Background, kept: Bool[np.ndarray, " n"]) -> Background:
    rows = np.flatnonzero(kept)
    lists = (background.clean, background.released, background.people)
    return Background(*(tuple(one[row] for row in rows) for one in lists))  # type: ignore[arg-type]


LONGEST: Final = 200  # most characters of a label
HINT: Final = "such as pixels, restored(embedding) or context+placement+pixels"


def attack(label: str) -> Attack:
    """Return the attack with this label: `name`, `name:setting`, `wrapper(label)` or `label+label`.

    Raises `UnknownName` for a name that is not in the registry, `InvalidParameter` for other text, and what
    the attack raises for its setting.

    >>> attack("context+restored(pixels)").reads
    ('pixels', 'context')
    >>> attack("denoised:median:3(embedding)").step
    'median:3'
    """
    if not label or len(label) > LONGEST:
        raise InvalidParameter("attack", label[:LONGEST], "is no label", hint=HINT)
    parts = _split(label)
    if len(parts) > 1:
        return Joint(tuple(attack(part) for part in parts))
    head, bracket, rest = label.strip().partition("(")
    name, colon, setting = head.partition(":")
    kind = ATTACKS[name]
    if bracket and not (issubclass(kind, Wrapped) and rest.endswith(")")):
        raise InvalidParameter("attack", label, "is no label", hint=HINT)
    if colon and not (setting and hasattr(kind, "of")):
        raise InvalidParameter("attack", label, "has a setting that it does not take", hint=HINT)
    made: Attack = kind.of(setting) if colon else kind()
    return replace(made, inner=attack(rest[:-1])) if bracket else made  # type: ignore[type-var]


def usable(labels: Sequence[str] | None = None) -> list[Attack]:
    """Return the attacks with these labels, or all of the registry's; only those whose extras are there."""
    made = [attack(label) for label in (ATTACKS if labels is None else labels)]
    return [one for one in made if not missing(one)]


def missing(of: Attack) -> tuple[str, ...]:
    """Return the extras that an attack needs and that are not installed."""
    return tuple(extra for extra in of.extras if not has_extra(extra))


def _split(text: str) -> list[str]:
    """Return the parts between pluses that are in no brackets."""
    parts, depth = [""], 0
    for letter in text:
        depth += (letter == "(") - (letter == ")")
        if letter == "+" and depth == 0:
            parts.append("")
        else:
            parts[-1] += letter
    return parts
