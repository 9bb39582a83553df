"""Noise on a lattice: weights, tails and masses against sums of the definition; draws by their fit."""

from fractions import Fraction

import mpmath
import numpy as np
import pytest
from scipy import stats

from dpveil.errors import NoiseError
from dpveil.mechanisms.scalar.noises import LaplaceNoise, StaircaseNoise
from dpveil.noise.bits import SeededBits

NOISES = [
    LaplaceNoise(Fraction(5, 2)),
    LaplaceNoise(Fraction(1, 3)),
    LaplaceNoise(Fraction(40)),
    StaircaseNoise(Fraction(1), 4, 2),
    StaircaseNoise(Fraction(1, 2), 7, 1),
    StaircaseNoise(Fraction(3), 5, 5),
    StaircaseNoise(Fraction(1, 4), 1, 1),
]
WIDE = 3000
noises = pytest.mark.parametrize("noise", NOISES, ids=str)


def weight(noise, z):
    """The definition: e^(-|z|/scale), or e^-ε a stair, the first of which ends before `inner`."""
    if isinstance(noise, LaplaceNoise):
        return mpmath.exp(-mpmath.mpf(abs(z)) * noise.scale.denominator / noise.scale.numerator)
    height, end = 0, noise.inner
    while abs(z) >= end:
        height, end = height + 1, end + noise.reach
    return mpmath.exp(-height * mpmath.mpf(noise.epsilon.numerator) / noise.epsilon.denominator)


@pytest.fixture(scope="module")
def sums():
    """Chances of every z up to WIDE and of all from j on, by adding up."""
    found = {}
    with mpmath.workdps(40):
        for noise in NOISES:
            weights = [weight(noise, z) for z in range(WIDE)]
            whole = 2 * mpmath.fsum(weights) - weights[0]
            above = [mpmath.mpf(0)]
            for one in reversed(weights):
                above.append(above[-1] + one)
            found[noise] = [w / whole for w in weights], [a / whole for a in reversed(above)]
    return found


@noises
def test_chances_and_tails_are_sums_of_the_definition(noise, sums):
    chances, above = sums[noise]
    places = np.arange(0, 160)
    right = [float(mpmath.log(chances[z])) for z in places]
    assert noise.log_weight(places) == pytest.approx(right, abs=1e-12)
    assert noise.log_weight(-places) == pytest.approx(right, abs=1e-12)
    assert noise.beyond(places) == pytest.approx([float(above[j]) for j in places], rel=1e-11)
    assert noise.beyond(np.inf) == 0


@noises
def test_masses_of_intervals_far_out_too(noise, sums):
    chances, above = sums[noise]

    def right(low, high):
        return float(mpmath.fsum(chances[abs(z)] for z in range(low, high + 1)))

    cases = [(a, a + k) for a in (-90, -31, -5, -1, 0, 1, 2, 30, 90) for k in (0, 1, 4, 40, 95)]
    lows, highs = (np.array(ends, np.float64) for ends in zip(*cases, strict=True))
    assert noise.mass(lows, highs) == pytest.approx([right(*case) for case in cases], rel=1e-9)
    for edge in (1, 7, 80):
        assert noise.mass(edge, np.inf) == pytest.approx(float(above[edge]), rel=1e-11)
        assert noise.mass(-np.inf, -edge) == pytest.approx(float(above[edge]), rel=1e-11)
        assert noise.mass(-np.inf, edge) == pytest.approx(1 - float(above[edge + 1]), rel=1e-11)
    assert noise.mass(-np.inf, np.inf) == pytest.approx(1)
    assert noise.mass([5, np.inf, -np.inf, np.inf], [4, np.inf, -np.inf, -np.inf]).tolist() == [0, 0, 0, 0]


@noises
@pytest.mark.parametrize("count", [0, 1, 3, 17, 60])
def test_whole_weights_are_the_definition_to_sixty_digits(noise, count, sums):
    near, rest = noise.weights(count)
    chances, above = sums[noise]
    assert len(near) == count
    unit = mpmath.mpf(1 << 256)
    with mpmath.workdps(40):
        for j, found in enumerate(near):
            assert abs(found / unit - chances[j] / chances[0]) < mpmath.mpf(10) ** -30
        assert abs(rest / unit - above[count] / chances[0]) < mpmath.mpf(10) ** -30


@noises
def test_draws_follow_the_law(noise):
    """χ² of 100 000 draws in bins of 20 expected or more; a right sampler fails with probability 1e-9."""
    drawn = noise.draw(100_000, SeededBits(5, str(noise)))
    places = np.arange(-400, 401)
    right = np.exp(noise.log_weight(places))
    kept = right * len(drawn) >= 20
    expected = np.append(right[kept], 1 - right[kept].sum()) * len(drawn)
    seen = np.array([np.sum(drawn == z) for z in places[kept]])
    seen = np.append(seen, len(drawn) - seen.sum())
    if expected[-1] < 5:
        expected, seen = expected[:-1], seen[:-1]
    statistic = float(((seen - expected) ** 2 / expected).sum())
    assert stats.chi2.sf(statistic, len(expected) - 1) > 1e-9
    wrong = np.roll(expected, 1)
    assert stats.chi2.sf(float(((seen - wrong) ** 2 / wrong).sum()), len(expected) - 1) < 1e-9


def test_one_move_of_reach_costs_epsilon_and_no_more():
    for noise in NOISES:
        if isinstance(noise, StaircaseNoise):
            places = np.arange(-300, 301)
            for step in range(1, noise.reach + 1):
                loss = np.abs(noise.log_weight(places) - noise.log_weight(places + step)).max()
                assert loss <= float(noise.epsilon) + 1e-12
            assert loss == pytest.approx(float(noise.epsilon))
            beyond = np.abs(noise.log_weight(places) - noise.log_weight(places + noise.reach + 1)).max()
            assert beyond > float(noise.epsilon) * 1.5 or noise.inner == 1


def test_a_sensitivity_far_beyond_the_range_takes_no_memory():
    near, rest = StaircaseNoise(Fraction(1), 10**15, 10**14).weights(5)
    assert near == [1 << 256] * 5
    assert rest > 10**14 << 256


def test_what_cannot_be_drawn_is_refused_beforehand():
    for noise in (LaplaceNoise(Fraction(1 << 51)), StaircaseNoise(Fraction(1, 10**12), 10**6, 10**5)):
        with pytest.raises(NoiseError, match="scale"):
            noise.prepare()
    NOISES[0].prepare()
    NOISES[3].prepare()
