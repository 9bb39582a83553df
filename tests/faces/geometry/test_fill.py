"""The background behind a new head: it goes on as it is around, and nothing under the hole is read."""

import numpy as np
import pytest

from dpveil.core.region import Box
from dpveil.faces.geometry.fill import background_in_hole

PART = Box(60, 40, 90, 110)
HOLE = np.zeros((200, 220), bool)
HOLE[PART.slices] = True


def stripes(channels: int) -> np.ndarray:
    """A curtain: it looks the same in every row."""
    levels = 120 + 25 * np.sin(np.arange(220) / 3)
    return np.broadcast_to(levels[None, :, None], (200, 220, channels)).astype(np.uint8)


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("plain", [False, True])
def test_nothing_under_the_hole_is_read(channels: int, plain: bool) -> None:
    image = stripes(channels)
    first = background_in_hole(image, HOLE, PART, plain=plain)
    assert first.shape == (PART.h, PART.w, channels)
    for other in (0, 255, np.random.default_rng(1).integers(0, 256, image.shape).astype(np.uint8)):
        changed = np.where(HOLE[..., None], other, image).astype(np.uint8)
        assert (background_in_hole(changed, HOLE, PART, plain=plain) == first).all()


def test_a_texture_goes_on_and_a_flat_wall_stays_flat() -> None:
    """Near the edge: farther inside, a texture would show seams."""
    textured, plain = (
        background_in_hole(stripes(3), HOLE, PART, plain=one)[:8, 20:70] for one in (False, True)
    )
    assert textured.std() > 1.3 * plain.std()
    wall = np.full((200, 220, 3), (90, 120, 60), np.uint8)
    assert np.abs(background_in_hole(wall, HOLE, PART).astype(int) - (90, 120, 60)).max() <= 2


def test_something_else_beside_the_hole_is_not_mirrored_into_it() -> None:
    """A bright post right beside it: the background is smooth there, and not another post."""
    image = np.full((200, 220, 3), 90, np.uint8)
    image[:, 30:42] = 250
    found = background_in_hole(image, HOLE, PART)
    assert found[:, 18:32].max() < 150
