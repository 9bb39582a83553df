"""Every mechanism of the table: in range and on the lattice, its promise, its matrix, and what it refuses."""

from fractions import Fraction

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import chisquare

from dpveil.core.registry import SCALAR
from dpveil.errors import InvalidParameter, NoiseError
from dpveil.mechanisms.scalar import Range, Staircase, TruncatedLaplace
from dpveil.mechanisms.scalar.lattice import coarsest
from dpveil.noise.bits import SeededBits
from dpveil_audit.scalar.case import INTACT, ScalarCase, exact_gate, same_gate

OPEN = [name for name, method in SCALAR.items() if not method.finite_only]
GAPS = Range(0, None, gaps=[(1, "2.5"), (4, 6)])
every = pytest.mark.parametrize("name", SCALAR)
noisy = pytest.mark.parametrize("name", OPEN)


def bits(*words):
    return SeededBits(11, " ".join(map(str, words)))


@every
def test_names_words_and_constructors(name):
    method = SCALAR[name]
    assert method.name == name
    assert method.summary
    assert method.source
    made = method(range="0:5", sensitivity=1, epsilon="0.5")
    assert made == method(range=(0, 5), sensitivity=1, epsilon=Fraction(1, 2))
    assert made.parameters()["epsilon"] == 0.5
    assert made.parameters()["range"] == "0:5"


@every
def test_responses_lie_in_range_and_on_the_lattice(name):
    method = SCALAR[name](range=(-1, "1.3"), sensitivity="0.1", epsilon=1)
    answers = np.array([[-1, 0.05, 1.3], [0.7, 0.1, -0.33]])
    drawn = method.release(np.tile(answers, (1, 100)), bits(name, "many")).ravel()
    assert method.release(answers, bits(name)).shape == answers.shape
    assert drawn.min() >= -1
    assert drawn.max() <= 1.3
    points = method.lattice.index(drawn)
    assert method.lattice.value(points).tolist() == drawn.tolist()
    one = method.release("0.7", bits(name))
    assert isinstance(one, float)
    assert one == method.release(Fraction(7, 10), bits(name))
    assert method.release([], bits(name)).shape == (0,)


@noisy
@pytest.mark.parametrize("allowed", ["0:", ":0", ":", GAPS, Range(None, None, gaps=[(-1, 1)])], ids=str)
def test_ranges_without_ends_and_with_gaps(name, allowed):
    method = SCALAR[name](range=allowed, sensitivity=1, epsilon=2)
    answers = np.resize([-5.0, 0, 1, 3, 6, 9], 600)
    answers = np.array([answer for answer in answers if Fraction(answer) in method.range])
    drawn = method.release(answers, bits(name, allowed))
    assert method.integers is None
    assert all(Fraction(value) in method.range for value in drawn)


@every
def test_guarantees_say_what_is_promised(name):
    method = SCALAR[name](range=(0, 4), sensitivity=2, epsilon="0.5")
    spent = Fraction(0) if name == "uniform" else Fraction(1, 2)
    promise = method.guarantee()
    assert promise.epsilon == spent
    if method.promise == "any-database":
        assert (promise.kind, promise.relation.name, promise.diameter) == ("metric", "any-database", 2)
        assert promise.metric.startswith("|f - f′|/2, answers rounded to ")
        record = SCALAR[name](range=(0, 4), sensitivity=2, epsilon="0.5", relation="database-record")
    else:
        record = method
    promise = record.guarantee()
    assert (promise.kind, promise.relation.name, promise.epsilon) == ("pure", "database-record", spent)
    assert promise.scope.covers == "one number in 0:4, of sensitivity 2"
    assert promise.scope.in_the_clear == ("the range, ΔF and the step, which are public",)
    assert record.certificate.epsilon <= spent or name == "uniform"
    if not method.finite_only:
        without = SCALAR[name](range="0:", sensitivity=2, epsilon="0.5")
        assert without.certificate is None
        assert without.guarantee().diameter is None
        timed = "how long the draw took" in " ".join(without.guarantee().scope.in_the_clear)
        assert timed == (name == "truncated-laplace")


@noisy
def test_responses_beyond_the_range_have_no_chance(name):
    method = SCALAR[name](range=(0, 5), sensitivity=1, epsilon=1, step="1/1000")
    table = method.matrix([-20, 0, 10, 20], [1])
    assert table[0].item() == table[3].item() == 0
    assert table.sum() == pytest.approx(1)


@pytest.mark.parametrize(
    ("name", "settings_", "words"),
    [
        ("staircase", {"relation": "any-database"}, "any-database"),
        ("laplace", {"relation": "neighbours"}, "is unknown"),
        ("geometric", {"step": "0.3"}, "does not divide the range"),
        ("laplace", {"step": "0.3"}, "does not divide the range"),
        ("explicit-fair", {"range": "0:"}, "no end"),
        ("uniform", {"range": (0, 5000)}, "at most 4096"),
        ("explicit-fair", {"range": Range(0, 5, gaps=[(1, 3)])}, "has gaps"),
        ("laplace", {"epsilon": 0}, "epsilon"),
        ("laplace", {"sensitivity": -1}, "sensitivity"),
        (
            "truncated-laplace",
            {"range": Range(0, 10**8, gaps=[(500, 10**8 - 500)]), "step": 1},
            "next to never",
        ),
    ],
)
def test_what_cannot_be_held_is_refused_at_once(name, settings_, words):
    with pytest.raises(InvalidParameter, match=words):
        SCALAR[name](**({"range": (0, 5), "sensitivity": 1, "epsilon": 1} | settings_))


@pytest.mark.parametrize("epsilon", ["0.01", "0.3", "5"])
@pytest.mark.parametrize("gaps", [[], [(2, 5)]])
def test_noise_far_wider_than_the_range_is_drawn_at_once_and_right(epsilon, gaps):
    """Folded draws follow the law of all points; wrong with chance 1e-10 a case, for the fixed seed."""
    method = TruncatedLaplace(range=Range(0, 6, gaps=gaps), sensitivity=3, epsilon=epsilon, step=1)
    points = method.lattice.points
    for answer in (0, 1, 6):
        drawn = method._draw(np.full(50_000, answer), bits("fold"))
        law = method.matrix(responses=points.tolist(), answers=[answer])[:, 0]
        likely = law * len(drawn) > 5
        seen = np.bincount(np.searchsorted(points, drawn), minlength=len(points))
        expected = np.append(law[likely], law[~likely].sum() + 1e-9) * len(drawn)
        counted = np.append(seen[likely], seen[~likely].sum())
        assert chisquare(counted, expected * counted.sum() / expected.sum()).pvalue > 1e-10


@every
def test_nothing_private_has_a_default(name):
    given_all = {"range": (0, 5), "sensitivity": 1, "epsilon": 1}
    for missing in given_all:
        with pytest.raises(InvalidParameter, match=missing):
            SCALAR[name](**{k: v for k, v in given_all.items() if k != missing})


@every
def test_answers_and_bits_that_do_not_fit_are_refused(name):
    method = SCALAR[name](range=(0, 5), sensitivity=1, epsilon=1)
    for answer in (-0.001, 5.001, float("nan"), True, "x", None, [1, 6]):
        with pytest.raises(InvalidParameter, match="answer"):
            method.release(answer, bits(name))
    for wrong in (None, 5, np.random.default_rng(1)):
        with pytest.raises(InvalidParameter, match="bits"):
            method.release(1, wrong)
    with pytest.raises(InvalidParameter, match="not in order"):
        method.matrix([3, 1], [1])
    with pytest.raises(InvalidParameter, match="not in order"):
        method.matrix([], [1])


@noisy
def test_noise_that_cannot_be_drawn_is_refused_before_an_answer_is_seen(name):
    method = SCALAR[name](range="0:", sensitivity=1, epsilon="1e-12", step="1e-6")
    with pytest.raises(NoiseError):
        method.prepare()


def test_stairs_are_flat_and_the_first_is_as_wide_as_stated():
    """γ = 1/(1 + e^(ε/2)) of ΔF, rounded to steps, and one step at least."""
    for epsilon, inner in (("1e-6", 512), (1, 387), (100, 1), (3000, 1)):
        method = Staircase(range="0:", sensitivity=1, epsilon=epsilon, step="1/1024")
        assert method.noise().inner == inner


# What any setting has to keep.


@st.composite
def settings_of(draw):
    count = 2 * draw(st.integers(0, 2))
    edges = np.cumsum(draw(st.lists(st.integers(1, 6), min_size=count + 2, max_size=count + 2))).tolist()
    unit = draw(st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(3, 10)]))
    edges = [unit * edge for edge in edges]
    ends = [draw(st.booleans()), draw(st.booleans())]
    finite = Range(edges[0], edges[-1])
    odd = Range(
        edges[0] if ends[0] else None,
        edges[-1] if ends[1] else None,
        gaps=list(zip(edges[1:-1:2], edges[2:-1:2], strict=True)),
    )
    sensitivity = draw(st.sampled_from([Fraction(1), Fraction(1, 2), Fraction(7, 10), Fraction(3)]))
    epsilon = draw(st.sampled_from([Fraction(e) for e in ("1/100", "1/3", "1", "4", "30")]))
    return finite, odd, sensitivity, epsilon, draw(st.integers(1, 3)), draw(st.booleans())


@every
@settings(max_examples=8, deadline=None)
@given(given_settings=settings_of())
def test_any_setting_keeps_its_promise(name, given_settings):
    """Integers without tolerance, laws far out into their tails, draws as releases."""
    finite, odd, sensitivity, epsilon, parts, record = given_settings
    method = SCALAR[name]
    allowed = finite if method.finite_only else odd
    relation = method.relations[-1] if record else method.relations[0]
    if method.finite_only and finite.width / coarsest(finite, sensitivity) > 40:  # solvers take their time
        sensitivity = finite.width / 12
    query = {"range": allowed, "sensitivity": sensitivity, "epsilon": epsilon, "relation": relation}
    step = coarsest(allowed, sensitivity) / parts
    assume(method.finite_only or step * 400 > sensitivity)
    case = ScalarCase(method(**query, step=step))
    for finding in (*same_gate(INTACT, case), *exact_gate(INTACT, case)):
        assert finding.passed, finding
