"""Attackers that remember releases: each is scored by a copy that knows of no other."""

from __future__ import annotations

import threading
from collections.abc import Sequence

import numpy as np
import pytest

from dpveil.attacks.base import Background, Fitted, Scores, View
from dpveil.bench.measuring import Released, Spent, attacked_apart, scored
from dpveil.errors import PluginError
from people_made import background, picture, view

SHOWN = [(view(picture(person, 9)), None) for person in range(6)]
NAMES = tuple(f"person {person}" for person in range(4))


class Remembering(Fitted):
    """Says how many releases it has seen, and enrolments."""

    def __init__(self) -> None:
        self.seen: list[View] = []
        self.enrolled = 0
        self.array = np.zeros(1)

    def score(self, releases: Sequence[View]) -> Scores:
        self.seen += releases
        self.array += len(releases)
        return Scores(
            np.full((len(releases), 4), len(self.seen) + self.array[0] + 100 * self.enrolled), NAMES
        )

    def enrol(self, gallery: Background) -> Fitted:
        self.enrolled += 1
        return self


def local() -> Fitted:
    class Inner(Remembering):
        """Cannot be pickled."""

    return Inner()


@pytest.mark.parametrize("make", [Remembering, local])
def test_no_release_is_scored_by_what_is_known_of_another(make: type[Remembering]) -> None:
    fitted = make()
    assert (scored(fitted, SHOWN, NAMES).likeness == 2).all()
    assert not fitted.seen, "it is never used itself"
    assert (scored(fitted, SHOWN, NAMES, joint=True).likeness == 12).all()


def test_no_gallery_is_enrolled_by_what_is_known_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    own = background(4, 2)
    known = tuple(type("Item", (), {"person": person})() for person in own.people)
    shown = tuple((one, None) for one in own.clean)
    releases = Released(
        known, known[:2], own.clean, shown, tuple(SHOWN[:2]), Spent(), (), frozenset(own.people[:4])
    )
    attack = type("Attack", (), {"fit": lambda self, learnt: Remembering()})()
    found, _ = attacked_apart(attack, releases, NAMES)  # type: ignore[arg-type]
    assert (found.likeness == 102).all()


def test_an_attacker_that_cannot_be_copied_is_refused_in_one_line() -> None:
    fitted = Remembering()
    fitted.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match=r"Remembering cannot be copied.*pickled") as told:
        scored(fitted, SHOWN, NAMES)
    assert "\n" not in str(told.value)
