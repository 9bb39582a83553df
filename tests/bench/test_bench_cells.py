"""Bounds of guarantees, and files of cells that are none."""

from __future__ import annotations

import json

import numpy as np
import pytest

from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.bench.bounds import bound
from dpveil.bench.cells import Cell, parse
from dpveil.bench.data import load
from dpveil.bench.galleries import Setting
from dpveil.bench.measuring import cells
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import DataError
from people_made import folder


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


def test_the_bound_is_reached_by_the_best_attacker_and_by_none_exceeded() -> None:
    """Randomised response over k people at ε: the best guess is right in exactly e^ε / (e^ε + k - 1)."""
    k, epsilon = 6, 1.0
    keep = np.exp(epsilon) / (np.exp(epsilon) + k - 1)
    pure = guarantee("pure", Relation("any-image"), epsilon=1)
    least = bound([pure] * k, [str(i) for i in range(k)], pixels=1, whole=True)
    assert least == pytest.approx(keep)


GOOD = {
    "utility": {"ssim": [0.5, None]},
    "people": [0, 1],
    "right": [1.0, 0.0],
    "near": [1.0, 1.0],
    "answered": [True, True],
}


@pytest.mark.parametrize(
    "change",
    [
        {"right": [1.0]},
        {"right": [1.0, 2.0]},
        {"right": [1.0, float("nan")]},
        {"near": [1.0, True]},
        {"people": [0, 7]},
        {"people": ["a", "b"]},
        {"people": []},
        {"answered": [1, 0]},
        {"chance": -1},
        {"chance": None},
        {"utility": {"ssim": [10**400, 0.5]}},
        {"guarantee": {"kind": "pure", "relation": {"name": "any-image"}, "epsilon": [1]}},
        {"guarantee": {"kind": "pure", "relation": {"name": "any-image"}, "epsilon": float("nan")}},
        {"guarantee": {"kind": "pure", "relation": {"name": "any-image"}, "epsilon": "=1+1"}},
        {"bound": "high"},
        {"bound_about": "any photos"},
        {"bound": 0.5},
        {"bound": 0.5, "bound_about": "\x1b[2J"},
        {"guarantee": []},
        {"covers": "whole photos"},
        {"guarantee": {"kind": "pure", "relation": {"name": "any-image"}, "epsilon": 1}, "covers": "all"},
        {"guarantee": {"kind": "pure"}},
        {"guarantee": {"kind": "magic", "relation": {"name": "any-image"}}},
        {"guarantee": {"kind": "pure", "relation": {"name": "magic"}}},
        {"guarantee": {"kind": "pure", "relation": {"name": "any-image"}, "epsilon": "\x1b[2J"}},
        {"of": {}},
        {"of": None},
        {"utility": {"ssim": [float("inf"), 0]}},
        {"utility": {"ssim": [0.5]}},
        {"utility": {"Beauty!": [0.5, 0.5]}},
        {"utility": {f"m{n}": [0.5, 0.5] for n in range(101)}},
        {"together": {"ndb": [0.5, 0.5]}},
        {"together": {"ndb": float("nan")}},
        {"together": {"\x1b[2J": 0.5}},
        {"together": None},
        {"utility": {"ssim": [True, 0.5]}},
        {"utility": None},
        {"format": "dpveil.cell/9"},
        {"of": {"method": "Magic"}},
        {"of": {"attack": "\x1b[2J"}},
        {"of": {"data": "\x1b[2J"}},
        {"of": {"parameters": {"block": ["\x07"]}}},
    ],
)
def test_what_is_no_cell_is_refused_in_one_line(cell: Cell, change: dict[str, object]) -> None:
    text = json.loads(cell.text())
    assert parse(json.dumps({**text, **GOOD}).encode(), "good").right == (1.0, 0.0)
    if isinstance(of := change.get("of"), dict) and of:
        change = {"of": {**text["of"], **of}}
    with pytest.raises(DataError, match=r"bad\.json is not a cell") as told:
        parse(json.dumps({**text, **GOOD, **change}).encode(), "bad.json")
    assert "\n" not in str(told.value)


def test_a_cell_of_more_people_than_are_resampled_is_refused(cell: Cell) -> None:
    """Intervals would take 16 KB for each of them."""
    count = 20_001
    text = {**json.loads(cell.text()), "people": list(range(count)), "utility": {}}
    text |= {name: [1.0] * count for name in ("right", "near")} | {"answered": [True] * count}
    with pytest.raises(DataError, match="more than 20000 people"):
        parse(json.dumps(text).encode(), "large.json")
