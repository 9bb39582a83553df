"""What a guarantee means: every bound against brute force, and against mechanisms that attain it."""

import itertools
import math
from decimal import Context, Decimal
from fractions import Fraction

import numpy as np
import pytest
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import norm

from dpveil.accounting import zcdp_delta
from dpveil.accounting.meaning import (
    HARM,
    NONE,
    STRENGTHS,
    at_least,
    odds,
    strength,
    success_bound,
)
from dpveil.core.guarantee import Guarantee, Relation, Scope

ANY = {"relation": Relation("any-image"), "scope": Scope("a photo")}


def pure(epsilon):
    return Guarantee(kind="pure", epsilon=epsilon, **ANY)


def approximate(epsilon, delta):
    return Guarantee(kind="approximate", epsilon=epsilon, delta=delta, **ANY)


def zcdp(rho):
    return Guarantee(kind="zcdp", rho=rho, **ANY)


def metric(epsilon, diameter):
    return Guarantee(kind="metric", epsilon=epsilon, metric="L2", diameter=diameter, **ANY)


HEURISTIC = Guarantee(kind="heuristic", broken_by=("parrot attack",), **ANY)


def best_guess(law):
    """The best chance of naming the row, each equally likely, from one draw of it."""
    return law.max(axis=0).sum() / len(law)


def smallest_delta(law, epsilon):
    """The smallest δ for which all pairs of rows are (ε, δ)-indistinguishable."""
    excess = np.maximum(0, law[:, None, :] - math.exp(epsilon) * law[None, :, :])
    return excess.sum(axis=2).max()


def revealing_response(k, epsilon, delta):
    """k-ary randomised response that shows the truth with probability δ: rows are truths."""
    other = (1 - delta) / (math.exp(epsilon) + k - 1)
    respond = np.full((k, k), other)
    np.fill_diagonal(respond, other * math.exp(epsilon))
    return np.hstack([np.eye(k) * delta, respond])


def test_no_guess_beats_the_bound_and_many_come_near():
    """2 000 random mechanisms of 2 to 6 inputs, each held to the (ε, δ) that it really has."""
    draw = np.random.default_rng(1)
    nearest = 1.0
    for _ in range(2000):
        k, outputs = draw.integers(2, 7), draw.integers(2, 9)
        law = draw.dirichlet(np.full(outputs, draw.choice([0.2, 1.0, 5.0])), k) + 1e-12
        law /= law.sum(axis=1, keepdims=True)
        epsilon = draw.uniform(0, 3)
        delta = smallest_delta(law, epsilon)
        guess = best_guess(law)
        bound = success_bound(approximate(epsilon, min(delta + 1e-12, 1)), int(k))
        assert guess <= bound + 1e-9
        nearest = min(nearest, bound - guess)
        worst = math.log((law.max(axis=0) / law.min(axis=0)).max())
        assert guess <= success_bound(pure(worst), int(k)) + 1e-9
    assert nearest < 0.02


@pytest.mark.parametrize("k", [2, 3, 10, 1000])
@pytest.mark.parametrize("epsilon", [0.01, 1, 4, 12])
@pytest.mark.parametrize("delta", [0, 0.001, 0.3])
def test_randomised_response_attains_the_bound(k, epsilon, delta):
    law = revealing_response(k, epsilon, delta)
    if k <= 10:
        assert smallest_delta(law, epsilon) == pytest.approx(delta, abs=1e-12)
    bound = success_bound(approximate(epsilon, delta), k)
    assert best_guess(law) == pytest.approx(bound, rel=1e-12)
    assert Fraction(bound) >= Fraction(best_guess(law)) * (1 - Fraction(1, 10**15))


def simplex_guess(shift, k):
    """The best guess among k Gaussians, each pair `shift` apart: the true one has the largest coordinate."""
    near = shift / math.sqrt(2)
    return quad(lambda t: norm.pdf(t - near) * norm.cdf(t) ** (k - 1), -8, 20, limit=200)[0]


@pytest.mark.parametrize("rho", ["1e-8", "0.001", "0.0303", "0.125", "0.5", 3, 40])
def test_zcdp_is_never_below_a_true_gaussian_and_near_it(rho):
    """Gaussian noise moved by √(2ρ) standard deviations is ρ-zCDP (Bun & Steinke 2016, proposition 1.6)."""
    shift = math.sqrt(2 * float(Fraction(rho)))
    for k, far in ((2, 0.1), (10, 0.3), (1000, 0.4)):
        true = simplex_guess(shift, k)
        assert true - 1e-9 <= success_bound(zcdp(rho), k) <= true + far  # the integral has that error


def rho_of(law):
    """The ρ of a mechanism, from its definition: the largest D_α/α of two rows, over very many orders."""
    gaps = np.geomspace(1e-4, 1e4, 20_000)
    found = []
    for p, q in itertools.permutations(law, 2):
        moments = logsumexp(np.log(p) + np.multiply.outer(gaps, np.log(p / q)), axis=1)
        found += [p @ np.log(p / q), *(moments / gaps / (1 + gaps))]
    return max(found)


@pytest.mark.parametrize("success", [0.5001, 0.55, 0.75, 0.95, 0.9999])
def test_a_release_of_one_bit_attains_the_success_of_its_rho(success):
    rho = rho_of(np.array([[success, 1 - success], [1 - success, success]]))
    assert success - 1e-6 <= success_bound(zcdp(rho), 2) <= success + 2e-4


def test_no_guess_against_random_zcdp_releases_beats_the_bound():
    draw = np.random.default_rng(2)
    nearest = 1.0
    for _ in range(25):
        k, outputs = int(draw.integers(2, 5)), int(draw.integers(2, 6))
        law = draw.dirichlet(np.full(outputs, draw.choice([0.5, 1.0, 5.0])), k) + 1e-6
        law /= law.sum(axis=1, keepdims=True)
        bound = success_bound(zcdp(rho_of(law) + 1e-9), k)
        assert best_guess(law) <= bound + 1e-6
        nearest = min(nearest, bound - best_guess(law))
    assert nearest < 0.02


def test_zcdp_is_never_looser_than_what_it_converts_to():
    for rho, epsilon in itertools.product(("0.01", "0.5", 3), (0.1, 0.5, 1, 2, 4, 8)):
        one = approximate(epsilon, min(1, zcdp_delta(rho, epsilon)))
        for k in (2, 10, 100):
            assert success_bound(zcdp(rho), k) <= success_bound(one, k) + 1e-9


def test_metric_guarantees_count_at_the_diameter():
    assert success_bound(metric("0.5", 4), 10) == success_bound(pure(2), 10)
    assert odds(metric("0.5", 4)) == odds(pure(2))


def test_odds_are_rounded_up_and_known_only_with_epsilon():
    assert math.e <= odds(pure(1)) < math.e * (1 + 1e-15)
    assert odds(approximate(1, 0)) == odds(pure(1))
    assert odds(approximate(1, "1e-6")) is None
    assert odds(pure(10**6)) == math.inf
    assert odds(zcdp(1)) is None
    assert odds(HEURISTIC) is None


def test_delta_is_not_the_chance_that_the_odds_pass_e_to_the_epsilon():
    """400 draws of Laplace noise at (0.1, 10^-6): more than e^ε comes up over 100 times as often as δ."""
    scale, epsilon, wanted = 5000.0, 0.1, 1e-6
    q = math.exp(-1 / scale)
    one = np.array([1 / (1 + q), *(q**j * (1 - q) / (1 + q) for j in range(1, 5)), q**5 / (1 + q)])
    law = np.ones(1)
    for _ in range(400):
        law = np.convolve(law, one)
    losses = (2000 - 2 * np.arange(len(law))) / scale
    delta = (law * -np.expm1(np.minimum(0, epsilon - losses))).sum()
    assert delta < wanted
    assert law[losses > epsilon].sum() > 100 * delta
    for more in (0.005, 0.01, 0.05):  # what the documentation says instead
        assert law[losses >= epsilon + more].sum() <= delta / -math.expm1(-more)


def test_every_bound_is_at_least_its_exact_value():
    """600 budgets against sixty digits: a bound may be stated too high, never too low."""
    draw, work = np.random.default_rng(5), Context(prec=60)

    def digits(value):
        return work.divide(Decimal(value.numerator), Decimal(value.denominator))

    for _ in range(600):
        epsilon = Fraction(str(round(10 ** draw.uniform(-3, 1.5), int(draw.integers(3, 6)))))
        delta = Fraction(str(draw.choice(["0", "1e-6", "1e-3", "0.05"])))
        guarantee = approximate(epsilon, delta)
        power, spent = work.exp(digits(epsilon)), digits(delta)
        for k in (2, 10, 100, 1000, 10**6):
            exact = work.divide(power + (k - 1) * spent, power + k - 1)
            assert exact <= Decimal(success_bound(guarantee, k)) <= exact * (1 + Decimal("1e-14"))


@pytest.mark.parametrize(
    ("guarantee", "name"),
    [
        (pure("1.0986"), "strong"),  # ln 3 = 1.09861...
        (pure("1.0987"), "moderate"),
        (pure("2.9444"), "moderate"),  # ln 19 = 2.94443...
        (pure("2.9445"), "weak"),
        (pure("9.2102"), "weak"),  # ln 9999 = 9.21024...
        (pure("9.2103"), NONE),
        (approximate("0.001", "1e-4"), "strong"),
        (approximate("0.001", "1.01e-4"), "moderate"),
        (approximate("0.001", "1.01e-3"), "weak"),
        (approximate("0.001", "0.1"), "weak"),
        (approximate("0.001", "0.11"), NONE),
        (approximate("1.0986", "1e-4"), "moderate"),  # δ adds to the success as well
        (zcdp("0.1"), "strong"),
        (zcdp(100), NONE),
        (metric(1, 3), "weak"),
        (HEURISTIC, NONE),
    ],
)
def test_strength_follows_the_rule(guarantee, name):
    assert strength(guarantee) == name
    names = list(STRENGTHS)
    weaker = names[names.index(name) :] if name in names else []
    assert [n for n in names if at_least(strength(guarantee), n)] == weaker


def test_the_rule_is_what_the_documentation_says():
    rule = [(name, float(STRENGTHS[name]), float(HARM[name])) for name in STRENGTHS]
    assert rule == [("strong", 0.75, 1e-4), ("moderate", 0.95, 1e-3), ("weak", 0.9999, 0.1)]


@pytest.mark.parametrize(
    "make", [pure, zcdp, lambda b: approximate(b, "1e-5"), lambda d: approximate(1, d / 100)]
)
def test_larger_budgets_promise_less(make):
    budgets = [0.001, 0.01, 0.1, 0.5, 1, 2, 5, 10, 50]
    for k in (2, 10, 1000):
        values = [success_bound(make(b), k) for b in budgets]
        assert values == sorted(values)
        assert 1 / k <= values[0] < values[4] <= values[-1] <= 1
    more = [success_bound(make(1), k) for k in (2, 3, 10, 100, 10**6)]
    assert more == sorted(more, reverse=True)


def test_nothing_is_promised_without_a_formal_guarantee():
    assert success_bound(HEURISTIC, 1000) == 1


def test_huge_budgets_neither_overflow_nor_pass_one():
    for guarantee in (pure(10**9), zcdp(10**9), approximate(10**9, "0.5")):
        assert success_bound(guarantee, 1000) == 1
        assert strength(guarantee) == NONE


def test_a_metric_without_an_end_bounds_nothing_at_its_diameter():
    endless = Guarantee(
        kind="metric",
        epsilon=1,
        metric="difference of answers",
        relation=Relation("any-database"),
        scope=Scope("an answer"),
    )
    assert success_bound(endless, 2) == 1
    assert math.isinf(odds(endless))
