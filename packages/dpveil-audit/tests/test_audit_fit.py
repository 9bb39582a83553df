"""The goodness-of-fit tests: right distributions pass, wrong ones do not, p-values mean what they say."""

from fractions import Fraction

import numpy as np
import pytest
from scipy import stats

from dpveil.errors import InvalidParameter
from dpveil.noise.bits import SeededBits
from dpveil_audit.distributions import (
    finite_distribution,
    gaussian_distribution,
    laplace_distribution,
    laplace_residues,
)
from dpveil_audit.fit import ALPHA, LOOKS, fit, fit_pairs, multinomial, power

N = 300_000


def uniforms(count, seed):
    return (SeededBits(seed, "fit").words(count) >> np.uint64(11)).astype(np.float64) / 2**53


def geometric_pair(scale, count, seed):
    """A second sampler of the discrete Laplace distribution: the difference of two geometric variables."""
    u = uniforms(2 * count, seed).reshape(2, count)
    first, second = np.floor(-scale * np.log1p(-u)).astype(np.int64)
    return first - second


@pytest.mark.parametrize("scale", [Fraction(1, 50), Fraction(1, 3), 1, 255, 460_000_000])
def test_right_distribution_passes(scale):
    verdict = fit(geometric_pair(float(scale), N, 1), laplace_distribution(scale))
    assert not verdict.rejected
    assert set(verdict.parts) == {"coarse bins", "fine bins", "centre", "tails", "extremes"}


@pytest.mark.parametrize("scale", [Fraction(1, 3), 1, 16, 255, 460_000_000])
def test_scale_two_percent_too_small_is_rejected(scale):
    n = 600_000  # power at α = 1e-9 is above 0.999 by the noncentral chi-square
    assert power(laplace_distribution(scale), laplace_distribution(Fraction(98, 100) * scale), n) > 0.999
    assert fit(geometric_pair(0.98 * float(scale), n, 2), laplace_distribution(scale)).rejected


def test_power_is_what_happens():
    distribution, wrong, n = laplace_distribution(255), laplace_distribution(255 * 0.97), 100_000
    said = power(distribution, wrong, n)
    seen = sum(
        fit(geometric_pair(255 * 0.97, n, s), distribution).parts["coarse bins"] < 1e-9 / LOOKS
        for s in range(40)
    )
    assert 0.1 < said < 0.9
    assert stats.binomtest(seen, 40, said).pvalue > 1e-4


def test_p_values_are_not_too_small_under_the_right_distribution():
    low = sum(
        fit(geometric_pair(20.0, 2_000, s), laplace_distribution(20)).p_value < 0.05 for s in range(100)
    )
    assert low <= stats.binom.isf(1e-9, 100, 0.05)


@pytest.mark.parametrize(("chance", "size"), [(0.0025, 20_000), (5e-4, 100_000), (0.1, 1_000)])
def test_two_outcomes_are_rejected_by_chance_as_seldom_as_promised(chance, size):
    """Nothing is drawn: the exact chances of all counts that `fit` rejects, which reach to both ends."""
    distribution = finite_distribution([1 - chance, chance])

    def rejected(count):
        return fit(np.repeat([0, 1], [size - count, count]), distribution).rejected

    mean = int(chance * size)
    more = next(count for count in range(mean, size) if rejected(count))
    fewer = next((count for count in range(mean, -1, -1) if rejected(count)), -1)
    false_alarm = stats.binom.sf(more - 1, size, chance) + stats.binom.cdf(fewer, size, chance)
    assert 1e-14 < false_alarm <= ALPHA


@pytest.mark.parametrize("chances", [(0.2, 0.3, 0.5), (0.01, 0.09, 0.9), (1e-6, 0.5, 0.499999)])
def test_a_multinomial_p_value_is_never_too_small(chances):
    """Nothing is drawn: the exact distribution of the p-value over all counts of 60 draws."""
    grid = [(i, j, 60 - i - j) for i in range(61) for j in range(61 - i)]
    p_values = np.array([multinomial(np.array(counts), np.array(chances)) for counts in grid])
    masses = stats.multinomial.pmf(grid, 60, chances)
    order = np.argsort(p_values)
    assert p_values[order[0]] < 1e-9
    assert np.all(np.cumsum(masses[order]) <= p_values[order] + 1e-12)


PLANTED = {
    "minus zero kept": lambda z, u: np.where((z == 1) & (u < 0.5), 0, z),
    "zero half missing": lambda z, u: np.where((z == 0) & (u < 0.5), 1, z),
    "tail cut at 8 scales": lambda z, u: np.clip(z, -8 * 255, 8 * 255),
    "tail too long": lambda z, u: np.where(u < 1e-4, 14 * z, z),
    "a little one-sided": lambda z, u: np.where(u < 0.02, np.abs(z), z),
    "shifted by five": lambda z, u: z + 5,
    "only even values": lambda z, u: z // 2 * 2,
    "one outcome never drawn": lambda z, u: np.where(z == 5, 6, z),
    "one far outlier": lambda z, u: np.append(z, 255 * 60),
}


@pytest.mark.parametrize("name", PLANTED)
def test_wrong_shapes_are_rejected(name):
    wrong = PLANTED[name](geometric_pair(255.0, N, 3), uniforms(N, 4))
    assert fit(wrong, laplace_distribution(255)).rejected


def test_missing_low_digits_are_seen_in_the_residues():
    scale, good = 460_000_000, geometric_pair(4.6e8, N, 5)
    coarse = good // 2047 * 2047
    assert not fit(coarse, laplace_distribution(scale)).rejected  # coarse bins cannot see it, and that is why
    assert fit(np.abs(coarse) % 2047, laplace_residues(scale, 2047)).rejected
    assert not fit(np.abs(good) % 2047, laplace_residues(scale, 2047)).rejected


@pytest.mark.parametrize(("scale", "modulus"), [(0.4, 3), (3, 2), (7, 16), (50, 2047)])
def test_residues_follow_from_the_distribution(scale, modulus):
    distribution = laplace_distribution(scale)
    z = np.arange(-3000, 3001)
    mass = distribution.between(z - 1, z)
    direct = np.bincount(np.abs(z) % modulus, weights=mass, minlength=modulus)
    at = np.arange(modulus)
    assert np.allclose(laplace_residues(scale, modulus).between(at - 1, at), direct, rtol=1e-9, atol=1e-15)


@pytest.mark.parametrize("lag", [1, 2, 3])
def test_reused_noise_is_seen_in_pairs(lag):
    good = geometric_pair(255.0, N, 6)
    reused = np.repeat(good[: N // (2 * lag) * lag].reshape(-1, lag), 2, axis=0).ravel()
    assert not fit_pairs(good, laplace_distribution(255), lag=lag).rejected
    assert fit_pairs(reused, laplace_distribution(255), lag=lag).rejected


def test_weak_dependence_is_seen_in_pairs():
    good = geometric_pair(255.0, N, 7)
    sticky = good.copy()
    keep = uniforms(N, 8) < 0.04
    sticky[1:] = np.where(keep[1:], good[:-1], good[1:])
    assert fit_pairs(sticky, laplace_distribution(255)).rejected


@pytest.mark.parametrize("variance", [Fraction(1, 4), 3, 400.5])
def test_discrete_gaussian_distribution_is_the_normalised_sum(variance):
    distribution = gaussian_distribution(variance)
    z = np.arange(-400, 401)
    mass = np.exp(-(z**2) / (2 * float(variance)))
    assert np.allclose(distribution.between(z - 1, z), mass / mass.sum(), rtol=1e-9, atol=1e-17)
    tail = mass[z > 40].sum() / mass.sum()
    assert np.isclose(distribution.survival(np.array([40]))[0], tail, rtol=1e-9)


def test_laplace_distribution_is_the_normalised_sum_in_both_tails():
    distribution = laplace_distribution(2.5)
    z = np.arange(-900, 901)
    mass = np.exp(-np.abs(z) / 2.5)
    mass /= mass.sum()
    for k in (-200, -3, 0, 3, 200):
        assert np.isclose(distribution.cdf(np.array([k]))[0], mass[z <= k].sum(), rtol=1e-9)
        assert np.isclose(distribution.survival(np.array([k]))[0], mass[z > k].sum(), rtol=1e-9)


def test_quantiles_invert_the_distribution():
    distribution = laplace_distribution(7)
    chances = np.array([1e-12, 0.2, 0.5, 0.8])
    at = distribution.quantile(chances)
    assert np.all(distribution.cdf(at) >= chances)
    assert np.all(distribution.cdf(at - 1) < chances)
    far = distribution.upper(np.array([1e-30]))
    assert distribution.survival(far)[0] <= 1e-30 < distribution.survival(far - 1)[0]


def test_an_impossible_outcome_is_rejected():
    distribution = finite_distribution([0.5, 0.0, 0.5])
    good = np.arange(1000) % 2 * 2
    assert not fit(good, distribution).rejected
    assert fit(np.append(good, 1), distribution).rejected
    assert fit(np.append(good, 7), distribution).rejected


def test_two_neighbouring_outcomes_swapped_are_rejected():
    mass = np.tile([0.5, 1.5], 256) / 512
    u = uniforms(N, 9)
    good = np.searchsorted(np.cumsum(mass), u).clip(max=511)
    assert not fit(good, finite_distribution(mass)).rejected
    assert fit(good ^ 1, finite_distribution(mass)).rejected


def test_a_distribution_that_leaves_no_bins_has_no_power():
    assert power(laplace_distribution(0.02), laplace_distribution(0.0196), 1000) == 0.0


@pytest.mark.parametrize("mass", [[0.5, 0.4], [1.5, -0.5], []])
def test_a_mass_that_is_no_distribution_is_refused(mass):
    with pytest.raises(InvalidParameter, match="mass is not a distribution"):
        finite_distribution(mass)


def test_too_few_samples_and_wild_variances_are_refused():
    with pytest.raises(InvalidParameter, match="samples = 5 are too few"):
        fit(np.zeros(5, np.int64), laplace_distribution(1))
    with pytest.raises(InvalidParameter, match="variance"):
        gaussian_distribution(Fraction(0))
