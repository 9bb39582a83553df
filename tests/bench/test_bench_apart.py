"""The bound by the distances of photos, against the best attacker on mechanisms that are small enough."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import pytest

from dpveil.bench import bounds
from dpveil.bench.bounds import bound_of_photos

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


def test_the_laws_keep_their_promise_for_all_neighbours() -> None:
    for case in CASES:
        with np.errstate(divide="ignore"):
            logs = np.log(case.law)
        lost = (logs[:, None] - logs[None]).max(axis=2)
        assert (lost <= case.epsilon * case.distances + 1e-9).all(), case.name


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

    monkeypatch.setattr(bounds, "_solved", found)
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


def test_it_grows_with_epsilon_and_with_distances() -> None:
    rng = np.random.default_rng(2)
    far, people = between(rng.uniform(0, 1, (20, 3))), [str(i % 10) for i in range(20)]
    told = [bound_of_photos(Fraction(e), far, people) or 0 for e in (0.1, 1, 3, 10)]
    assert told == sorted(told)
    assert (bound_of_photos(Fraction(1), far, people) or 0) <= (
        bound_of_photos(Fraction(1), 2 * far, people) or 0
    )
    least = 1 / (1 + 9 * math.exp(-far.max()))
    assert 0.1 < (bound_of_photos(Fraction(1), far, people) or 0) < least, "less than at the diameter"


def test_too_many_photos_have_none(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bounds, "MOST", 3)
    assert bound_of_photos(Fraction(1), np.ones((4, 4)), list("abcd")) is None
    assert bound_of_photos(Fraction(1), np.ones((0, 0)), []) is None


def mean_distance(epsilon: Fraction, distances: np.ndarray, people: Sequence[str]) -> float | None:
    usual = np.where(distances > 0, distances.mean(), 0)
    return bound_of_photos(epsilon, usual, people)


def one_photo_each(epsilon: Fraction, distances: np.ndarray, people: Sequence[str]) -> float | None:
    first = [people.index(person) for person in sorted(set(people))]
    return bound_of_photos(epsilon, distances[np.ix_(first, first)], sorted(set(people)))


def nearest_photos(epsilon: Fraction, distances: np.ndarray, people: Sequence[str]) -> float | None:
    """Return the bound of people as if all their photos were where they are nearest to another's."""
    same = np.array([[one == other for other in people] for one in people]).astype(float)
    nearest = [[distances[np.ix_(a > 0, b > 0)].min() for a in same] for b in same]
    return bound_of_photos(epsilon, np.array(nearest), people)


def mean_posterior(epsilon: Fraction, distances: np.ndarray, people: Sequence[str]) -> float | None:
    same = np.array([[one == other for other in people] for one in people])
    near = np.exp(-float(epsilon) * distances)
    return float(np.mean((near * same).sum(axis=1) / near.sum(axis=1)))


def opposite_sign(epsilon: Fraction, distances: np.ndarray, people: Sequence[str]) -> float | None:
    with pytest.MonkeyPatch.context() as patch, np.errstate(over="ignore"):
        patch.setattr(bounds, "_kernel", lambda e, far: np.exp(np.minimum(float(e) * far, 600)))
        return bound_of_photos(epsilon, distances, people)


@pytest.mark.parametrize(
    "planted", [mean_distance, one_photo_each, nearest_photos, mean_posterior, opposite_sign]
)
def test_a_bound_with_a_bug_is_exceeded(planted: Bound) -> None:
    assert exceeded(planted)
