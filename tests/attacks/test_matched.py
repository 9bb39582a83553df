"""Matching all releases to all people at once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import permutations

import numpy as np
import pytest
from crowd import sides

from dpveil.attacks.base import Attack, Background, Fitted, Scores, View
from dpveil.attacks.labels import attack
from dpveil.attacks.matched import Matched, matching
from dpveil.attacks.measures import named
from dpveil.attacks.pixels import PixelDiscriminant
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import Fill, Mosaic


@dataclass(frozen=True)
class Said(Attack):
    """Says what it was told to, whatever it sees."""

    likeness: tuple[tuple[float, ...], ...] = ()
    names: tuple[str, ...] = ()

    name = "said"
    summary = "what it was told"
    sees = ("pixels",)

    def fit(self, background: Background) -> Fitted:
        likeness, names = np.array(self.likeness, np.float64), self.names

        class One(Fitted):
            def score(self, releases: Sequence[View]) -> Scores:
                return Scores(likeness, names)

        return One()


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


def test_a_release_goes_to_the_second_likeliest_where_the_first_is_taken() -> None:
    """Alone, both releases look like b; b has one photo."""
    background, shown, _ = sides(Mosaic(block=8), people=2, known=2, probes=1)
    inner = Said(((1.0, 1.5), (1.0, 9.0), (8.0, 1.0)), ("a", "b"))
    assert Said.fit(inner, background).score([]).likeness.argmax(axis=1).tolist() == [1, 1, 0]
    counted = replace(background, attacked={"a": 1, "b": 2})
    seen = [shown[0]] * 3
    assert Matched(inner).fit(counted).score(seen).likeness.argmax(axis=1).tolist() == [1, 1, 0]
    other = replace(background, attacked={"a": 2, "b": 1})
    found = Matched(inner).fit(other).score(seen).likeness
    assert sorted(found.argmax(axis=1).tolist()) == [0, 0, 1]
    few = replace(background, attacked={"a": 1, "b": 1})
    assert (Matched(inner).fit(few).score(seen).likeness == 1).sum() == 2, "one is over"


def test_matching_helps_where_releases_say_something() -> None:
    background, shown, people = sides(Mosaic(block=16), people=10, known=3, probes=2)
    background = replace(background, attacked=dict.fromkeys(background.names, 2))
    plain = named(PixelDiscriminant().fit(background).score(shown), people).mean()
    both = named(attack("matched(pixels)").fit(background).score(shown), people).mean()
    assert both >= plain


def test_the_order_of_releases_tells_nothing() -> None:
    """All releases are alike, and sorted by person: who gives them out in order would name everybody."""
    background, shown, people = sides(Fill(), people=30, known=2, probes=2)
    assert [*people] == sorted(people)
    inner = attack("eigenfaces").fit(background).score(shown)
    said = Said(tuple(map(tuple, inner.likeness)), inner.names)
    rates = [
        named(Matched(said, seed=seed).fit(background).score(shown), people).mean() for seed in range(40)
    ]
    # the mean of 40 random orders is 1/30, its deviation below 0.004: six of them
    assert abs(np.mean(rates) - 1 / 30) < 0.024


def test_what_is_silent_stays_silent() -> None:
    background, shown, _ = sides(Fill(), people=2, known=2, probes=1)
    found = Matched(Said(((np.nan, np.nan), (1.0, 2.0)), ("a", "b"))).fit(background).score(shown)
    assert np.isnan(found.likeness[0]).all()
    assert found.likeness[1].argmax() == 1
    none = Matched(Said(((np.nan, np.nan),), ("a", "b"))).fit(background).score(shown[:1])
    assert np.isnan(none.likeness).all()


def test_it_and_what_is_made_of_it_look_at_all_releases() -> None:
    assert attack("matched(pixels)").joint
    assert attack("denoised:median:3(matched(pixels))").joint
    assert attack("pixels+matched(pixels)").joint
    assert not attack("pixels+eigenfaces").joint
    with pytest.raises(InvalidParameter, match="together already"):
        attack("matched(matched(pixels))")
