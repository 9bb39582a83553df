"""The background behind a painted head: it meets the photo, and head and shoulders stay as they are."""

import cv2
import numpy as np
import pytest

from dpveil.faces.geometry.background import continued, out_of_focus
from dpveil.faces.geometry.head_frame import HEAD, pixel_grid

SIDE = 96
GRID = pixel_grid(SIDE)
FAR = HEAD.far(GRID)
KNOWN = (FAR > 1.7) & (GRID[..., 1] < 0.9)
ON_IT = (FAR < 1.1) | (GRID[..., 1] > 0.8)
BEHIND = np.where(ON_IT, 0, 1).astype(np.float32)


def levels(of: float) -> np.ndarray:
    return np.full((SIDE, SIDE, 3), of, np.float32)


WELL_ON_IT = cv2.erode(ON_IT.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
WELL_BEHIND = cv2.erode((~ON_IT).astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
"""Without the outline of the head, which is soft."""
NONE = np.zeros((SIDE, SIDE))
PLAIN = np.stack([~ON_IT, NONE, ON_IT, NONE]).astype(np.float32)


def test_a_background_of_another_light_meets_the_photo() -> None:
    out = continued(levels(130), levels(105), KNOWN, PLAIN)
    assert np.abs(out[~KNOWN & ~ON_IT & (FAR > 1.45)] - 105).max() < 4
    assert (out[ON_IT] == 130).all()


@pytest.mark.parametrize(("painted", "seen", "at_most"), [(0, 255, 200), (255, 0, 55)])
def test_what_is_painted_is_corrected_up_to_a_limit(painted: int, seen: int, at_most: int) -> None:
    """Where black is painted beside white, the layout is wrong rather than the colour."""
    out = continued(levels(painted), levels(seen), KNOWN, PLAIN)
    near = ~KNOWN & ~ON_IT & (FAR > 1.45)
    assert (np.abs(out[near] - painted) <= abs(at_most - painted)).all()
    assert np.abs(out[near] - painted).min() > 100


def test_neither_a_head_nor_clothes_outside_spread_behind_the_head() -> None:
    """Right up to the edge, the background is that of the background alone."""
    clothes = KNOWN & (GRID[..., 0] < 0.3) & (GRID[..., 1] > 0.6)
    light = np.where(clothes[..., None], levels(250), levels(100))
    behind = np.where(clothes, 0, BEHIND).astype(np.float32)
    out = out_of_focus(np.where(ON_IT[..., None], levels(10), levels(100)), light, KNOWN, behind)
    assert np.abs(out[~KNOWN & WELL_BEHIND] - 100).max() < 1
    assert np.abs(out[WELL_ON_IT] - 10).max() < 0.01
