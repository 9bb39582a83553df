"""The gates on made-up methods with known distributions, and the laws of pixelisation by a second hand."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np
import pytest

from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian
from dpveil.noise.bernoulli import bernoulli
from dpveil.noise.bits import SeededBits
from dpveil_audit.divergence import ProductLaw, hockey_stick
from dpveil_audit.engine import Drawn
from dpveil_audit.pixel.case import Case, Pair, Part, Version, adversarial_pairs
from dpveil_audit.pixel.gates import (
    MethodAudit,
    distinguish_gate,
    exact_gate,
    fit_gate,
    same_gate,
)
from dpveil_audit.pixel.methods import TABLE
from dpveil_audit.pixel.methods.dp_pix import INTACT
from dpveil_audit.pixel.methods.dp_pix_gaussian import INTACT as INTACT_GAUSSIAN

CHANCE = Fraction(3, 4)


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
    return ProductLaw.of(rows, parts)


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
    return [Pair("one", black, one), Pair("all", black, black + 255)]


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
    own = replace(ENTRY, right=lambda method, images: distribution(method, image[None]))
    shown = replace(version, releases=lambda method, _, *given: version.releases(method, image, *given))
    [found] = fit_gate(shown, setting, own, bits=SeededBits(1))
    assert found.passed == (version is RIGHT)
    assert "power" in found.sees


def test_a_method_without_a_promise_has_to_tell_neighbours_apart():
    """Seeded: what tells nothing apart passes for telling with probability below 1e-9."""
    setting = Drawn(case_of("heuristic"), 2_000)
    copied = replace(RIGHT, releases=lambda method, image, count, bits: np.repeat(image[None], count, axis=0))
    filled = replace(
        RIGHT, releases=lambda method, image, count, bits: np.zeros((count, *image.shape), np.uint8)
    )
    assert next(distinguish_gate(copied, setting, ENTRY, bits=SeededBits(6))).passed
    assert not next(distinguish_gate(filled, setting, ENTRY, bits=SeededBits(6))).passed


SHAPES = [(2, 3, 1, 2, 1), (2, 3, 1, 2, 2), (3, 3, 1, 2, 1), (3, 3, 1, 2, 4), (2, 2, 3, 2, 1)]
SHAPES += [(1, 3, 3, 2, 2), (2, 3, 1, 2, None), (2, 2, 1, 5, None), (1, 1, 3, 1, None)]


def pixels_of(shape, method=DPPix, levels=(0, 255), **budget):
    height, width, channels, block, m = shape
    return Case(height, width, channels, method(block=block, neighbourhood=m, **budget), levels)


def gate(name, case):
    """Return what is spent on sums and on levels, after all gates that compute have passed."""
    found = list(exact_gate(TABLE[name].intact, case, TABLE[name]))
    assert len(found) == 3
    assert all(finding.passed for finding in found)
    return found[0].value, found[1].value


@pytest.mark.parametrize("shape", SHAPES, ids=str)
def test_budgets_are_kept_and_spent(shape):
    """ε in full; ρ in full by Gaussian noise, as at orders where (1 - α)·t is an integer its Rényi rate is
    exactly t²/2σ²; by Laplace noise a little less, as ε-DP is at most ε²/2-zCDP; δ not by far too little.
    """
    case = pixels_of(shape, epsilon="0.3" if shape[4] is None else 3)
    sums, levels = gate("dp-pix", case)
    assert sums == float(case.method.epsilon)
    assert levels > (1 - 1e-5) * float(case.method.epsilon)
    assert gate("dp-pix-gaussian", pixels_of(shape, DPPixGaussian, rho="0.7"))[0] == pytest.approx(
        0.7, rel=1e-9
    )
    assert 0.2 < gate("dp-pix", pixels_of(shape, rho="0.3"))[0] < 0.3
    for method in (DPPix, DPPixGaussian):
        assert gate(method.name, pixels_of(shape, method, epsilon=2, delta="0.01"))[0] > 0.001


@pytest.mark.parametrize(
    ("size", "block"), [((1, 1, 1), 40), ((3, 5, 3), 1), ((17, 17, 1), 16), ((2, 9, 3), 2)]
)
@pytest.mark.parametrize(
    ("steps", "method"),
    [
        (INTACT, DPPix(epsilon=20, neighbourhood=4)),
        (INTACT, DPPix(epsilon=20, delta="0.01")),
        (INTACT, DPPix(rho=2, neighbourhood=4)),
        (INTACT_GAUSSIAN, DPPixGaussian(rho=20)),
        (INTACT_GAUSSIAN, DPPixGaussian(epsilon=2, delta="1e-5", neighbourhood=4)),
    ],
    ids=["pure", "laplace δ", "laplace ρ", "zcdp", "gaussian δ"],
)
def test_steps_are_the_method_bit_for_bit(size, block, steps, method):
    case = Case(*size, replace(method, block=block))
    assert next(same_gate(steps, case)).passed
    image = (np.arange(np.prod(size)) * 41 % 256).astype(np.uint8).reshape(size)
    released = case.method.release(image, bits=SeededBits(3))
    assert np.array_equal(steps.releases(case.method, image, 1, SeededBits(3))[0], released)


SIZES = [(1, 1), (1, 7), (7, 1), (3, 5), (17, 17), (4, 4), (2, 33)]


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("block", [1, 2, 16, 50])
@pytest.mark.parametrize("neighbourhood", [1, 2, 5, None])
def test_pairs_are_distinct_neighbours(size, channels, block, neighbourhood):
    pairs = adversarial_pairs(
        height=size[0], width=size[1], channels=channels, block=block, neighbourhood=neighbourhood
    )
    most = min(neighbourhood or size[0] * size[1], size[0] * size[1])
    assert all(1 <= pair.pixels <= most for pair in pairs)
    assert max(pair.pixels for pair in pairs) == most
    assert all(pair.first.shape == pair.second.shape == (*size, channels) for pair in pairs)
    assert len({(p.first.tobytes(), p.second.tobytes()) for p in pairs}) == len(pairs)
