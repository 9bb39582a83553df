"""The least scale of the truncated Laplace: all pairs of answers and all responses, and the thesis."""

from __future__ import annotations

import math
from fractions import Fraction
from functools import cache
from itertools import combinations, product

import mpmath
import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.scalar import Range
from dpveil.mechanisms.scalar.lattice import Lattice
from dpveil.mechanisms.scalar.matrix_cost import (
    ROUNDING,
    certify_rows,
    cost_of_matrix,
    log_ratio,
    mix_uniform,
    steepest,
)
from dpveil.mechanisms.scalar.noise_mechanisms import LaplaceNoise, StaircaseNoise
from dpveil.mechanisms.scalar.scales import least_scale
from dpveil.noise.integer_matrix import ROW_SUM, IntegerMatrix, log_above, quantise
from dpveil.numbers.expected_error import absolute, loss_of_answers, remap


@st.composite
def queries(draw):
    """Ranges with up to three gaps and any ends, on whole numbers, and a reach that need not fit them."""
    count = 2 * draw(st.integers(0, 3))
    edges = np.cumsum(draw(st.lists(st.integers(1, 9), min_size=count + 2, max_size=count + 2))).tolist()
    low = edges[0] if draw(st.booleans()) else None
    high = edges[-1] if draw(st.booleans()) else None
    allowed = Range(low, high, gaps=list(zip(edges[1:-1:2], edges[2:-1:2], strict=True)))
    return allowed, draw(st.integers(1, 8))


epsilons = st.sampled_from([Fraction(e) for e in ("1/20", "1/2", "1", "5/2", "8")])


def worst(lattice, epsilon, scale, metric):
    """The largest log-ratio less what is allowed, over all pairs of answers near edges, by brute sums."""
    rate = 1 / float(scale)
    edges = [edge for span in lattice.spans for edge in span if edge is not None] or [0]
    span = max(40, 3 * lattice.reach)
    tail = math.ceil(45 / rate) + span  # what is left out is e^-45 of what is there
    outputs = np.arange(min(edges) - tail, max(edges) + tail + 1)
    outputs = outputs[lattice.is_allowed(outputs)]
    answers = np.arange(min(edges) - span, max(edges) + span + 1)
    answers = answers[lattice.is_allowed(answers)]
    totals = np.exp(-rate * np.abs(outputs - answers[:, None])).sum(axis=1)
    shown = outputs[(outputs >= answers[0]) & (outputs <= answers[-1])]
    logs = -rate * np.abs(shown - answers[:, None]) - np.log(totals)[:, None]
    most = -math.inf
    for i in range(len(answers)):
        steps = answers[i + 1 :] - answers[i]
        loss = np.abs(logs[i + 1 :] - logs[i]).max(axis=1, initial=0.0)
        promised = steps <= lattice.reach
        excess = (
            loss - float(epsilon) * steps / lattice.reach if metric else (loss - float(epsilon))[promised]
        )
        most = max(most, float(excess.max(initial=-math.inf)))
    return most


@settings(max_examples=40, deadline=None)
@given(queries(), epsilons, st.booleans())
def test_the_least_scale_over_all_pairs(query, epsilon, metric):
    """Valid at the scale; broken a millionth below, unless it is reach/ε, below which it never goes."""
    lattice = Lattice(query[0], Fraction(1), Fraction(query[1]))
    assume(lattice.reach / epsilon <= 30)
    scale = least_scale(lattice, epsilon, metric=metric)
    assert lattice.reach / epsilon <= scale <= 2 * lattice.reach / epsilon
    assert worst(lattice, epsilon, scale, metric) <= 1e-11
    if scale > lattice.reach / epsilon:
        assert worst(lattice, epsilon, scale * (1 - Fraction(1, 10**6)), metric) > 1e-9


@pytest.mark.parametrize("width", [1, 2, 7, 40])
@pytest.mark.parametrize("epsilon", [0.2, 1.0, 5.0])
def test_the_fixed_point_of_holohan_et_al(width, epsilon):
    """b = ΔF/(ε - ln ΔC(b)), ΔC = C(low + ΔF)/C(low): The Bounded Laplace Mechanism, theorem 3.5."""
    scale = 1 / epsilon
    for _ in range(2000):
        at_end = 1 - (1 + math.exp(-width / scale)) / 2
        inside = 1 - (math.exp(-1 / scale) + math.exp(-(width - 1) / scale)) / 2
        scale = 1 / (epsilon - math.log(inside / at_end))
    fine = Fraction(1, 1 << 16)
    lattice = Lattice(Range(0, width), fine, Fraction(1))
    found = float(least_scale(lattice, Fraction(str(epsilon)), metric=False) * fine)
    assert found == pytest.approx(scale, rel=1e-3)


def test_one_record_with_gaps_too_far_apart_is_refused():
    lattice = Lattice(Range(0, 10**6, gaps=[(1, 2)]), Fraction(1), Fraction(1))
    with pytest.raises(InvalidParameter, match="points around the gaps"):
        least_scale(lattice, Fraction(1), metric=False)
    assert 1 < least_scale(lattice, Fraction(1), metric=True) < 2


# Certificates against all pairs in whole numbers, and what mixing and rounding may do to a law.


@st.composite
def matrices(draw):
    """Rows of positive whole weights over wide magnitudes, with answers on a lattice with gaps."""
    size = draw(st.integers(2, 9))
    exponents = st.integers(0, 50)
    rows = [[draw(st.integers(1, 1000)) << draw(exponents) for _ in range(size)] for _ in range(size)]
    steps = draw(st.lists(st.sampled_from([1, 1, 1, 2, 5]), min_size=size - 1, max_size=size - 1))
    return rows, [draw(st.integers(-5, 5)), *steps]


log_once = cache(log_above)


def brute(matrix, points, allowed):
    """The largest log-ratio over all pairs of answers and all responses, from fractions."""
    found = [Fraction(0)]
    for i, j in combinations(range(len(points)), 2):
        if allowed(int(points[j] - points[i])):
            for a, b in zip(matrix.weights[i], matrix.weights[j], strict=True):
                found.append(log_once(Fraction(max(a, b), min(a, b))) / allowed(int(points[j] - points[i])))
    return max(found)


@settings(max_examples=60, deadline=None)
@given(matrices(), st.integers(1, 12))
def test_certificates_are_all_pairs_rounded_up(given_matrix, reach):
    rows, steps = given_matrix
    matrix, points = quantise(rows), np.cumsum(steps)
    seen = cost_of_matrix(matrix, points, reach, Fraction(reach))
    for value, allowed in (
        (seen.epsilon, lambda d: 1 if d <= reach else 0),
        (seen.overall, lambda d: 1),
        (seen.per_distance, lambda d: Fraction(d, reach)),
    ):
        right = brute(matrix, points, allowed)
        assert right <= value <= right + 2 * reach * ROUNDING
    assert seen.epsilon == log_ratio(matrix, points, reach)
    assert seen.per_distance == reach * steepest(matrix, points)


def test_equal_rows_cost_nothing_and_zeros_that_differ_have_no_bound():
    half = ROW_SUM // 2
    points = np.array([0, 1])
    same = IntegerMatrix(((half, half, 0), (half, half, 0)))
    assert cost_of_matrix(same, points, 1, Fraction(1)).overall == 0
    with pytest.raises(NoiseError):
        log_ratio(IntegerMatrix(((half, half), (0, ROW_SUM))), points, 1)
    with pytest.raises(NoiseError):
        steepest(IntegerMatrix(((half, half), (0, ROW_SUM))), points)


@settings(max_examples=60, deadline=None)
@given(
    st.integers(2, 6).flatmap(
        lambda n: st.lists(st.lists(st.integers(0, 10**6), min_size=n, max_size=n), min_size=2, max_size=5)
    ),
    st.integers(1, 1 << 58),
)
def test_mixing_keeps_every_bound_and_raises_what_is_small(rows, least):
    rows = [[weight + (j == 0) for j, weight in enumerate(row)] for row in rows]  # no empty row
    found = mix_uniform(rows, Fraction(least))
    shown = [any(column) for column in zip(*rows, strict=True)]

    def laws(given_rows):
        return [[Fraction(weight, sum(row)) for weight in row] for row in given_rows]

    before, after = laws(rows), laws(found)
    floor = Fraction(min(least, ROW_SUM // (2 * sum(shown))), ROW_SUM) / 2
    for i, row in enumerate(after):
        for y, chance in enumerate(row):
            assert (chance > 0) == shown[y]
            assert not shown[y] or chance >= min(floor, before[i][y])
            if found is not rows and shown[y]:
                assert chance >= floor
    for a, b in combinations(range(len(rows)), 2):
        for y in range(len(shown)):
            for one, other in ((a, b), (b, a)):
                if before[other][y]:
                    bound = max(Fraction(1), before[one][y] / before[other][y])
                    assert after[one][y] <= bound * after[other][y]


def test_nothing_is_mixed_in_where_weights_are_large():
    rows = [[3, 5], [5, 3]]
    assert certify_rows(lambda _: rows, Fraction(1), Fraction(1), lambda _: Fraction(0)) == quantise(rows)


def geometric(size):
    def rows(epsilon):
        ratio = mpmath.exp(-mpmath.mpf(epsilon.numerator) / epsilon.denominator / 2)
        return [[int(ratio ** abs(x - y) * (1 << 200)) for y in range(size)] for x in range(size)]

    return rows


@pytest.mark.parametrize("epsilon", ["1e-6", "0.01", "1", "20", "300", "1e5"])
@pytest.mark.parametrize("size", [2, 9, 60])
def test_what_is_certified_keeps_the_budget_and_nearly_spends_it(epsilon, size):
    budget, points = Fraction(epsilon), np.arange(size)
    matrix = certify_rows(geometric(size), budget, budget, lambda m: log_ratio(m, points, 1))
    exact = brute(matrix, points, lambda d: 1 if d <= 1 else 0)
    assert exact <= budget
    if 0.01 <= budget <= 20 and size < 10:
        with mpmath.workdps(30):
            law = quantise(geometric(size)(budget))
        assert exact >= Fraction(99, 100) * brute(law, points, lambda d: 1 if d <= 1 else 0)


def test_what_64_bits_cannot_carry_is_refused():
    with pytest.raises(NoiseError):
        certify_rows(geometric(3), Fraction(1, 10**11), Fraction(1, 10**11), lambda m: Fraction(0))
    with pytest.raises(NoiseError):
        certify_rows(geometric(3), Fraction(1), Fraction(1), lambda m: Fraction(2))


# Noise on a lattice: weights, tails and masses against sums of the definition; draws by their fit.


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
    height = max(0, (abs(z) - noise.inner) // noise.reach + 1)
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


def test_a_sensitivity_far_beyond_the_range_takes_no_memory():
    near, rest = StaircaseNoise(Fraction(1), 10**15, 10**14).weights(5)
    assert near == [1 << 256] * 5
    assert rest > 10**14 << 256


def test_what_cannot_be_drawn_is_refused_beforehand():
    for noise in (LaplaceNoise(Fraction(1 << 51)), StaircaseNoise(Fraction(1, 10**12), 10**6, 10**5)):
        with pytest.raises(NoiseError):
            noise.prepare()
    NOISES[0].prepare()
    NOISES[3].prepare()


# Utility against loops, and remapping against every map there is.


def example(
    seed: int, responses: int = 4, answers: int = 3
) -> tuple[np.ndarray, list[float], list[float], np.ndarray]:
    rng = np.random.default_rng(seed)
    matrix = rng.dirichlet(np.ones(responses), answers).T
    return (
        matrix,
        sorted(rng.normal(size=responses)),
        sorted(rng.normal(size=answers)),
        rng.uniform(size=answers),
    )


def capped(answers: np.ndarray, guesses: np.ndarray) -> np.ndarray:
    """A loss that is not symmetric: guessing too low is worse."""
    return np.where(guesses < answers, 3.0, 1.0) * np.abs(answers - guesses)


@pytest.mark.parametrize("seed", range(5))
def test_losses_of_answers_are_those_of_loops(seed: int) -> None:
    matrix, responses, answers, _ = example(seed)
    each = [sum(matrix[i, j] * abs(answers[j] - responses[i]) for i in range(4)) for j in range(3)]
    assert loss_of_answers(matrix, responses, answers) == pytest.approx(each)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("loss", [absolute, capped])
def test_remapping_is_the_best_of_all_maps(seed: int, loss: object) -> None:
    matrix, responses, answers, prior = example(seed)
    chances = prior / prior.sum()

    def left(guesses: tuple[float, ...]) -> float:
        return sum(
            chances[j] * matrix[i, j] * float(loss(np.array(answers[j]), np.array(guesses[i])))
            for i in range(4)
            for j in range(3)
        )

    found = remap(matrix, responses, answers, prior, loss)
    assert found.loss == pytest.approx(min(left(guesses) for guesses in product(answers, repeat=4)))
    assert left(tuple(found.guesses)) == pytest.approx(found.loss)


def test_formula_5_77_counts_the_response_twice() -> None:
    """A loss of 1 whatever is guessed leaves 1; as printed, with P(r) once more, it leaves less."""
    matrix, responses, answers, _ = example(1)
    shown = matrix.mean(axis=1)
    published = sum(shown[i] * sum(matrix[i, j] / 3 for j in range(3)) for i in range(4))
    ones = remap(matrix, responses, answers, loss=lambda f, g: np.ones(np.broadcast_shapes(f.shape, g.shape)))
    assert ones.loss == pytest.approx(1)
    assert published < 0.9


def test_a_response_that_never_comes_is_read_as_its_nearest_answer() -> None:
    found = remap([[0, 0], [1, 0.5], [0, 0.5]], [9, 0, 1], [0, 10])
    assert found.guesses.tolist() == [10, 0, 10]


@pytest.mark.parametrize("prior", [[1, 2], [0, 0, 0], [1, -1, 1], [1, np.nan, 1]])
def test_priors_have_to_be_chances(prior: list[float]) -> None:
    matrix, responses, answers, _ = example(2)
    with pytest.raises(InvalidParameter, match="prior"):
        remap(matrix, responses, answers, prior)


def test_shapes_have_to_fit() -> None:
    with pytest.raises(InvalidParameter, match="responses"):
        loss_of_answers(np.eye(3), [0, 1], [0, 1, 2])
