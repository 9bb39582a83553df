"""Votes: every person's ballot is bounded, exact, and nobody else's business."""

import math
from fractions import Fraction

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from dpveil.synthesis.simulator import FINEST, REPLACED, UNIT, ballot, nearest, shares, tally

PHOTOS = st.lists(st.integers(0, 5), max_size=40)


@given(PHOTOS)
def test_a_ballot_is_never_longer_than_its_unit_and_close_to_it(choices):
    own = ballot(np.array(choices, np.int64), 6)
    squared = int((own**2).sum())
    assert own.min() >= 0
    assert squared <= UNIT**2
    assert math.sqrt(squared) >= UNIT - math.sqrt(6) if choices else squared == 0


@given(PHOTOS)
def test_a_ballot_is_what_fractions_say(choices):
    own = ballot(np.array(choices, np.int64), 6).tolist()
    counts = [choices.count(place) for place in range(6)]
    total = sum(count**2 for count in counts)
    for entry, count in zip(own, counts, strict=True):
        share = Fraction(count**2 * UNIT**2, total or 1)
        assert entry**2 <= share < (entry + 1) ** 2


@given(PHOTOS, PHOTOS, PHOTOS)
def test_replacing_a_person_changes_votes_by_no_more_than_the_bound(one, two, other):
    def of(own):
        choices = np.array([*own, *other], np.int64)
        return tally(choices, np.array([0] * len(own) + [1] * len(other), np.int64), 6)

    assert ((of(one) - of(two)) ** 2).sum() <= REPLACED
    assert (of(one) - of(two) == ballot(np.array(one, int), 6) - ballot(np.array(two, int), 6)).all()


def test_the_bound_is_reached():
    change = ballot(np.array([0]), 2) - ballot(np.array([1]), 2)
    assert (change**2).sum() == REPLACED


def test_many_photos_count_as_much_as_one():
    choices, people = np.array([0] * 1000 + [1]), np.array([0] * 1000 + [1])
    assert tally(choices, people, 2).tolist() == [UNIT, UNIT]
    assert tally(choices[::-1], people[::-1], 2).tolist() == [UNIT, UNIT]


def test_distances_are_exact_where_single_precision_is_not():
    """Of two candidates at squared distances of 4 and 1 the nearer one, of squares of about 2·10¹⁰."""
    draws = np.random.default_rng(8)
    for _ in range(40):
        photo = draws.integers(2, FINEST - 1, (1, 4096)).astype(np.int16)
        candidates = np.repeat(photo, 2, axis=0)
        candidates[0, draws.integers(4096)] += 2
        candidates[1, draws.integers(4096)] += 1
        assert nearest(photo, candidates).tolist() == [1]
        assert nearest(photo, candidates[::-1]).tolist() == [0]


def test_votes_are_the_nearest_by_whole_numbers_in_any_company():
    """In groups of any size a photo votes for the same candidate, also where two are equally far away."""
    draws = np.random.default_rng(5)
    photos = draws.integers(0, FINEST + 1, (300, 40)).astype(np.int16)
    candidates = draws.integers(0, FINEST + 1, (50, 40)).astype(np.int16)
    candidates[20:30] = candidates[:10]
    wide, known = photos.astype(object), candidates.astype(object)
    true = [min(range(50), key=lambda k, row=row: (((row - known[k]) ** 2).sum(), k)) for row in wide]
    assert nearest(photos, candidates).tolist() == true
    assert [int(nearest(photos[n : n + 1], candidates)[0]) for n in range(300)] == true


def test_shares_leave_out_what_is_noise_and_are_even_where_all_is():
    assert shares(np.array([10, -3, 30, 2]), 5).tolist() == [0.25, 0, 0.75, 0]
    assert shares(np.array([-1, 4]), 5).tolist() == [0.5, 0.5]
