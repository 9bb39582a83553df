"""The background behind a painted head: it meets the photo, and head and shoulders stay as they are."""

import numpy as np

from dpveil.faces.geometry.background import calmed, out_of_focus
from dpveil.faces.geometry.head_frame import HEAD, OVAL, pixel_grid

SIDE = 96
GRID = pixel_grid(SIDE)
FAR = HEAD.far(GRID)
KNOWN = (FAR > 1.7) & (GRID[..., 1] < 0.9)
ON_IT = (FAR < 1.1) | (GRID[..., 1] > 0.8)
BEHIND = np.where(ON_IT, 0, 1).astype(np.float32)


def levels(of: float) -> np.ndarray:
    return np.full((SIDE, SIDE, 3), of, np.float32)


def test_a_background_of_another_light_meets_the_photo() -> None:
    out = out_of_focus(levels(130), levels(105), KNOWN, BEHIND)
    assert np.abs(out[~KNOWN & ~ON_IT & (FAR > 1.45)] - 105).max() < 4
    assert (out[ON_IT] == 130).all()


def test_what_is_missed_by_far_is_not_followed_all_the_way() -> None:
    """A dark thing at the edge does not paint a whole background black."""
    out = out_of_focus(levels(200), levels(0), KNOWN, BEHIND)
    inside = ~KNOWN & ~ON_IT & (FAR > 1.3) & (FAR < 1.4)
    assert (out[inside] >= 150).all()
    assert (out[inside] < 185).all()


def test_patterns_behind_a_head_are_out_of_focus_and_those_on_it_are_not() -> None:
    chequered = levels(100) + 60 * ((np.indices((SIDE, SIDE)).sum(axis=0) // 2) % 2)[..., None].astype(
        np.float32
    )
    for known in (KNOWN, np.zeros_like(KNOWN)):
        out = out_of_focus(chequered, chequered, known, BEHIND)
        behind = ~known & ~ON_IT
        assert out[behind].std() < 8 < chequered[behind].std()
        assert (out[ON_IT] == chequered[ON_IT]).all()


def test_neither_a_head_nor_clothes_outside_spread_behind_the_head() -> None:
    """Right up to the edge, the background is that of the background alone."""
    clothes = KNOWN & (GRID[..., 0] < 0.3) & (GRID[..., 1] > 0.6)
    light = np.where(clothes[..., None], levels(250), levels(100))
    behind = np.where(clothes, 0, BEHIND).astype(np.float32)
    out = out_of_focus(np.where(ON_IT[..., None], levels(10), levels(100)), light, KNOWN, behind)
    assert np.abs(out[~KNOWN & ~ON_IT] - 100).max() < 1
    assert (out[ON_IT] == 10).all()


def test_spots_of_colour_beside_a_face_go_and_lightness_stays() -> None:
    spotted = levels(120)
    spotted[10:14, 40:44] = (120, 180, 60)
    on_the_face = spotted.copy()
    y, x = int(OVAL[1] * SIDE), int(OVAL[0] * SIDE)
    on_the_face[y : y + 3, x : x + 3] = (200, 90, 90)
    out = calmed(on_the_face, levels(120), KNOWN, GRID)
    spot, before = out[11:13, 41:43], spotted[11:13, 41:43]
    assert np.ptp(spot, axis=-1).max() < 12 < np.ptp(before, axis=-1).max()
    weights = (0.299, 0.587, 0.114)
    assert np.abs(spot @ weights - before @ weights).max() < 3
    assert (out[y, x] == (200, 90, 90)).all()
