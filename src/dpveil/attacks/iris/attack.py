"""The attack: whose iris a release shows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Final

import numpy as np

from dpveil.attacks.base import CONTEXT, PIXELS, Attack, Background, Fitted, Scores, View
from dpveil.attacks.iris.circles import eye
from dpveil.attacks.iris.codes import Code, code, distance
from dpveil.attacks.memo import Memo
from dpveil.attacks.vectors import UNKNOWN, check_people

FOUND: Final[Memo[Code | None]] = Memo()


@dataclass(frozen=True)
class Iris(Attack):
    """Names the person one of whose irises is nearest: a recogniser as it is, which learns nothing.

    A release in which no pupil is found is a failure. After a median filter, as Reilly & Fan attack Snow, it
    is `denoised:median:3(iris)`. Source: Daugman 1993, 2004, 2007.
    """

    name: ClassVar[str] = "iris"
    summary: ClassVar[str] = "iris code of the eye found, nearest code of a clean photo"
    sees: ClassVar[tuple[str, ...]] = (PIXELS, CONTEXT)

    @property
    def about(self) -> str:
        """What photos have to show: eyes."""
        return "eyes"

    @property
    def enrols(self) -> bool:
        """Whether it can enrol new people: yes, it learns nothing of anybody but codes."""
        return True

    def fit(self, background: Background) -> Fitted:
        """Return the attacker that has everybody's iris codes.

        Raises `InvalidParameter` for a background without two people.
        """
        return _Known.of(background)


@dataclass(frozen=True, eq=False)
class _Known(Fitted):
    names: tuple[str, ...]
    owners: np.ndarray
    codes: tuple[Code, ...]

    @classmethod
    def of(cls, background: Background) -> _Known:
        check_people(background)
        found = [_code(view) for view in background.clean]
        rows = [row for row, one in enumerate(found) if one is not None]
        known = tuple(one for one in found if one is not None)
        return cls(background.names, background.owners[rows], known)

    def enrol(self, gallery: Background) -> Fitted:
        """Return the attacker that has the iris codes of a gallery."""
        return _Known.of(gallery)

    def score(self, releases: Sequence[View]) -> Scores:
        likeness = np.full((len(releases), len(self.names)), np.nan)
        for row, view in enumerate(releases):
            own = _code(view)
            if own is not None and self.codes:
                likeness[row] = UNKNOWN
                np.maximum.at(likeness[row], self.owners, -distance(own, self.codes))
        return Scores(likeness, self.names)


def _code(view: View) -> Code | None:
    """Return the iris code of the eye in a view; None if no pupil is found."""

    def made() -> Code | None:
        found = eye(view.image)
        return None if found is None else code(view.image, found)

    return FOUND(view.image, "", made)
