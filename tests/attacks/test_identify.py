"""Identification, verification and the parrot attack on made embeddings with known answers."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import binom

from dpveil.attacks import identify, parrot, strongest, verify
from dpveil.attacks.resampling import by_person
from dpveil.errors import InvalidParameter

NAMES = ("ann", "bob", "eve")
PLACES = {"ann": (0.0, 0.0), "bob": (1.0, 0.0), "eve": (0.0, 1.0)}
NAN = float("nan")


def at(*points):
    return np.array(points, np.float64)


def made(people, each, dimensions=16, spread=1.0, seed=1):
    """Draw people of a normal law, and photos around each of another."""
    random = np.random.default_rng(seed)
    centres = random.normal(size=(people, dimensions))
    names = [f"p{number:03}" for number in range(people) for _ in range(each)]
    return np.repeat(centres, each, axis=0) + spread * random.normal(size=(people * each, dimensions)), names


def test_the_nearest_mean_names_a_probe_and_not_the_nearest_photo():
    known = at((-1, 0), (1, 0), (0.6, 0.5), (0.6, -0.5))
    found = identify(known, ["ann", "ann", "bob", "bob"], at((0.9, 0.0), (0.2, 0.0)), ["bob", "ann"])
    assert found.right.tolist() == [True, True]  # the photo nearest to the first probe is one of ann's
    assert (found.rate, found.chance) == (1.0, 0.5)


def test_people_may_come_in_any_order_and_probes_of_nobody_are_wrong():
    known = at(*(PLACES[name] for name in ("eve", "ann", "bob")))
    probes = at((0.9, 0.1), (NAN, NAN), (0.1, 0.9), (0.1, 0.1), (0.9, 0.1))
    found = identify(known, ["eve", "ann", "bob"], probes, ["bob", "ann", "eve", "ann", "eve"])
    assert found.right.tolist() == [True, False, True, True, False]
    assert found.rate == 0.6
    assert found.chance == 1 / 3


def test_photos_of_the_attacker_without_a_face_do_not_count():
    known = at((0, 0), (NAN, NAN), (1, 0), (NAN, NAN))
    names = ["ann", "ann", "bob", "eve"]
    found = identify(known, names, at((0.1, 0), (0.9, 0), (0, 1)), NAMES)
    assert found.right.tolist() == [True, True, False]
    assert found.chance == 1 / 3


@pytest.mark.parametrize("attack", [identify, parrot, lambda *given: verify(*given, far=0.1)])
def test_what_does_not_fit_is_refused(attack):
    known = at((0, 0), (1, 0))
    with pytest.raises(InvalidParameter, match="1 are missing"):
        attack(known, ["ann", "bob"], at((0, 0)), ["eve"])
    with pytest.raises(InvalidParameter, match="names"):
        attack(known, ["ann"], at((0, 0)), ["ann"])
    with pytest.raises(InvalidParameter, match="names"):
        attack(known, ["ann", "bob"], at((0, 0)), ["ann", "bob"])
    with pytest.raises(InvalidParameter, match="names"):
        attack(known, ["ann", "bob"], np.zeros((0, 2)), [])


def test_the_interval_covers_and_knows_that_photos_of_a_person_are_alike():
    """Everybody is recognised always or never: 40 people are 40 tries, however many photos there are.

    If the percentile bootstrap of 40 covers 92 % at least, 400 intervals hold the truth fewer than 330 times
    with probability below 1e-9.
    """
    random, held, alone = np.random.default_rng(5), 0, 0
    for seed in range(400):
        known = np.repeat(random.random(40) < 0.6, 10).astype(float)
        names = [f"{person}" for person in range(40) for _ in range(10)]
        low, high = by_person(known, names, draws=300, level=0.95, seed=seed)
        held += low <= 0.6 <= high
        low, high = by_person(known, [str(i) for i in range(400)], draws=300, level=0.95, seed=seed)
        alone += low <= 0.6 <= high
    assert held >= 330
    assert alone < 260  # photos taken for independent: far too narrow
    assert binom.cdf(329, 400, 0.92) < 1e-9


def test_none_of_all_has_an_exact_upper_end():
    low, high = by_person(np.zeros(79), [str(i) for i in range(79)], draws=50, level=0.95, seed=0)
    assert (low, high) == (0.0, pytest.approx(1 - 0.025 ** (1 / 79)))
    assert by_person(np.ones(79), [str(i) for i in range(79)], draws=50, level=0.95, seed=0) == (1 - high, 1)
    with pytest.raises(InvalidParameter):
        by_person(np.ones(3), list("abc"), draws=9, level=1, seed=0)


# Verification


def test_true_accepts_at_fixed_false_accepts_are_counted_by_hand():
    known = at((0.0,), (10.0,))
    probes = at((1.0,), (6.0,), (9.5,), (NAN,))
    people = ["ann", "ann", "bob", "bob"]
    # Impostors: 9, 4, 9.5 and nothing; genuine: 1, 6, 0.5 and nothing.
    for far, threshold, rate in (
        (0.0, -np.inf, 0.0),
        (0.24, -np.inf, 0.0),
        (0.25, 4.0, 0.5),
        (0.5, 9.0, 0.75),
    ):
        found = verify(known, ["ann", "bob"], probes, people, far=far)
        assert (found.threshold, found.rate) == (threshold, rate)
    everything = verify(known, ["ann", "bob"], probes, people, far=0.99)
    assert everything.rate == 0.75  # a probe without a face passes for nobody, however much is allowed


def test_equal_distances_are_accepted_together_or_not_at_all():
    found = verify(at((0.0,), (2.0,)), ["ann", "bob"], at((1.0,), (1.0,)), ["ann", "bob"], far=0.6)
    assert (found.threshold, found.rate) == (-np.inf, 0.0)


def test_strangers_are_accepted_as_often_as_is_allowed():
    """Probes that have nothing to do with their names pass as often as impostors do: 0.1."""
    known, names = made(60, 1)
    probes, _ = made(60, 4, seed=2)
    people = [name for name in names for _ in range(4)]
    found = verify(known, names, probes, people, far=0.1)
    low, high = found.interval()
    assert low <= 0.1 <= high
    assert found.impostors.shape == (240, 59)
    assert (found.impostors <= found.threshold).mean() <= 0.1
    assert verify(known, names, known, names, far=0.001).rate == 1.0
    assert verify(known, names, known, names, far=0.001).interval() == (
        pytest.approx(1 - 0.0596, abs=1e-3),
        1,
    )


@pytest.mark.parametrize(("far", "known"), [(1.0, 2), (-0.1, 2), (0.1, 1)])
def test_verification_refuses_what_it_cannot_do(far, known):
    with pytest.raises(InvalidParameter):
        verify(at((0,), (1,))[:known], NAMES[:known], at((0,)), ["ann"], far=far)


# The parrot attack


def test_a_parrot_learns_what_the_releases_of_one_person_have_in_common():
    """In one direction releases differ wildly, which only he notices who saw several of each person."""
    clean, names = made(30, 3, spread=0.3)
    known, probes = clean.copy(), clean.copy()
    random = np.random.default_rng(9)
    for released in (known, probes):
        released[:, 0] += 30 * random.normal(size=len(released))
    naive = identify(known, names, probes, names)
    learned = parrot(known, names, probes, names)
    assert learned.rate > 0.75
    assert naive.rate < 0.3
    assert strongest(naive, learned) is learned


def test_a_parrot_of_one_photo_each_is_identification():
    known, names = made(20, 1)
    probes, _ = made(20, 1, spread=1.5)
    probes[3] = NAN
    assert np.array_equal(
        parrot(known, names, probes, names).right, identify(known, names, probes, names).right
    )


def test_a_parrot_of_noise_is_at_chance():
    """500 guesses among 50 people, of which ten are right: more than 35 with probability below 1e-9."""
    known, names = made(50, 10)
    probes = np.random.default_rng(3).normal(size=known.shape)
    assert parrot(known, names, probes, names).right.sum() <= 35
    assert binom.sf(35, 500, 1 / 50) < 1e-9
