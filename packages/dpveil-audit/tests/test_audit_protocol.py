"""The gates on the protocol alone: made-up methods with known distributions, right ones and wrong ones."""

import math
from dataclasses import dataclass, replace
from decimal import Decimal
from fractions import Fraction
from types import SimpleNamespace

import numpy as np
import pytest

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.errors import InvalidParameter
from dpveil.noise.bernoulli import bernoulli
from dpveil.noise.bits import SeededBits
from dpveil_audit.pixel.case import Case, Drawn, Level, Version, one_by_one
from dpveil_audit.pixel.gates import (
    MethodAudit,
    bound_gate,
    distinguish_gate,
    exact_gate,
    fit_gate,
    hockey_stick,
    same_gate,
    sharpest,
)
from dpveil_audit.pixel.images import Pair
from dpveil_audit.pixel.laws import Part, ProductLaw, product_law

CHANCE = Fraction(3, 4)
LOSS = math.log(3)


@dataclass(frozen=True, kw_only=True)
class Response:
    """Randomised response on every value, black or white: the truth with probability 3/4."""

    kind: str = "pure"
    epsilon: Fraction = Fraction("1.0987")
    words: str = ""

    def guarantee(self, *, height, width, channels):
        any_image = {"relation": Relation("any-image"), "scope": Scope("a tiny image")}
        epsilon = self.epsilon * height * width * channels
        numbers = {
            "pure": {"epsilon": epsilon},
            "zcdp": {"rho": epsilon**2 / 2},
            "approximate": {"epsilon": epsilon / 2, "delta": "0.376"},
            "metric": {"epsilon": self.epsilon, "metric": "values that differ", "diameter": 4},
            "heuristic": {"broken_by": ("anybody",)},
        }
        return Guarantee(kind=self.kind, **numbers[self.kind], **any_image)

    def release(self, image, *, bits):
        return releases(self, image, 1, bits)[0]


def releases(method, image, count, bits, chance=CHANCE):
    true = bernoulli(chance, count * image.size, bits).reshape(count, *image.shape)
    return np.where(true, image, 255 - image).astype(np.uint8)


def distribution(method, images, chance=CHANCE):
    parts, rows = [], []
    for place in np.ndindex(*images.shape[1:]):
        white = images[:, *place] // 255
        parts.append(Part(np.array([place]), np.array([[0], [255]], np.uint8)))
        rows.append(
            np.array([[chance, 1 - chance] if w == 0 else [1 - chance, chance] for w in white], object)
        )
    return product_law(parts, rows)


RIGHT = Version(name="right", releases=releases, distribution=distribution)
WRONG = Version(
    name="wrong",
    releases=lambda *given: releases(*given, Fraction(17, 20)),
    distribution=lambda *given: distribution(*given, Fraction(17, 20)),
)
REUSED = replace(
    RIGHT,
    name="reused",
    releases=lambda method, image, count, bits: np.where(
        releases(method, image[:1, :1] * 0, count, bits) == 0, image, 255 - image
    ),
)
DISTANCES = {
    "distances": lambda images, pairs: np.sum(
        images[pairs[:, 0]] != images[pairs[:, 1]], axis=(1, 2, 3)
    ).astype(float)
}


def pairs(case):
    black = np.zeros(case.size, np.uint8)
    one = black.copy()
    one[0, 0] = 255
    return [Pair("one", black, one, 1.0), Pair("all", black, black + 255, float(black.size))]


ENTRY = MethodAudit(
    method=Response, intact=RIGHT, mutants=(WRONG, REUSED), levels={}, pairs=pairs, **DISTANCES
)


def case_of(kind, size=(1, 2, 1)):
    return Case(*size, Response(kind=kind))


@pytest.mark.parametrize("kind", ["pure", "zcdp", "approximate", "metric"])
@pytest.mark.parametrize("exact", [True, False])
def test_every_kind_of_promise_is_held_against_the_distribution(kind, exact):
    """ε = 1.0987 is just above ln 3, and δ = 0.376 just above 9/16 - 3/16."""

    def taken(version):
        if exact:
            return version
        floats = lambda *given: replace_masses(version.distribution(*given))  # noqa: E731
        return replace(version, distribution=floats)

    [kept, *distances] = exact_gate(taken(RIGHT), case_of(kind), ENTRY)
    [broken, *_] = exact_gate(taken(WRONG), case_of(kind), ENTRY)
    assert len(distances) == (kind == "metric")  # how far images lie apart is held against the diameter
    assert all(found.passed for found in distances)
    assert kept.passed, kept
    assert kept.value > 0.4 * kept.limit
    assert not broken.passed, broken


def replace_masses(found):
    return ProductLaw(found.index, found.floats, found.parts)


def test_exact_chances_leave_no_tolerance():
    """ln 3 = 1.09861228866810969139...: what is smaller by 1e-19 is broken, floats would not see it."""
    for digits, kept in (("1.0986122886681096914", True), ("1.0986122886681096913", False)):
        case = Case(1, 1, 1, Response(epsilon=Fraction(digits)))
        [found] = exact_gate(RIGHT, case, ENTRY)
        assert found.passed == kept


def test_weights_count_by_their_share():
    weights = np.array([[3, 1], [2, 6]], object)
    found = ProductLaw(np.array([[0], [1]]), [weights])
    assert found.largest_loss(np.array([[0, 1], [1, 0]])) == pytest.approx(Decimal(3).ln())
    assert found.floats[0].tolist() == [[0.75, 0.25], [0.25, 0.75]]


def test_hockey_sticks_by_hand():
    coin = np.array([Fraction(3, 4), Fraction(1, 4)], object)
    assert hockey_stick([(coin, coin[::-1])] * 2, Fraction(0)) == Fraction(9, 16) - Fraction(1, 16)
    floats = coin.astype(float)
    at_one = hockey_stick([(floats, floats[::-1])], Fraction(1))
    assert at_one == pytest.approx(0.75 - math.e / 4)
    many = [(floats, floats[::-1])] * 13  # 8 192 outcomes: losses are composed
    joint = sum(
        math.comb(13, k) * max(0, 0.75**k * 0.25 ** (13 - k) - math.e * 0.25**k * 0.75 ** (13 - k))
        for k in range(14)
    )
    assert joint <= hockey_stick(many, Fraction(1)) <= joint + 1e-6


def test_a_part_reads_what_its_places_show():
    part = Part(np.array([[0, 0, 0], [0, 1, 0]]), np.array([[0, 0], [9, 9], [0, 9], [9, 9]], np.uint8))
    shown = np.array([[[[9], [9]]], [[[0], [9]]], [[[9], [0]]]], np.uint8)
    assert part.read(shown).tolist() == [1, 2, -1]
    assert part.first.tolist() == [0, 1, 2, 1]


@pytest.mark.parametrize("version", [RIGHT, WRONG, REUSED], ids=lambda v: v.name)
def test_draws_are_fitted_one_by_one_and_in_pairs(version):
    """Seeded; the right one is rejected with probability below 1e-9."""
    setting = Drawn(case_of("pure", (1, 2, 3)), 5_000)
    image = np.array([[[0, 255, 255], [0, 0, 255]]], np.uint8)
    own = lambda method, images: distribution(method, image[None])  # noqa: E731
    shown = replace(version, releases=lambda method, _, *given: version.releases(method, image, *given))
    [found] = fit_gate(shown, setting, own, bits=SeededBits(1))
    assert found.passed == (version is RIGHT)
    assert "power" in found.sees


def test_outcomes_may_be_seen_otherwise_than_in_pixels():
    hidden = replace(
        RIGHT, outcomes=lambda m, image, n, bits: (releases(m, image, n, bits)[:, :, 0, 0] > 0) * 1
    )
    noted = lambda method, images: ProductLaw(np.array([[0]]), [np.array([[0.25, 0.75]])])  # noqa: E731
    setting = Drawn(case_of("pure", (1, 1, 1)), 5_000)
    white = lambda *given: np.full((given[2], 1), 1)  # noqa: E731
    coin = lambda m, i, n, bits: bernoulli(CHANCE, n, bits)[:, None] * 1  # noqa: E731
    assert next(fit_gate(replace(hidden, outcomes=coin), setting, noted, bits=SeededBits(2))).passed
    assert not next(fit_gate(replace(hidden, outcomes=white), setting, noted, bits=SeededBits(2))).passed
    with pytest.raises(InvalidParameter, match="shows no places"):
        next(fit_gate(RIGHT, setting, noted, bits=SeededBits(2)))


def test_the_sharpest_power_is_the_factor_of_a_budget():
    """At the power s, the loss of randomised response is s·ln 3."""
    factor = sharpest((0.25, 0.75), 20_000, 1e-9)
    raised = 0.75**factor / (0.75**factor + 0.25**factor)
    assert math.log(raised / (1 - raised)) == pytest.approx(factor * LOSS)
    assert 1.05 < factor < 1.4
    assert sharpest((1.0,), 20_000, 1e-9) == 0


@pytest.mark.parametrize("kind", ["pure", "zcdp", "metric"])
def test_lower_bounds_know_every_promise(kind):
    """Seeded; the right one is rejected with probability below 1e-9."""
    setting = Drawn(case_of(kind, (1, 1, 1)), 10_000)
    assert all(f.passed for f in bound_gate(RIGHT, setting, ENTRY, bits=SeededBits(3)))
    assert not all(f.passed for f in bound_gate(WRONG, setting, ENTRY, bits=SeededBits(3)))


def test_a_metric_pair_may_cost_its_distance():
    setting = Drawn(case_of("metric", (1, 4, 1)), 10_000)
    one, every = bound_gate(RIGHT, setting, ENTRY, bits=SeededBits(4))
    assert every.limit == pytest.approx(4 * one.limit)
    assert one.value < one.limit < every.value < every.limit


def test_at_distance_zero_nothing_may_be_told_apart():
    flat = replace(ENTRY, distances=lambda images, pairs: np.zeros(len(pairs)))
    [found, _] = exact_gate(RIGHT, case_of("metric"), flat)
    assert not found.passed


def test_a_promise_of_delta_alone_is_measured_in_delta():
    promise = Guarantee(
        kind="approximate", epsilon=0, delta="0.5", relation=Relation("any-image"), scope=Scope("")
    )
    case = SimpleNamespace(size=(1, 1, 1), method=None, guarantee=promise)
    one = replace(ENTRY, pairs=lambda case: pairs(case)[:1])
    [kept] = bound_gate(RIGHT, Drawn(case, 10_000), one, bits=SeededBits(5))
    [broken] = bound_gate(WRONG, Drawn(case, 10_000), one, bits=SeededBits(5))
    assert (kept.passed, broken.passed) == (True, False)
    assert kept.unit == "δ"
    assert 0.4 < kept.value <= 0.5 < broken.value <= 0.7
    assert 0.5 < kept.detectable < 0.6


def test_a_method_without_a_promise_has_to_tell_neighbours_apart():
    """Seeded: what tells nothing apart passes for telling with probability below 1e-9."""
    setting = Drawn(case_of("heuristic"), 2_000)
    copied = replace(RIGHT, releases=lambda method, image, count, bits: np.repeat(image[None], count, axis=0))
    filled = replace(
        RIGHT, releases=lambda method, image, count, bits: np.zeros((count, *image.shape), np.uint8)
    )
    assert next(distinguish_gate(copied, setting, ENTRY, bits=SeededBits(6))).passed
    assert not next(distinguish_gate(filled, setting, ENTRY, bits=SeededBits(6))).passed


def test_an_entry_runs_through_all_gates(monkeypatch):
    case = case_of("pure", (1, 1, 1))
    quick = Level((case_of("pure"),), (Drawn(case, 4_000),), (Drawn(case, 4_000),))
    two = Drawn(case_of("pure", (1, 2, 1)), 4_000)
    level = replace(quick, bound=(*quick.bound, two))
    entry = replace(ENTRY, levels={"quick": level, "deep": level}, right=distribution)
    monkeypatch.setattr("dpveil_audit.pixel.gates.uneven_image", lambda size: np.zeros(size, np.uint8))
    found = entry.run("response", "deep", lambda name: SeededBits(7, name), int)
    assert found.passed, [f for f in found.findings if not f.passed]
    killed = {mutant.name: mutant.killed_by for mutant in found.mutants}
    assert killed == {"wrong": ("exact", "fit", "bound"), "reused": ("bound",)}
    assert {mutant.tried_by for mutant in found.mutants} == {("exact", "fit", "bound")}


def test_one_by_one_is_the_real_road():
    case = case_of("pure", (8, 8, 1))
    assert next(same_gate(replace(RIGHT, releases=one_by_one), case)).passed
    assert not next(same_gate(WRONG, case)).passed


def test_distributions_of_another_shape_are_as_far_apart_as_can_be():
    image = np.zeros((1, 1, 2, 1), np.uint8)
    whole = distribution(None, image)
    half = ProductLaw(whole.index[:, :1], whole.masses[:1], whole.parts[:1])
    assert whole.distance(half) == 1.0
    other = ProductLaw(whole.index, whole.masses, tuple(Part(p.places, p.looks + 1) for p in whole.parts))
    assert whole.distance(other) == 1.0
    assert whole.distance(distribution(None, image, Fraction(1, 2))) == 0.25


def test_outcomes_are_told_apart_whatever_they_look_like():
    """Every look of four places with two levels is found again, and none that is not among them."""
    places = np.array([(0, k, 0) for k in range(4)])
    looks = np.array(list(np.ndindex(2, 2, 2, 2)), np.uint8) * 255
    part = Part(places, looks)
    assert part.read(looks.reshape(16, 1, 4, 1)).tolist() == list(range(16))
    assert part.read(looks.reshape(16, 1, 4, 1) // 255 * 254 + 1).tolist() == [-1] * 15 + [15]
