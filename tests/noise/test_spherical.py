"""Spherical noise: radius and direction, exact masses of cells, the metric bound, and lazily drawn bits."""

import math
from fractions import Fraction

import numpy as np
import pytest
from scipy import integrate, stats

from dpveil.errors import NoiseError
from dpveil.noise import interval_arithmetic, spherical
from dpveil.noise.bits import BitSource, SeededBits
from dpveil.noise.interval_arithmetic import Uniform
from dpveil.noise.spherical import spherical_laplace

ALPHA = 1e-9
"""Every test below fails for a right sampler with at most this probability; seeds are fixed."""
FINE = Fraction(10**6)


def drawn(scale, dimension, count, seed):
    bits = SeededBits(seed)
    return np.array([spherical_laplace(scale, dimension, bits) for _ in range(count)], float)


def radius_fits(points, scale, dimension):
    return stats.kstest(np.linalg.norm(points, axis=1) / scale, stats.gamma(dimension).cdf).pvalue > ALPHA


def direction_fits(points, dimension):
    """Squared coordinates of a uniform direction are Beta(1/2, (i - 1)/2), signs are fair and independent."""
    unit = points / np.linalg.norm(points, axis=1)[:, None]
    law = stats.beta(0.5, (dimension - 1) / 2).cdf
    squares = min(stats.kstest(column**2, law).pvalue for column in unit.T)
    signs = (points > 0) @ (1 << np.arange(dimension))
    return min(squares, stats.chisquare(np.bincount(signs, minlength=1 << dimension)).pvalue) > ALPHA


@pytest.mark.parametrize("dimension", [1, 2, 3, 4, 7])
def test_radius_is_gamma_and_direction_is_uniform(dimension):
    points = drawn(FINE, dimension, 1500, dimension)
    assert radius_fits(points, float(FINE), dimension)
    if dimension > 1:
        assert direction_fits(points, dimension)


def test_wrong_laws_are_rejected():
    """Mutants: the length of Gamma(1), of Gamma(i + 1), and Laplace noise coordinate by coordinate."""
    rng = np.random.default_rng(1)
    right = drawn(FINE, 4, 1500, 9)
    unit = right / np.linalg.norm(right, axis=1)[:, None]
    for shape in (1, 3, 5):
        assert not radius_fits(unit * rng.gamma(shape, 1e6, (1500, 1)), 1e6, 4)
    coordinates = rng.laplace(0, 1e6, (1500, 4))
    assert not radius_fits(coordinates, 1e6, 4)
    assert not direction_fits(coordinates, 4)


def masses_of_the_line(scale, reach):
    """The law of a rounded Laplace variable: e^(-|z|/s)·sinh(1/(2s)) and 1 - e^(-1/(2s)) at 0."""
    sizes = np.abs(np.arange(-reach, reach + 1))
    return np.where(sizes, np.exp(-sizes / scale) * math.sinh(0.5 / scale), -math.expm1(-0.5 / scale))


def masses_of_the_plane(scale, reach):
    """The integral of e^(-‖y‖/s)/(2πs²) over each unit square, by quadrature."""
    table = np.empty((reach + 1, reach + 1))
    for a in range(reach + 1):
        for b in range(a + 1):
            # a quarter of the middle square, so that the cusp lies in its corner
            low = [0 if side == 0 else side - 0.5 for side in (a, b)]
            found = integrate.dblquad(
                lambda y, x: math.exp(-math.hypot(x, y) / scale), low[0], a + 0.5, low[1], b + 0.5
            )[0]
            table[a, b] = table[b, a] = found * (1 + (a == 0)) * (1 + (b == 0)) / (2 * math.pi * scale**2)
    wide = np.abs(np.arange(-reach, reach + 1))
    return table[np.ix_(wide, wide)]


@pytest.mark.parametrize("scale", [0.3, 0.75, 2.5])
def test_coarse_draws_have_the_masses_of_cells(scale):
    reach = math.ceil(6 * scale)
    for dimension, masses in ((1, masses_of_the_line), (2, masses_of_the_plane)):
        points = drawn(Fraction(str(scale)), dimension, 2000, 7).astype(int)
        inside = points[(np.abs(points) <= reach).all(axis=1)] + reach
        law = masses(scale, reach).ravel()
        index = inside @ (2 * reach + 1) ** np.arange(dimension)[::-1]
        counts = np.append(np.bincount(index, minlength=law.size), 2000 - len(inside))
        expected = np.append(law, 1 - law.sum()) * 2000
        rare = expected < 8
        kept = np.append(expected[~rare], expected[rare].sum()), np.append(counts[~rare], counts[rare].sum())
        assert stats.chisquare(kept[1], kept[0] * 2000 / kept[0].sum()).pvalue > ALPHA


@pytest.mark.parametrize("scale", [0.4, 1.5])
def test_metric_holds_for_the_rounded_law(scale):
    """P(z)/P(z + t) is at most e^(‖t‖/s) for all steps t, and no smaller rate would do."""
    law = masses_of_the_plane(scale, 6)
    worst = 0.0
    for a in range(-3, 4):
        for b in range(-3, 4):
            if (a, b) != (0, 0):
                inner = law[3:-3, 3:-3]
                moved = law[3 + a : len(law) - 3 + a, 3 + b : len(law) - 3 + b]
                worst = max(worst, np.log(inner / moved).max() / math.hypot(a, b))
    assert 0.9 / scale < worst <= 1 / scale * (1 + 1e-9)


class Few(Uniform):
    """The same numbers, of which only eight bits are known at first."""

    def __init__(self, word):
        super().__init__(word)
        self.hidden, self.value, self.length = self.value & (1 << 55) - 1, self.value >> 55, 8

    def extend(self, bits):
        if self.hidden is None:
            super().extend(bits)
        else:
            self.value, self.length, self.hidden = self.value << 55 | self.hidden, 63, None


@pytest.mark.parametrize("scale", ["1/10", "3", "1e5", "1e9"])
def test_bits_taken_later_change_nothing(scale, monkeypatch):
    """A draw is a function of the uniform numbers, however many of their bits were looked at first."""
    expected = [spherical_laplace(Fraction(scale), 5, SeededBits(seed)) for seed in range(40)]
    for module in (interval_arithmetic, spherical):
        monkeypatch.setattr(module, "Uniform", Few)
    assert [spherical_laplace(Fraction(scale), 5, SeededBits(seed)) for seed in range(40)] == expected


def test_any_scale_is_settled():
    point = spherical_laplace(Fraction(10**40), 3, SeededBits(3))
    assert 10**36 < max(map(abs, point)) < 10**43
    assert spherical_laplace(Fraction(1, 10**40), 3, SeededBits(3)) == [0, 0, 0]


@pytest.mark.parametrize(("scale", "dimension"), [(0, 2), (-1, 2), (1, 0)])
def test_no_noise_is_refused(scale, dimension):
    with pytest.raises(NoiseError, match="no noise of scale"):
        spherical_laplace(Fraction(scale), dimension, SeededBits(1))


def test_a_source_that_never_settles_is_given_up():
    class Zeros(BitSource):
        def _first_key(self):
            return bytes(32)

        def fill(self, out):
            out[...] = 0

    with pytest.raises(NoiseError, match="not settled"):
        spherical_laplace(Fraction(1), 2, Zeros())
