"""What `explain` says: the contract's numbers, needs that are really enough, and words that fit them."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import ClassVar

import pytest

from dpveil.accounting.compose import whole_region
from dpveil.accounting.meaning import NONE, STRENGTHS, at_least, strength
from dpveil.core.guarantee import Guarantee, Relation, Scope
from dpveil.core.region import Box, RegionRecord
from dpveil.core.region_origin import Origin
from dpveil.faces import Attributes
from dpveil.mechanisms.method import Method
from dpveil.mechanisms.pixel import DPPix, DPPixGaussian, PixelMethod
from dpveil.release.explain import explain
from dpveil.release.quote import Quote

SIZE = {"height": 128, "width": 128, "channels": 3}
FACE = {"height": 120, "width": 88, "channels": 3}
USUAL = DPPix(epsilon=1, block=16, neighbourhood=256)
METHODS = [
    USUAL,
    DPPix(epsilon=20, block=16),
    DPPix(epsilon=20, delta="1e-6", block=16),
    DPPixGaussian(rho="0.5", block=16, neighbourhood=256),
    DPPixGaussian(rho="1e-6", block=16),
    DPPixGaussian(epsilon=3, delta="1e-6", block=16, neighbourhood=1000),
]


@dataclass(frozen=True, kw_only=True)
class Blurred(PixelMethod):
    """A method without a promise, and without budget or neighbourhood."""

    name: ClassVar[str] = "blurred"
    kind: ClassVar[str] = "heuristic"

    def guarantee(self, *, height, width, channels):
        return Guarantee(
            kind="heuristic", relation=Relation("any-image"), scope=Scope("all"), broken_by=("deblurring",)
        )

    def noise_scale(self, *, height, width, channels):
        return 0.0

    def _draw(self, image, bits):
        raise NotImplementedError


@pytest.mark.parametrize("method", METHODS, ids=str)
def test_needs_reach_the_strength_and_a_little_more_does_not(method):
    found = explain(method, **FACE)
    assert [need.strength for need in found.needs] == list(STRENGTHS)
    for need in found.needs:
        assert need.budget is not None
        knob = "rho" if "rho" in need.budget else "epsilon"
        value = Fraction(str(need.budget[knob]))
        enough = replace(method, **{knob: value})
        assert at_least(strength(enough.guarantee(**FACE)), need.strength)
        assert need.noise_scale == enough.noise_scale(**FACE)
        more = replace(method, **{knob: value * Fraction(104, 100)})
        assert not at_least(strength(more.guarantee(**FACE)), need.strength)
        assert need.budget.get("delta") == (float(method.delta) if method.delta else None)
    scales = [need.noise_scale for need in found.needs]
    assert scales == sorted(scales, reverse=True)


def test_a_heuristic_promises_nothing():
    found = explain(Blurred(), **FACE)
    assert found.odds is None
    assert set(found.success_bound.values()) == {1.0}
    assert found.strength == NONE
    assert "nothing is promised" in found.sentence
    assert all(need.budget is None for need in found.needs)
    assert found.to_json()["odds"] is None


def test_group_privacy_over_the_whole_region():
    size = 128 * 128
    at = {"height": 128, "width": 128, "channels": 1}
    near = whole_region(USUAL.guarantee(**at), size)
    assert (near.epsilon, near.relation.name) == (64, "any-image")
    assert whole_region(replace(USUAL, neighbourhood=size).guarantee(**at), size).epsilon == 1
    assert whole_region(replace(USUAL, neighbourhood=size - 1).guarantee(**at), size).epsilon == 2
    gaussian = DPPixGaussian(rho="0.5", block=16, neighbourhood=256)
    assert whole_region(gaussian.guarantee(**at), size).rho == Fraction(64**2, 2)
    anything = DPPix(epsilon=1).guarantee(**at)
    assert whole_region(anything, size) == anything
    both = replace(USUAL, epsilon="0.1", delta="1e-6", neighbourhood=8192).guarantee(**at)
    assert whole_region(both, size).epsilon == Fraction(1, 5)
    assert 0 < float(whole_region(both, size).delta) / (1e-6 * (1 + math.exp(0.1))) - 1 < 1e-11
    worn = whole_region(replace(both, relation=Relation("m-pixels", 1)), size)
    assert (worn.epsilon, worn.delta) == (Fraction("1638.4"), 1)
    for tiny in (0, "1e-900"):  # what Snow promises, and what no float can hold
        snow = replace(both, relation=Relation("m-pixels", 1), epsilon=Fraction(tiny))
        assert 16384e-6 <= whole_region(snow, size).delta < 16384e-6 * (1 + 1e-11)


ONE = {"height": 16, "width": 16, "channels": 1}


def test_the_sentence_states_the_better_of_group_privacy_and_the_noise_that_there_is():
    """Blocks of 16 in 128 × 128: a neighbour of 256 pixels moves one block, any photo 64 of them."""
    laplace, gaussian = (
        explain(method, **SIZE).sentence
        for method in (
            replace(USUAL, epsilon=None, rho="0.1"),
            DPPixGaussian(rho="0.1", block=16, neighbourhood=256),
        )
    )
    assert "(rho 6.4)" in gaussian
    assert "(rho 6.4)" in laplace
    assert "(epsilon 64)" in explain(USUAL, **SIZE).sentence
    both = explain(replace(USUAL, delta="1e-6"), **SIZE).sentence
    stated = re.search(r"\(epsilon ([0-9.]+), delta 1e-06\)", both)
    assert float(stated[1]) < 40  # group privacy says (64, 1)
    tiny = DPPixGaussian(epsilon="0.1", delta="1e-9", block=16, neighbourhood=128)
    assert "(epsilon 0.2" in explain(tiny, **ONE).sentence


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("m", [1, 3, 5])
def test_the_account_of_all_pixels_is_that_of_the_same_noise_under_any_image(channels, m):
    size = {"height": 5, "width": 7, "channels": channels}
    laplace, gaussian = (
        DPPix(epsilon=1, block=2, neighbourhood=m),
        DPPixGaussian(rho=1, block=2, neighbourhood=m),
    )
    whole = replace(laplace, neighbourhood=None)
    same = replace(whole, epsilon=whole.sum_scale(**size) / laplace.sum_scale(**size))
    assert same.sum_scale(**size) == laplace.sum_scale(**size)
    assert laplace.account_of([size], None).pure == same.epsilon
    assert laplace.account_of([size], m) == laplace.account(**size)
    whole = replace(gaussian, neighbourhood=None)
    same = replace(whole, rho=whole.sum_variance(**size) / gaussian.sum_variance(**size))
    assert same.sum_variance(**size) == gaussian.sum_variance(**size)
    assert gaussian.account_of([size], None).rho == same.rho
    assert gaussian.account_of([size], m).rho == 1


# What quotes say is in the clear, and warn of, by the origin of a region.


HASH = "sha256:" + 64 * "0"
NONE_KEPT = Attributes(attributes="none", gallery=f"gallery {HASH}", model=f"attributes {HASH}")
CHOSEN = Attributes(attributes="gender=female,tone=medium", protect="head")


def quote(method: Method, *origins: Origin, masked: int | None = None) -> Quote:
    records = tuple(RegionRecord(Box(0, 0, 20, 20), origin, masked) for origin in origins)
    return Quote(method, records, width=90, height=60, channels=3)


def test_beside_a_kept_face_its_box_is_in_the_clear() -> None:
    """Its edge may follow from hidden pixels of its neighbours."""
    beside = Origin("face", "faces except=1", number=2, found=True, outlined=True)
    alone = Origin("face", "faces", number=2, found=True, cell=(23, 0, 10, 9, -1))
    said = [
        any("detected and kept" in text for text in quote(NONE_KEPT, origin, masked=99).in_the_clear)
        for origin in (beside, alone)
    ]
    assert said == [True, False]


def test_what_is_covered_for_nothing_does_not_overlap() -> None:
    """Nothing of an object is read, so it adds nothing to the cost of what it lies upon."""
    box, thing = Origin("box"), Origin("object")
    for origins, said in (((box, thing), False), ((thing, box, box), True)):
        costly = Attributes(attributes="gender=4")
        told = [text for text in quote(costly, *origins).warnings() if "costs add" in text]
        assert (bool(told), any("object" in text for text in told)) == (said, False)


def test_a_chosen_value_is_stated_as_not_covered() -> None:
    for method, said in ((CHOSEN, ["gender=female, tone=medium"]), (NONE_KEPT, [])):
        clear = quote(method, Origin("box", "0,0,20,20")).in_the_clear
        told = [text for text in clear if "chosen by the user and not covered" in text]
        assert [text.partition(": ")[0] for text in told] == said
