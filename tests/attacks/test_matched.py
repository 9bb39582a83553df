"""Matching all releases to all people at once."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
from crowd import sides

from dpveil.attacks.labels import attack
from dpveil.attacks.matched import matching
from dpveil.attacks.measures import named
from dpveil.attacks.vectors import PixelDiscriminant
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import Mosaic


def test_the_whole_is_likeliest_of_all_ways_to_give_releases_out() -> None:
    random = np.random.default_rng(2)
    owners = np.repeat(np.arange(3), 2)
    for seed in range(20):
        logs = -random.exponential(size=(6, 3))
        found = matching(logs, np.array([2, 2, 2]), seed)
        given = np.argmax(found, axis=1)
        assert np.bincount(given).tolist() == [2, 2, 2]
        best = max(logs[np.arange(6), owners[list(way)]].sum() for way in permutations(range(6)))
        assert logs[np.arange(6), given].sum() == pytest.approx(best)


def test_matching_helps_where_releases_say_something() -> None:
    background, shown, people = sides(Mosaic(block=16), people=10, known=3, probes=2)
    background = replace(background, attacked=dict.fromkeys(background.names, 2))
    plain = named(PixelDiscriminant().fit(background).score(shown), people).mean()
    both = named(attack("matched(pixels)").fit(background).score(shown), people).mean()
    assert both >= plain


def test_it_and_what_is_made_of_it_look_at_all_releases() -> None:
    assert attack("matched(pixels)").joint
    assert attack("denoised:median:3(matched(pixels))").joint
    assert attack("pixels+matched(pixels)").joint
    assert not attack("pixels+eigenfaces").joint
    with pytest.raises(InvalidParameter, match="together already"):
        attack("matched(matched(pixels))")
