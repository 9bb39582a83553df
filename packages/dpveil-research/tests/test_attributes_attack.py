"""The attackers of the attributes method, in a made world in which their best is known."""

from __future__ import annotations

import numpy as np
import pytest
from kept_tables import kept_row, kept_rows, page
from made_nobody import crop, gallery, model

from dpveil.faces import Attributes
from dpveil.noise.bits import SeededBits
from dpveil_research.attributes import (
    Held,
    by_embedding,
    by_law,
    by_learning,
    by_parrot,
    by_telling,
    likelihoods,
)

GALLERY, MODEL = gallery(each=1), model()
NAMES = tuple(f"person {number}" for number in range(8))
LOOKS = {"gender": np.arange(8) % 2, "age": np.arange(8) // 2 % 4}
"""Everybody has a combination of their own."""


def method(attributes):
    return Attributes(attributes=attributes, gallery=GALLERY, model=MODEL)


def held(photos=50):
    looks = {name: np.repeat(places, photos) for name, places in LOOKS.items()}
    rng = np.random.default_rng(1)
    return Held(NAMES, photos, rng.normal(size=(8 * photos, 4)), looks, rng.normal(size=(len(GALLERY), 4)))


def released(own, times, seed=3):
    """Return which faces are shown for everybody's crop, and whose crops they were."""
    crops = np.stack([crop({name: places[k] for name, places in LOOKS.items()}, seed=k) for k in range(8)])
    faces = {face.tobytes(): number for number, face in enumerate(GALLERY.faces)}
    shown = own.release(np.tile(crops, (times, 1, 1, 1)), bits=SeededBits(seed))
    return np.array([faces[face.tobytes()] for face in shown]), list(NAMES) * times


@pytest.mark.parametrize("attributes", ["none", "gender=1", "gender=2,age=1"])
def test_likelihoods_are_the_law_of_the_draws(attributes):
    own = method(attributes)
    chances = likelihoods(own)
    assert chances.shape[1] == len(GALLERY)
    assert np.allclose(chances.sum(axis=1), 1)
    assert (chances.max(axis=0) > 0).all()
    ratios = np.log(chances.max(axis=0) / chances.min(axis=0))
    assert ratios.max() <= float(own.guarantee(height=9, width=9, channels=3).epsilon) + 1e-9


def test_who_knows_the_law_is_right_as_often_as_nobody_can_exceed():
    """The best guess is the true one where both answers were kept; 7 standard deviations around it."""
    own = method("gender=2,age=1")
    shown, people = released(own, 100)
    best = float(np.prod([response.kept for response in own.responses.values()]))
    found = by_law(held(), own, shown, people)
    assert abs(found.rate - best) < 7 * (best * (1 - best) / len(people)) ** 0.5
    parrot = by_parrot(held(), shown[:8].repeat(50), shown, people)
    learned = by_learning(held(), shown[:8].repeat(50), shown, people)
    for other in (by_embedding(held(), shown, people), parrot, learned):
        assert other.rate <= found.rate + 7 * (best * (1 - best) / len(people)) ** 0.5


def test_who_is_told_what_is_kept_beats_who_sees_a_release():
    own = method("gender=2,age=1")
    shown, people = released(own, 30)
    looks = {name: np.tile(places, 30) for name, places in LOOKS.items()}
    told = by_telling(held(), ("gender", "age"), looks, people)
    assert told.rate == 1  # combinations are all different here
    assert by_law(held(), own, shown, people).rate < 0.9
    half = by_telling(held(), ("gender",), looks, people)
    assert half.rate == pytest.approx(1 / 4)


def test_nothing_kept_leaves_chance():
    own = method("none")
    shown, people = released(own, 20)
    assert by_law(held(), own, shown, people).rate == pytest.approx(1 / 8)
    assert by_telling(held(), (), {}, people).rate == pytest.approx(1 / 8)


# What pages say of the kept runs

SETTINGS = [one["setting"] for one in kept_rows("attributes") if one["measure"] == "strongest"]


def value(data, setting, measure, end="mean"):
    return float(kept_row("attributes", data=data, setting=setting, measure=measure)[end])


@pytest.mark.parametrize("setting", SETTINGS)
def test_no_attacker_is_better_than_one_who_is_told(setting):
    low, mean, high = (value("LFW", setting, "strongest minus told", end) for end in ("low", "mean", "high"))
    assert low <= 0
    assert low <= mean <= high
    every = ("embedding", "embedding, parrot", "embedding, parrot that learns", "knows gallery and method")
    assert value("LFW", setting, "strongest") == max(value("LFW", setting, name) for name in every)


def test_chance_where_nothing_is_kept():
    row = kept_row("attributes", data="LFW", setting="none", measure="strongest")
    assert float(row["low"]) <= float(row["chance"]) <= float(row["high"])
    assert round(100 * float(row["chance"]), 1) == 0.6
    assert row["people"] == "158"


def test_a_face_is_found():
    for data, setting in (("gallery", "every face"), ("LFW", "gender=4,age=4")):
        assert value(data, setting, "face found") == 1
    assert (
        kept_row("attributes", data="LFW", setting="gender=4,age=4", measure="face found")["tries"] == "158"
    )


@pytest.mark.parametrize("data", ["LFW", "UTKFace"])
def test_gender_agrees_at_least_85_per_cent_as_often_at_8(data):
    clean = value(data, "clean", "gender agrees")
    of_eight = [s for s in SETTINGS if s != "none" and sum(float(p.split("=")[1]) for p in s.split(",")) == 8]
    assert len(of_eight) >= 4
    for setting in of_eight:
        assert value(data, setting, "gender agrees") >= 0.85 * clean


def test_photos_themselves_are_recognised():
    """So that the attackers are no straw men."""
    assert value("LFW", "clean", "embedding") > 0.9


PAGE = " ".join(page("methods/gallery").split())
GALLERY_SETTINGS = [one["setting"] for one in kept_rows("gallery") if one["measure"] == "strongest"]


def at(setting, measure, end="mean"):
    return float(kept_row("gallery", setting=setting, measure=measure)[end])


def said(setting, measure):
    """Return a rate and its interval as the page writes them."""
    mean, low, high = (f"{100 * at(setting, measure, end):.1f}" for end in ("mean", "low", "high"))
    return f"{mean} % ({low} to {high})"


@pytest.mark.parametrize("setting", GALLERY_SETTINGS)
def test_no_attacker_is_better_than_one_who_is_told_four_attributes(setting):
    assert at(setting, "strongest") < at("told", "told")
    every = ("embedding", "embedding, parrot", "knows gallery and method")
    assert at(setting, "strongest") == max(at(setting, name) for name in every)


def test_what_is_reached_at_8():
    assert at("epsilon=8", "face found") == 1
    assert kept_row("gallery", setting="epsilon=8", measure="face found")["tries"] == "158"
    assert at("epsilon=8", "gender agrees") > 0.94 * at("clean", "gender agrees")
    assert at("epsilon=8", "strongest", "low") > 0.03
    assert f"strongest attacker names {said('epsilon=8', 'strongest')}." in PAGE
    assert f"race label and pose, names {said('told', 'told')}" in PAGE
    assert at("clean", "embedding") > 0.95  # the attacker is no straw man


def test_the_page_says_what_is_left_to_an_attacker_at_1_and_2():
    """At ε = 1 the strongest of three is just above chance: the page once said that it is at chance."""
    at_1, at_2 = (said(f"epsilon={epsilon}", "strongest") for epsilon in (1, 2))
    assert f"At ε = 1 the strongest names {at_1}, at ε = 2 {at_2}, and chance is 0.6 %" in PAGE
    assert at("epsilon=1", "strongest", "high") < 0.02
    assert at("epsilon=2", "strongest", "high") < 0.022


def test_two_levels_keep_more_than_the_other_laws():
    for law in ("exponential", "permute-and-flip"):
        for measure in ("gender agrees", "perceived-race agrees", "age agrees"):
            assert at("epsilon=8", measure) > at(f"epsilon=8, {law}", measure) + 0.05
