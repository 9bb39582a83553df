"""At a region's edge, a head's coarse levels meet those of the photo, and an inner face those of its skin."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.core.region import Box, Region
from dpveil.faces.geometry.seam import fade_to_edge, shift_to_photo_levels

BOX, UNIT = Box(60, 50, 96, 120), 96.0
SKIN, RED, HAIR, WALL = (170, 125, 100), (190, 120, 100), (25, 20, 18), (250, 252, 255)
HIDDEN = np.zeros((220, 220), np.bool_)
HIDDEN[BOX.slices] = True


def photo(colour: tuple[int, ...], channels: int = 3) -> np.ndarray:
    image = np.empty((220, 220, channels), np.uint8)
    image[:] = colour[:channels]
    image[HIDDEN] = 0
    return image


def flat(colour: tuple[int, ...], channels: int = 3) -> np.ndarray:
    face = np.empty((BOX.h, BOX.w, channels), np.uint8)
    face[:] = colour[:channels]
    return face


@pytest.mark.parametrize("mask", [None, np.ones((40, 30), np.bool_)])
def test_a_head_fades_out_at_its_regions_edge_and_not_at_that_of_the_photo(mask: np.ndarray | None) -> None:
    full = np.ones((40, 30), np.float32)
    inside = fade_to_edge(full, Region(Box(5, 7, 30, 40), mask), 8.0, (60, 60))
    assert max(side.max() for side in (inside[0], inside[-1], inside[:, 0], inside[:, -1])) < 0.2
    assert inside[20, 15] == 1
    corner = fade_to_edge(full, Region(Box(0, 20, 30, 40), mask), 8.0, (60, 60))
    assert (corner[20:, 0] == 1).all()
    assert (corner[-1, :20] == 1).all()
    assert max(corner[0].max(), corner[:, -1].max()) < 0.2
    assert (fade_to_edge(full, Region(Box(0, 0, 30, 40), mask), 8.0, (40, 30)) == 1).all()


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("unit", [UNIT, 30.0, 200.0])
def test_colours_meet_at_the_edge_and_the_middle_stays(channels: int, unit: float) -> None:
    outside = photo((140, 150, 160), channels)
    out = shift_to_photo_levels(flat((110, 120, 130), channels), BOX, outside, HIDDEN, unit).astype(int)
    edge = np.concatenate([out[0], out[-1], out[:, 0], out[:, -1]])
    assert np.abs(edge - outside[0, 0]).max() <= 4
    assert (out[60, 48] == (110, 120, 130)[:channels]).all()


def test_a_face_follows_what_is_alike_and_nothing_else() -> None:
    face = flat(SKIN)
    for other in (HAIR, (40, 70, 160)):
        assert (
            np.abs(
                shift_to_photo_levels(face, BOX, photo(other), HIDDEN, UNIT, alike=True).astype(int) - face
            ).max()
            <= 1
        )
    outside = photo(RED)
    outside[120:] = np.where(HIDDEN[120:, :, None], 0, np.array(HAIR))
    out = shift_to_photo_levels(face, BOX, outside, HIDDEN, UNIT, alike=True).astype(int)
    assert np.abs(out[0, 20:76] - RED).max() <= 5
    assert np.abs(out[85:, 5:90] - SKIN).max() <= 5


def test_where_nothing_is_seen_levels_stay() -> None:
    everything = np.ones_like(HIDDEN)
    for alike in (False, True):
        face = flat(SKIN)
        assert (
            shift_to_photo_levels(face, BOX, np.zeros((220, 220, 3), np.uint8), everything, UNIT, alike=alike)
            is face
        )
