"""Bounds of guarantees, and files of cells that are none."""

from __future__ import annotations

import json
import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from dpveil.attacks.base import Background, Fitted, Scores, View
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.bench import bounds
from dpveil.bench.bounds import bound, bound_of_photos
from dpveil.bench.cells import Cell, parse
from dpveil.bench.data import load
from dpveil.bench.galleries import Setting
from dpveil.bench.measuring import Released, attacked_apart, cells, score_releases
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import DataError, PluginError
from people_made import background, folder, picture, view


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
        {"chance": -1},
        {"chance": None},
        {"bound": "high"},
        {"utility": {"ssim": [0.5]}},
        {"utility": None},
        {"more": 1},
        {"format": "dpveil.cell/9"},
    ],
)
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


def test_no_release_is_scored_by_what_is_known_of_another() -> None:
    fitted = Remembering()
    assert (score_releases(fitted, SHOWN, NAMES).likeness == 2).all()
    assert not fitted.seen, "it is never used itself"
    assert (score_releases(fitted, SHOWN, NAMES, joint=True).likeness == 12).all()


def test_no_gallery_is_enrolled_by_what_is_known_of_another(monkeypatch: pytest.MonkeyPatch) -> None:
    own = background(4, 2)
    known = tuple(type("Item", (), {"person": person})() for person in own.people)
    shown = tuple((one, None) for one in own.clean)
    releases = Released(known, known[:2], own.clean, shown, tuple(SHOWN[:2]), (), frozenset(own.people[:4]))
    attack = type("Attack", (), {"fit": lambda self, learnt: Remembering()})()
    found, _ = attacked_apart(attack, releases, NAMES)  # type: ignore[arg-type]
    assert (found.likeness == 102).all()


def test_an_attacker_that_cannot_be_copied_is_refused_in_one_line() -> None:
    fitted = Remembering()
    fitted.lock = threading.Lock()  # type: ignore[attr-defined]
    with pytest.raises(PluginError, match="cannot be copied"):
        score_releases(fitted, SHOWN, NAMES)


NOTHING = Setting(None)


# The bound by the distances of photos, against the best attacker on mechanisms that are small enough.


EPSILONS = (0.05, 0.5, 1.0, 2.0, 5.0, 30.0)
Bound = Callable[[Fraction, np.ndarray, Sequence[str]], float | None]


@dataclass(frozen=True)
class Case:
    """Photos of people at distances, and the law of a release of each, a row of `law`."""

    name: str
    epsilon: float
    distances: np.ndarray
    law: np.ndarray
    people: tuple[str, ...]

    @property
    def success(self) -> float:
        """How often the best attacker is right: it names whose photos make an output likeliest."""
        names = sorted(set(self.people))
        own = np.array([[person == name for person in self.people] for name in names], float)
        return float((own @ self.law).max(axis=0).sum() / len(self.people))


def exponential(distances: np.ndarray, epsilon: float) -> np.ndarray:
    """Return the exponential mechanism with utility -d, from the rows to all points, at ε·d."""
    law = np.exp(-epsilon / 2 * distances)
    return law / law.sum(axis=1, keepdims=True)


def geometric(count: int, epsilon: float) -> np.ndarray:
    """Return two-sided geometric noise on 0..count - 1, clipped: exactly ε·|i - j|."""
    a = math.exp(-epsilon)
    far = np.abs(np.subtract.outer(np.arange(count), np.arange(count)))
    law = (1 - a) / (1 + a) * a**far
    law[:, [0, -1]] = a ** far[:, [0, -1]] / (1 + a)
    return law


def between(points: np.ndarray) -> np.ndarray:
    return np.abs(points[:, None] - points[None]).sum(axis=2)


def all_cases() -> Iterator[Case]:
    rng = np.random.default_rng(3)
    for epsilon in EPSILONS:
        for count in (2, 3, 5, 9):
            line = np.abs(np.subtract.outer(np.arange(count), np.arange(count))).astype(float)
            names = tuple(map(str, range(count)))
            yield Case("line", epsilon, line, geometric(count, epsilon), names)
            shared = tuple(str(rng.integers(max(2, count // 2))) for _ in range(count))
            yield Case("line, shared", epsilon, line, geometric(count, epsilon), shared)
        for _ in range(12):
            own = rng.integers(0, 5, (rng.integers(2, 12), 2)).astype(float)  # some are equal
            places = np.concatenate([own, rng.integers(0, 5, (20, 2))])
            distances = between(places)
            people = tuple(str(rng.integers(1 + len(own) // 2)) for _ in own)
            law = exponential(distances, epsilon)[: len(own)]
            yield Case("plane", epsilon, distances[: len(own), : len(own)], law, people)
        ends = np.array([[0.0], [10.0], [0.0], [10.0], [0.0]])
        law = exponential(between(np.arange(11.0)[:, None]), epsilon)[ends[:, 0].astype(int)]
        yield Case("far photos of one person", epsilon, between(ends), law, tuple("aabbc"))


CASES = tuple(all_cases())


def exceeded(bound: Bound) -> list[Case]:
    """Return the cases in which the best attacker is right more often than a bound says."""
    told = [(case, bound(Fraction(case.epsilon), case.distances, case.people)) for case in CASES]
    return [case for case, most in told if most is None or case.success > most + 1e-12]


def test_no_attacker_exceeds_the_bound() -> None:
    assert len(CASES) == 126
    assert exceeded(bound_of_photos) == []


@pytest.mark.parametrize("weights", [np.nan, np.inf, -1.0, 0.0, 1.0, 1e300, 1.7e308, 5e-324])
def test_no_attacker_exceeds_it_whatever_a_solver_finds(
    weights: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Neither with the even weights alone, nor with random ones of which a row is out of range."""
    rng = np.random.default_rng(1)

    def found(kernel: np.ndarray, same: np.ndarray) -> np.ndarray:
        out = rng.uniform(0, 1, kernel.shape)
        out[0] = weights
        return out

    monkeypatch.setattr(bounds, "_solve_weights", found)
    assert exceeded(bound_of_photos) == []
    monkeypatch.setattr(bounds, "SOLVED", 0)
    assert exceeded(bound_of_photos) == []


def test_it_is_reached() -> None:
    """By who takes clipped geometric noise at its word; with equal distances it is e^ε/(e^ε + k - 1)."""
    for case in CASES:
        if case.name == "line":
            most = bound_of_photos(Fraction(case.epsilon), case.distances, case.people)
            assert most == pytest.approx(case.success, abs=1e-6)
    for k, photos in ((2, 1), (6, 1), (6, 3)):
        people = [str(i % k) for i in range(k * photos)]
        far = np.array([[float(a != b) for a in people] for b in people])
        assert bound_of_photos(Fraction(1), far, people) == pytest.approx(math.e / (math.e + k - 1), abs=1e-6)
    people = ["a"] * 3 + ["b", "c"]
    assert bound_of_photos(Fraction(1), np.zeros((5, 5)), people) == pytest.approx(0.6), "the largest share"
    everywhere = np.full((5, 5), np.inf)
    np.fill_diagonal(everywhere, 0)
    assert bound_of_photos(Fraction(1), everywhere, people) == 1
