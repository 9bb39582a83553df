"""Painted pixels are filled from those that are shown, and nothing else changes."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil import SeededBits
from dpveil.attacks.wrapped import filled
from dpveil.bench.drawn import DrawnEye
from dpveil.mechanisms.pixel import Snow


@pytest.mark.parametrize("delta", ["0.1", "0.5", "0.85"])
def test_snow_is_filled_from_what_it_shows(delta: str) -> None:
    photo = DrawnEye.of(3, 0).read().image
    release = Snow(delta=delta).release(photo, bits=SeededBits(1))
    found = filled(release)
    shown = release != 127
    assert (found[shown] == photo[shown]).all(), "what is shown stays"
    wrong, left = (np.abs(one.astype(int) - photo)[~shown].mean() for one in (release, found))
    assert left < wrong / 3


def test_pictures_without_paint_and_pictures_of_nothing_else_stay() -> None:
    photo = DrawnEye.of(3, 0).read().image
    assert (filled(photo) == photo).all()
    flat = np.full((9, 9, 3), 127, np.uint8)
    assert (filled(flat) == flat).all()


def test_every_channel_has_a_level_of_its_own() -> None:
    rng = np.random.default_rng(0)
    photo = np.stack(
        [np.full((40, 40), level) + rng.integers(-9, 10, (40, 40)) for level in (60, 200)], axis=2
    )
    painted = np.where(rng.random((40, 40, 2)) < 0.5, np.array([10, 90]), photo).astype(np.uint8)
    found = filled(painted)
    assert np.abs(found.astype(int) - photo).mean(axis=(0, 1)).max() < 8
