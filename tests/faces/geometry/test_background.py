"""The background behind a painted head: it meets the photo, and head and shoulders stay as they are."""

import cv2
import numpy as np
import pytest

from dpveil.faces.geometry.background import calmed, continued, out_of_focus
from dpveil.faces.geometry.head_frame import HEAD, OVAL, pixel_grid

SIDE = 96
GRID = pixel_grid(SIDE)
FAR = HEAD.far(GRID)
KNOWN = (FAR > 1.7) & (GRID[..., 1] < 0.9)
ON_IT = (FAR < 1.1) | (GRID[..., 1] > 0.8)
BEHIND = np.where(ON_IT, 0, 1).astype(np.float32)


def levels(of: float) -> np.ndarray:
    return np.full((SIDE, SIDE, 3), of, np.float32)


def of_classes(clothes: np.ndarray, hair: np.ndarray) -> np.ndarray:
    """Return a layout of background, hair, skin and clothes."""
    skin = np.zeros((SIDE, SIDE), np.float32)
    background = 1 - np.maximum(clothes, hair)
    return np.stack([background, hair, skin, clothes]).astype(np.float32)


WELL_ON_IT = cv2.erode(ON_IT.astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
WELL_BEHIND = cv2.erode((~ON_IT).astype(np.uint8), np.ones((9, 9), np.uint8)) > 0
"""Without the outline of the head, which is soft."""
NONE = np.zeros((SIDE, SIDE))
PLAIN = np.stack([~ON_IT, NONE, ON_IT, NONE]).astype(np.float32)


def test_a_background_of_another_light_meets_the_photo() -> None:
    out = continued(levels(130), levels(105), KNOWN, PLAIN)
    assert np.abs(out[~KNOWN & ~ON_IT & (FAR > 1.45)] - 105).max() < 4
    assert (out[ON_IT] == 130).all()


def test_hair_and_clothes_go_on_in_the_colours_that_are_seen_of_them() -> None:
    """Long fair hair at the left stays fair up to the crown, and a red garment red up to the collar."""
    long_hair = (GRID[..., 0] < 0.5) & (GRID[..., 1] < 0.6)
    low = GRID[..., 1] > 0.7
    layout = of_classes(low, long_hair)
    light = np.where(long_hair[..., None], levels(200), levels(90))
    light[low] = (210, 20, 30)
    out = continued(levels(80), light, (FAR > 1.2) & (GRID[..., 1] < 0.95), layout)
    assert np.abs(out[long_hair & (FAR < 1)] - 200).max() < 25
    assert np.abs(out[low & (FAR < 1.2)] - (210, 20, 30)).max() < 25
    nowhere = ~long_hair & ~low & (FAR < 0.8)
    assert np.abs(out[nowhere] - 90).max() < 25


def test_skin_goes_on_only_where_a_head_stays() -> None:
    """The tone of a neck is not that of a new face, but what stays of a face is."""
    layout = np.stack([NONE, NONE, NONE + 1, NONE]).astype(np.float32)
    known = FAR > 0.8
    assert (continued(levels(90), levels(150), known, layout) == 90).all()
    out = continued(levels(90), levels(150), known, layout, skin=True)
    assert np.abs(out[FAR < 0.5] - 150).max() < 10


def test_a_spot_at_the_edge_is_not_followed() -> None:
    """A few pixels that may be hair colour no head."""
    spot = (FAR < 1.1) | ((np.abs(GRID[..., 0] - 0.5) < 0.011) & (GRID[..., 1] < 0.4))
    out = continued(levels(80), levels(200), KNOWN, of_classes(np.zeros((SIDE, SIDE)), spot))
    assert out[FAR < 1].max() < 80 + 0.4 * 120


def test_a_background_goes_on_in_its_own_texture() -> None:
    """Stripes that end at the region's edge go on behind the head, and no hidden pixel shows."""
    striped = levels(100) + 24 * (np.indices((SIDE, SIDE))[0] // 3 % 2)[..., None].astype(np.float32)
    hidden = np.where(KNOWN[..., None], striped, levels(250))
    out = out_of_focus(levels(112), hidden, KNOWN, BEHIND)
    band = ~KNOWN & ~ON_IT & (FAR > 1.55)
    assert out[band].std() > 8
    assert out[band].max() < 140
    assert (out == out_of_focus(levels(112), striped, KNOWN, BEHIND)).all()


def test_far_from_what_is_seen_nothing_is_mirrored() -> None:
    """Stripes go on close to the edge of the photo; a fifth of the frame further in there are none."""
    known = np.indices((SIDE, SIDE))[1] < SIDE // 2
    striped = levels(100) + 24 * (np.indices((SIDE, SIDE))[0] // 3 % 2)[..., None].astype(np.float32)
    out = out_of_focus(levels(112), striped, known, np.ones((SIDE, SIDE), np.float32))
    inner = out[8:-8, :, 0]
    assert inner[:, SIDE // 2 + 4].std() > 8
    assert inner[:, int(0.7 * SIDE) : int(0.95 * SIDE)].std() < 1


def test_the_outline_of_a_head_is_soft() -> None:
    """Hair has no sharp edge before a background."""
    on_it = np.indices((SIDE, SIDE))[1] < SIDE // 2
    behind = (~on_it).astype(np.float32)
    painted = np.where(on_it[..., None], levels(10), levels(110))
    for known in (np.indices((SIDE, SIDE))[1] > 0.9 * SIDE, np.indices((SIDE, SIDE))[0] < 4):
        row = out_of_focus(painted, levels(110), known, behind)[SIDE // 2, :, 0]
        assert 20 < row[SIDE // 2 - 1] < 60
        assert abs(row[SIDE // 2 - 6] - 10) < 1
        assert abs(row[SIDE // 2 + 6] - 110) < 1


@pytest.mark.parametrize(("painted", "seen", "at_most"), [(0, 255, 200), (255, 0, 55)])
def test_what_is_painted_is_corrected_up_to_a_limit(painted: int, seen: int, at_most: int) -> None:
    """Where black is painted beside white, the layout is wrong rather than the colour."""
    out = continued(levels(painted), levels(seen), KNOWN, PLAIN)
    near = ~KNOWN & ~ON_IT & (FAR > 1.45)
    assert (np.abs(out[near] - painted) <= abs(at_most - painted)).all()
    assert np.abs(out[near] - painted).min() > 100


def test_what_is_quite_unlike_the_background_is_not_mirrored() -> None:
    """A black wedge at the edge of a photo does not turn up behind the head."""
    light = np.where((FAR > 1.8)[..., None], levels(0), levels(200))
    out = out_of_focus(levels(200), light, KNOWN, BEHIND)
    assert out[~KNOWN & ~ON_IT & (FAR < 1.5)].min() > 150


def test_patterns_behind_a_head_are_out_of_focus_and_those_on_it_are_not() -> None:
    chequered = levels(100) + 60 * ((np.indices((SIDE, SIDE)).sum(axis=0) // 2) % 2)[..., None].astype(
        np.float32
    )
    for known in (KNOWN, np.zeros_like(KNOWN)):
        out = out_of_focus(chequered, levels(130), known, BEHIND)
        behind = ~known & WELL_BEHIND
        assert out[behind].std() < 8 < chequered[behind].std()
        assert np.abs(out - chequered)[WELL_ON_IT].max() < 0.01


def test_neither_a_head_nor_clothes_outside_spread_behind_the_head() -> None:
    """Right up to the edge, the background is that of the background alone."""
    clothes = KNOWN & (GRID[..., 0] < 0.3) & (GRID[..., 1] > 0.6)
    light = np.where(clothes[..., None], levels(250), levels(100))
    behind = np.where(clothes, 0, BEHIND).astype(np.float32)
    out = out_of_focus(np.where(ON_IT[..., None], levels(10), levels(100)), light, KNOWN, behind)
    assert np.abs(out[~KNOWN & WELL_BEHIND] - 100).max() < 1
    assert np.abs(out[WELL_ON_IT] - 10).max() < 0.01


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
