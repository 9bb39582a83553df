"""Von Mises-Fisher draws: masses of cells, the metric bound, the law along μ and around it, lazy bits."""

import math
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from scipy import integrate, stats

from dpveil.errors import NoiseError
from dpveil.noise import interval_arithmetic, spherical
from dpveil.noise.bits import SeededBits
from dpveil.noise.interval_arithmetic import Enclosing, Uniform
from dpveil.noise.spherical import von_mises_fisher

ALPHA = 1e-9
"""Every test below fails for a right sampler with at most this probability; seeds are fixed."""


def drawn(direction, kappa, radius, count, seed):
    bits = SeededBits(seed)
    rows = [von_mises_fisher(direction, Fraction(kappa), Fraction(radius), bits) for _ in range(count)]
    return np.array(rows, float)


def along_law(kappa, dimension):
    """The distribution of ⟨x, μ⟩, whose density is ∝ e^(κw)·(1 - w²)^((i - 3)/2), by quadrature."""
    angles = np.linspace(0, math.pi, 20_001)
    density = np.exp(kappa * (np.cos(angles) - 1)) * np.sin(angles) ** (dimension - 2)
    below = integrate.cumulative_simpson(density, x=angles, initial=0)
    return lambda w: 1 - np.interp(np.arccos(np.clip(w, -1, 1)), angles, below / below[-1])


def around_fits(points, mean):
    """What is across μ points anywhere: its squared parts are Beta, its signs fair, in any basis across μ."""
    dimension = len(mean)
    basis = np.linalg.svd(mean[None])[2][1:]
    across = points @ basis.T
    unit = across / np.linalg.norm(across, axis=1)[:, None]
    if dimension == 2:
        return stats.binomtest(int((unit > 0).sum()), len(unit)).pvalue > ALPHA
    law = stats.beta(0.5, (dimension - 2) / 2).cdf
    squares = min(stats.kstest(column**2, law).pvalue for column in unit.T)
    signs = np.bincount((unit > 0) @ (1 << np.arange(dimension - 1)), minlength=1 << (dimension - 1))
    return min(squares, stats.chisquare(signs).pvalue) > ALPHA


CASES = [((3, -4), 2), ((-1, 0, 0), "1/3"), ((5, 1, -2), 9), ((1, -1, 2, 0, -7), 40)]


@pytest.mark.parametrize(("direction", "kappa"), CASES, ids=str)
def test_along_and_around_the_direction(direction, kappa):
    points = drawn(direction, kappa, 10**7, 1000, len(direction)) / 1e7
    assert np.allclose(np.linalg.norm(points, axis=1), 1, atol=1e-6)
    mean = np.array(direction) / np.linalg.norm(direction)
    along = points @ mean
    law = along_law(float(Fraction(kappa)), len(direction))
    assert stats.kstest(along, law).pvalue > ALPHA
    assert around_fits(points, mean)
    wrong = along_law(float(Fraction(kappa)) * 2 + 0.5, len(direction))
    assert stats.kstest(along, wrong).pvalue < ALPHA
    assert not around_fits(np.abs(points), mean)


def test_hundred_dimensions():
    """The mean of ⟨x, μ⟩ is a ratio of Bessel functions; 7 standard errors are rare (1e-11)."""
    direction = np.random.default_rng(2).integers(-(2**15), 2**15, 100).tolist()
    mean = np.array(direction) / np.linalg.norm(direction)
    for kappa in (20, 300):
        along = drawn(direction, kappa, 10**6, 40, 5) @ mean / 1e6
        angles = np.linspace(0, math.pi, 20_001)
        density = np.exp(kappa * (np.cos(angles) - 1) + 98 * np.log(np.sin(angles).clip(1e-300)))
        expected = np.sum(density * np.cos(angles)) / density.sum()
        assert abs(along.mean() - expected) < 7 * along.std() / math.sqrt(40)


def masses_of_the_circle(direction, kappa, radius):
    """The chance of every rounded point of the plane: angles are cut where a coordinate rounds otherwise."""
    towards = math.atan2(direction[1], direction[0])
    halves = np.arange(-math.ceil(radius) - 0.5, math.ceil(radius) + 1)
    halves = halves[np.abs(halves) < radius]
    turns = [sign * math.acos(h / radius) for h in halves for sign in (1, -1)]
    turns += [a for h in halves for a in (math.asin(h / radius), math.pi - math.asin(h / radius))]
    cuts = np.unique(np.mod(turns, 2 * math.pi))
    cuts = np.append(cuts, cuts[0] + 2 * math.pi)

    def density(angle):
        return math.exp(kappa * (math.cos(angle - towards) - 1))

    found = {}
    for low, high in pairwise(cuts):
        middle = (low + high) / 2
        cell = (round(radius * math.cos(middle)), round(radius * math.sin(middle)))
        found[cell] = found.get(cell, 0.0) + integrate.quad(density, low, high, limit=200)[0]
    total = sum(found.values())
    return {cell: mass / total for cell, mass in found.items()}


@pytest.mark.parametrize(("direction", "kappa", "radius"), [((2, 1), 1, 2.7), ((0, -3), 6, 1.3)])
def test_coarse_draws_have_the_masses_of_cells(direction, kappa, radius):
    law = masses_of_the_circle(direction, kappa, radius)
    points = drawn(direction, kappa, str(radius), 2000, 7).astype(int)
    counts = dict.fromkeys(law, 0)
    for point in points:
        counts[tuple(point)] += 1  # a KeyError is a point that no draw can give
    expected = 2000 * np.array(list(law.values()))
    seen, rare = np.array(list(counts.values())), expected < 8
    kept = np.append(seen[~rare], seen[rare].sum()), np.append(expected[~rare], expected[rare].sum())
    kept = [part[kept[1] > 0] for part in kept]
    assert stats.chisquare(kept[0], kept[1] * 2000 / kept[1].sum()).pvalue > ALPHA


@pytest.mark.parametrize("kappa", [0.5, 3, 20])
def test_metric_holds_for_the_rounded_law_and_wastes_little(kappa):
    """ln P(z)/P′(z) is at most κ·‖μ - μ′‖ for 24 directions, whose vectors have all kinds of lengths."""
    whole = [(1, 0), (30000, 1), (1, 1), (-32768, 32767), (3, -4), (0, -7), (-1, -1), (-5, 12), (2, 9)]
    laws = [masses_of_the_circle(v, kappa, 2.7) for v in whole]
    worst = 0.0
    for a, first in zip(whole, laws, strict=True):
        for b, second in zip(whole, laws, strict=True):
            chord = math.dist(np.divide(a, math.hypot(*a)), np.divide(b, math.hypot(*b)))
            if chord:
                ratio = max(math.log(first[cell] / second[cell]) for cell in first)
                worst = max(worst, ratio / chord)
    assert 0.8 * kappa < worst <= kappa * (1 + 1e-6)


def test_a_direction_that_is_not_of_length_one_would_break_it():
    """The mutant ∝ e^(κ·⟨x, v⟩) spends as much as v is long."""
    near, far = (masses_of_the_circle(v, k, 2.7) for v, k in (((1, 0), 1.0), ((-1, 0), 3.0)))
    assert max(math.log(near[c] / far[c]) for c in near) > 1.3 * 2


class Few(Uniform):
    """The same numbers, of which only four bits are known at first."""

    def __init__(self, word):
        super().__init__(word)
        self.hidden, self.value, self.length = self.value & (1 << 59) - 1, self.value >> 59, 4

    def extend(self, bits):
        if self.hidden is None:
            super().extend(SeededBits(7))  # 63 bits are plenty: what comes next is for the next proposal
        else:
            self.value, self.length, self.hidden = self.value << 59 | self.hidden, 63, None


@pytest.mark.parametrize("kappa", ["1/10", "8", "1e5"])
def test_bits_taken_later_change_nothing(kappa, monkeypatch):
    """A draw is a function of the uniform numbers, however many of their bits were looked at first."""

    def draws():
        bits = [SeededBits(seed) for seed in range(150)]
        return [von_mises_fisher([3, -1, 2], Fraction(kappa), Fraction(1000), one) for one in bits]

    expected = draws()
    for module in (interval_arithmetic, spherical):
        monkeypatch.setattr(module, "Uniform", Few)
    assert draws() == expected


def test_only_the_direction_counts():
    """Multiples of a vector have the same direction, exactly, so they give the same draw of the same bits."""
    draws = [
        von_mises_fisher([k * 3, k * -5, k * 7], Fraction(4), Fraction(10**9), SeededBits(3)) for k in (1, 11)
    ]
    assert draws[0] == draws[1]
    assert von_mises_fisher([3, -5, 8], Fraction(4), Fraction(10**9), SeededBits(3)) != draws[0]


def test_the_bound_of_acceptance_is_one_and_close():
    """The logarithm of the chance to be kept is at most 0 over all w, and nearly 0 somewhere."""
    for dimension, kappa in ((2, "0.01"), (3, 1), (10, 400), (100, "1e-3"), (512, 5000)):
        kappa = Fraction(kappa)
        t, fewer = float(spherical._pull(dimension, kappa)), dimension - 1
        y = np.cos(np.linspace(0, math.pi, 200_001))
        w = (y + t) / (1 + t * y)
        level = float(kappa) * w - fewer * np.log1p(t * y) - float(spherical._most(dimension, kappa))
        assert -1e-3 < level.max() <= 1e-9 * max(1, float(kappa))


def test_intervals_hold_what_they_enclose():
    work = Enclosing(8)
    third, minus = work.of(Fraction(1, 3)), work.of(Fraction(-2, 7))
    for found, value in (
        (work.multiply(third, minus), Fraction(-2, 21)),
        (work.divide(minus, third), Fraction(-6, 7)),
        (work.subtract(minus, third), Fraction(-13, 21)),
        (work.multiply(minus, minus), Fraction(4, 49)),
        (work.multiply(work.root(third), work.root(third)), Fraction(1, 3)),
        (work.multiply((-third[1], third[1]), minus), Fraction(2, 21)),
    ):
        assert Fraction(found[0]) <= value <= Fraction(found[1])
        assert 0 < found[1] - found[0] < 0.3
    low, high = work.log(third)
    assert float(low) < math.log(1 / 3) < float(high)
    assert work.log((third[0] * 0, third[1]))[0].is_infinite()
    assert work.nearest(work.of(Fraction(-7, 2))) == -3
    assert work.nearest(work.of(Fraction(1, 2) - Fraction(1, 10**12))) is None


@pytest.mark.parametrize(
    ("direction", "kappa"), [([1], 2), ([], 2), ([1, 2], 0), ([1, 2], -1), ([1, 2], 10**10), ([0, 0], 3)]
)
def test_what_cannot_be_drawn_is_refused(direction, kappa):
    with pytest.raises(NoiseError, match="no direction"):
        von_mises_fisher(direction, Fraction(kappa), Fraction(10), SeededBits(1))
