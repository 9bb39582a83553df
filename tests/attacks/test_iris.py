"""Iris recognition: circles, codes and names, on drawn eyes of which the truth is known."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import pytest
from crowd import view

from dpveil.attacks import Background, attack, named
from dpveil.attacks.iris import Code, code, distance, eye
from dpveil.attacks.iris.codes import SHEET, _seen, sheet
from dpveil.bench.drawn import DrawnEye

PEOPLE = 10


@cache
def photo(number: int, shot: int) -> np.ndarray:
    return DrawnEye.of(number, shot).read().image


def coded(image: np.ndarray) -> Code:
    found = eye(image)
    assert found is not None
    return code(image, found)


def test_pupil_and_iris_are_found_where_they_are() -> None:
    """On 400 drawn eyes, the largest errors are 8 pixels of a pupil's middle and 2.3 of an iris's."""
    away = []
    for number in range(20):
        for shot in range(2):
            found, truth = eye(photo(number, shot)), DrawnEye.of(number, shot).shape
            assert found is not None
            away.append(
                [
                    np.hypot(found.pupil.x - truth.x, found.pupil.y - truth.y),
                    abs(found.pupil.radius - truth.pupil),
                    np.hypot(found.iris.x - truth.x, found.iris.y - truth.y),
                    abs(found.iris.radius - truth.iris),
                ]
            )
    assert (np.median(away, axis=0) < [0.8, 0.8, 1.0, 0.8]).all()
    assert (np.max(away, axis=0) < [10, 8, 4, 4]).all()


@pytest.mark.parametrize("level", [0, 128])
def test_a_picture_without_an_edge_has_no_pupil(level: int) -> None:
    assert eye(np.full((120, 160, 1), level, np.uint8)) is None
    assert eye(np.full((8, 8, 3), level, np.uint8)) is None
    assert eye(np.full((1, 1, 1), level, np.uint8)) is None


def test_an_iris_unrolls_to_the_texture_that_was_wrapped_around_it() -> None:
    """Rows go outwards and columns clockwise from the right: mirrored or swapped, nothing would fit."""
    from dpveil.bench.drawn.base import texture

    flat = cv2.resize(texture(4), SHEET[::-1], interpolation=cv2.INTER_AREA)
    found = eye(photo(4, 0))
    assert found is not None
    seen = sheet(photo(4, 0), found)
    turned = DrawnEye.of(4, 0).shape.roll / 360 * SHEET[1]
    inner = np.s_[2:9]
    fits = {
        shift: np.corrcoef(np.roll(seen, shift, axis=1)[inner].ravel(), flat[inner].ravel())[0, 1]
        for shift in range(-8, 9)
    }
    best = max(fits, key=lambda shift: fits[shift])
    assert fits[best] > 0.5
    assert best == pytest.approx(-turned, abs=1.5)


def test_codes_of_one_iris_are_near_and_turned_heads_are_turned_back() -> None:
    one, again, other = (coded(photo(*which)) for which in ((0, 0), (0, 1), (1, 0)))
    near, far = distance(one, [again, other])
    assert near < 0.3 < 0.33 < far
    turned = Code(*(np.roll(part, 7) for part in (one.bits, one.mask)))
    assert distance(turned, [one])[0] == distance(one, [one])[0] < 0.05
    away = Code(*(np.roll(part, 60) for part in (one.bits, one.mask)))
    assert distance(away, [one])[0] > 0.3, "a quarter of a turn is another iris"


def test_what_is_masked_in_either_code_does_not_count() -> None:
    """The bug to fear: a mask that is ignored, so that lids tell who it is."""
    rng = np.random.default_rng(0)
    bits, other = rng.integers(0, 2**64, (2, SHEET[1]), np.uint64)
    half = np.where(np.arange(SHEET[1]) < 120, np.uint64(2**64 - 1), np.uint64(0))
    every = np.full(SHEET[1], np.uint64(2**64 - 1))
    mixed = np.where(half, bits, other)
    for one, two in (((bits, every), (mixed, half)), ((bits, half), (mixed, every))):
        assert distance(Code(*one), [Code(*two)])[0] < 0.01
    assert distance(Code(bits, every), [Code(mixed, every)])[0] > 0.1


def test_lids_and_reflections_are_masked() -> None:
    even = np.full(SHEET, 100.0)
    even[3:6, 10:14], even[8:9, 100:103] = 250, 20
    shown = _seen(even)
    assert not shown[3:6, 10:14].any()
    assert not shown[8, 100:103].any()
    degrees = 360 * (np.arange(SHEET[1]) + 0.5) / SHEET[1]
    below, above = ((degrees > middle - 30) & (degrees < middle + 30) for middle in (90, 270))
    assert not shown[-1, below | above].any()
    assert shown[-1, ~((degrees > 50) & (degrees < 130)) & ~((degrees > 230) & (degrees < 310))].all()
    assert shown[0].all()


def sides() -> tuple[Background, list[np.ndarray], list[str]]:
    names = [f"p{number}" for number in range(PEOPLE)]
    known = [(name, photo(number, shot)) for number, name in enumerate(names) for shot in (0, 1)]
    views = tuple(view(image, hidden=False) for _, image in known)
    probes = [photo(number, shot) for number in range(PEOPLE) for shot in (2, 3)]
    people = [name for name in names for _ in (2, 3)]
    return Background(views, views, tuple(name for name, _ in known)), probes, people


def test_people_are_named_by_their_irises() -> None:
    background, probes, people = sides()
    scores = attack("iris").fit(background).score([view(one) for one in probes])
    assert named(scores, people).mean() >= 0.95


def test_a_release_without_an_eye_is_a_failure() -> None:
    background, probes, people = sides()
    grey = [np.full_like(one, 128) for one in probes]
    scores = attack("iris").fit(background).score([view(one) for one in grey])
    assert np.isnan(scores.likeness).all()
    assert named(scores, people).sum() == 0


@pytest.mark.parametrize("label", ["iris", "denoised:median:3(iris)"])
def test_a_fifth_of_salt_saves_nobody(label: str) -> None:
    """Reilly & Fan 2021, §3.4, attack Snow with and without a median filter."""
    background, probes, people = sides()
    rng = np.random.default_rng(0)
    salted = [view(np.where(rng.random(one.shape) < 0.2, np.uint8(255), one)) for one in probes]
    assert named(attack(label).fit(background).score(salted), people).mean() >= 0.9
