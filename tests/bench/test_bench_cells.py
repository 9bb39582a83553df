"""Bounds of guarantees, and files of cells that are none."""

from __future__ import annotations

import json
import threading
from collections.abc import Sequence

import numpy as np
import pytest

from dpveil.attacks.base import Fitted, Scores, View
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.bench.bounds import bound
from dpveil.bench.cells import Cell, parse
from dpveil.bench.data import load
from dpveil.bench.measuring import cells, score_releases
from dpveil.bench.setting import Setting
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import DataError, PluginError
from people_made import folder, picture, view


@pytest.fixture(scope="module")
def cell(tmp_path_factory: pytest.TempPathFactory) -> Cell:
    """Return the cell of an attack on clean photos of two people."""
    data = load(folder(tmp_path_factory.mktemp("data") / "made", people=2, photos=3))
    (found,) = cells(data, Setting(None), [PixelDiscriminant()], 0)
    return found


def guarantee(kind: str, relation: Relation, **numbers: object) -> Guarantee:
    return Guarantee(kind=kind, relation=relation, scope=Scope("a photo"), **numbers)  # type: ignore[arg-type]


def test_bounds_of_guarantees() -> None:
    people = [str(k) for k in range(10)]
    whole = {"pixels": 64, "whole": True}
    pure = guarantee("pure", Relation("any-image"), epsilon=1)
    e = float(np.e)
    assert bound([pure] * 10, people, **whole) == pytest.approx(e / (e + 9))
    assert bound([pure] * 12, [*people, "0", "1"], **whole) == pytest.approx(e / (e + 5))
    assert bound([pure] * 10, ["0"] * 10, **whole) == 1
    few = guarantee("pure", Relation("m-pixels", 16), epsilon="0.5")
    assert bound([few] * 10, people, **whole) == pytest.approx(e**2 / (e**2 + 9))
    assert bound([pure, few] * 5, people, **whole) == pytest.approx(e**2 / (e**2 + 9))
    assert bound([pure] * 10, people, pixels=64, whole=False) is None
    assert bound([pure] * 9 + [None], people, **whole) is None
    vectors = guarantee("metric", Relation("singular-values"), epsilon=1, metric="euclidean", diameter=1)
    assert bound([vectors] * 10, people, **whole) is None


GOOD = {
    "utility": {"ssim": [0.5, None]},
    "people": [0, 1],
    "right": [1.0, 0.0],
    "near": [1.0, 1.0],
    "answered": [True, True],
}


@pytest.mark.parametrize("change", [{"people": None}, {"utility": None}, {"more": 1}, {"format": "x"}])
def test_what_is_no_cell_is_refused_in_one_line(cell: Cell, change: dict[str, object]) -> None:
    text = json.loads(cell.text())
    assert parse(json.dumps({**text, **GOOD}).encode(), "good").right == (1.0, 0.0)
    with pytest.raises(DataError, match=r"bad\.json is not a cell") as told:
        parse(json.dumps({**text, **GOOD, **change}).encode(), "bad.json")
    assert "\n" not in str(told.value)


# Attackers that remember releases: each is scored by a copy that knows of no other.


SHOWN = [(view(picture(person, 9)), None) for person in range(6)]
NAMES = tuple(f"person {person}" for person in range(4))


class Remembering(Fitted):
    """Says how many releases it has seen, and enrolments."""

    def __init__(self) -> None:
        self.seen: list[View] = []
        self.array = np.zeros(1)

    def score(self, releases: Sequence[View]) -> Scores:
        self.seen += releases
        self.array += len(releases)
        return Scores(np.full((len(releases), 4), len(self.seen) + self.array[0]), NAMES)


def test_no_release_is_scored_by_what_is_known_of_another() -> None:
    fitted = Remembering()
    assert (score_releases(fitted, SHOWN, NAMES).likeness == 2).all()
    assert not fitted.seen, "it is never used itself"


def test_an_attacker_that_cannot_be_copied_is_refused_in_one_line() -> None:
    fitted = Remembering()
    fitted.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match="cannot be copied"):
        score_releases(fitted, SHOWN, NAMES)


NOTHING = Setting(None)


# The bound by the distances of photos, against the best attacker on mechanisms that are small enough.
