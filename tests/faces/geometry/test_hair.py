"""Styles of hair: drawn from public bits, by how well they suit the released face."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.errors import ModelError
from dpveil.faces.geometry.hair import LARGE, Hair, features
from dpveil.faces.geometry.head_frame import OVAL, pixel_grid
from dpveil.faces.geometry.layout import CLASSES, HAIR, SKIN

SIDE = 64


def face(slope: float) -> np.ndarray:
    """Return a frame that gets lighter from the top to the bottom, or darker."""
    return np.tile(np.linspace(0, slope, SIDE, dtype=np.float32)[:, None, None], (1, SIDE, 3)) + 128


def two(weight: float) -> Hair:
    """Return two styles, constant planes of 1 and 2; the second suits faces that get lighter downwards."""
    styles = np.stack([np.full((CLASSES, 8, 8), value, np.float32) for value in (1, 2)])
    lighter = features(face(80))
    likely = np.zeros((2, len(lighter) + 1), np.float32)
    likely[1, :-1] = weight * lighter / (lighter @ lighter)
    return Hair.of_arrays(styles, likely, np.zeros((3, len(lighter) + 1), np.float32))


def drawn(hair: Hair, of: np.ndarray, count: int = 400) -> np.ndarray:
    return np.array([hair.of(of, number)[SKIN].mean() for number in range(count)])


def test_styles_are_drawn_as_often_as_they_suit_the_face() -> None:
    """Logits 0 and ±1.2: the second in 76.9 % and 23.1 % of 400; six standard deviations are 12.7 %."""
    for slope, share in ((80, 0.769), (-80, 0.231)):
        found = drawn(two(1.2), face(slope))
        assert set(found.round(5)) == {1.0, 2.0}
        assert abs((found == 2).mean() - share) < 0.127
    assert (drawn(two(40.0), face(80), 40) == 2).all()
    assert (drawn(two(40.0), face(-80), 40) == 1).all()


def test_the_same_number_gives_the_same_style() -> None:
    hair = two(0.0)
    first = drawn(hair, face(80), 60)
    assert (drawn(hair, face(80), 60) == first).all()
    assert len(set(first)) == 2


def test_light_and_what_is_beside_the_oval_do_not_choose() -> None:
    own = face(80) + np.random.default_rng(0).normal(0, 5, (SIDE, SIDE, 3)).astype(np.float32)
    x, y, a, b = OVAL
    grid = pixel_grid(SIDE)
    beside = np.hypot((grid[..., 0] - x) / a, (grid[..., 1] - y) / b) > 1.25
    assert np.allclose(features(np.where(beside[..., None], np.float32(0), own)), features(own), atol=0.2)
    assert np.allclose(features(own + 40), features(own), atol=1e-3)
    assert np.abs(features(face(-80)) - features(own)).max() > 1


def head(hair: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a painted head, an oval of 160 in hair of this level, and its layout."""
    grid = pixel_grid(SIDE)
    x, y, a, b = OVAL
    skin = np.hypot((grid[..., 0] - x) / a, (grid[..., 1] - y) / b) < 1.2
    layout = np.zeros((CLASSES, SIDE, SIDE), np.float32)
    layout[SKIN], layout[HAIR] = skin, ~skin
    return np.where(skin[..., None], 160, hair).astype(np.float32) + np.zeros(3, np.float32), layout


def test_black_hair_gets_a_colour_that_suits_and_the_face_keeps_its_own() -> None:
    """In the mean of 200 numbers e^-0.6 of the face, by a factor of at most 2.4; six standard errors."""
    usual = two(0.0)
    usual.colours[:, -1] = (-0.57, -0.6, -0.63)
    levels, layout = head(60)
    made = np.array([usual.coloured(levels, layout, number)[2, 2] for number in range(200)])
    ratios = np.log((made + 8) / 168)
    assert np.abs(ratios.mean(axis=0) - (-0.57, -0.6, -0.63)).max() < 6 * 0.35 / 200**0.5
    assert 0.2 < ratios.mean(axis=1).std() < 0.4
    assert (made[:, 0] >= made[:, 2]).mean() > 0.5
    assert (made.max(axis=1) < 160).all()
    out = usual.coloured(levels, layout, 3)
    inner = pixel_grid(SIDE)[SIDE // 2, SIDE // 2]
    assert np.abs(inner - 0.5).max() < 0.02
    assert (out[SIDE // 2, SIDE // 2] == 160).all()
    assert (out == usual.coloured(levels, layout, 3)).all()


def test_between_hair_and_face_there_is_no_ring() -> None:
    """Levels between those of hair and of face stay between them, in their order."""
    usual = two(0.0)
    usual.colours[:, -1] = -0.5
    levels, layout = head(40)
    levels[:20] = np.linspace(40, 160, 20, dtype=np.float32)[:, None, None]
    layout[HAIR, :20], layout[SKIN, :20] = 1, 0
    column = usual.coloured(levels, layout, 1)[:18, 5, 0]
    assert (np.diff(column) > 0).all()
    assert column.max() <= 160


def test_hair_of_any_level_gives_finite_colours() -> None:
    for hair, skin in ((-8, 160), (-30, -8), (200, 100), (160, 160), (255, 0)):
        levels, layout = head(hair)
        levels[levels == 160] = skin
        assert np.isfinite(two(0.0).coloured(levels, layout, 5)).all()


def test_colours_of_hair_follow_the_face() -> None:
    """A face that gets lighter downwards has light hair here, and one that gets darker has dark hair."""
    usual = two(0.0)
    grid = pixel_grid(SIDE)
    lighter = features(face(80))
    usual.colours[:, :-1] = 0.5 * lighter / (lighter @ lighter)
    usual.colours[:, -1] = -0.9
    levels, layout = head(50)
    made = []
    for way in (1, -1):
        own = levels + np.where(layout[SKIN][..., None] > 0, way * 80 * (grid[..., 1:] - 0.52), 0)
        made.append(usual.coloured(own.astype(np.float32), layout, 2)[2, 2, 0])
    assert made[0] > 1.3 * made[1]


def test_hair_has_no_colour_that_no_hair_has() -> None:
    usual = two(0.0)
    usual.colours[:, -1] = (-3, -0.6, 2)
    levels, layout = head(60)
    made = np.array([usual.coloured(levels, layout, number)[2, 2] for number in range(50)])
    assert (made.max(axis=1) / made.min(axis=1) < 1.35).all()


@pytest.mark.parametrize(("weight", "hair"), [(-20.0, 30.0), (20.0, 80.0)])
def test_hair_is_neither_pitch_black_nor_lighter_than_the_face(weight: float, hair: float) -> None:
    """However far off a regression is: from a seventh of the face's lightness up to nearly all of it."""
    extreme = two(0.0)
    extreme.colours[:, -1] = weight
    levels, layout = head(hair)
    made = np.array([extreme.coloured(levels, layout, number)[2, 2] for number in range(20)])
    assert (made + 8).min() > 168 / 7
    assert made.max() < 0.97 * 160
    assert np.abs(made.mean() - hair) > 3, "its colour does follow the regression, up to the limit"


def test_black_hair_gets_lighter_by_a_few_times_at_most() -> None:
    """Else what little shows in it would be blown up to stripes."""
    extreme = two(0.0)
    extreme.colours[:, -1] = 20
    levels, layout = head(2)
    made = np.array([extreme.coloured(levels, layout, number)[2, 2] for number in range(20)])
    assert (made + 8).min() > 15
    assert (made + 8).max() < 40


def test_the_colour_of_hair_fades_out_over_its_edge() -> None:
    """A pixel beside hair gets a part of its colour, so that no line is seen around it."""
    light = two(0.0)
    light.colours[:, -1] = -0.5
    levels, layout = head(40)
    levels[:, :8] = 40
    layout[:, :, :8] = 0
    row = light.coloured(levels, layout, 1)[4, :16, 0] - 40
    assert 0.1 * row[12] < row[7] < 0.9 * row[12]
    assert row[12] > 5
    assert np.abs(row[:4]).max() < 0.02 * row[12]


def test_a_head_without_hair_stays_as_it_is() -> None:
    levels, layout = head(40)
    layout[HAIR] = 0
    assert two(0.0).coloured(levels, layout, 1) is levels


def test_hair_ends_above_the_head() -> None:
    planes = two(0.0).of(face(80), 0)
    top, head, below = (planes[HAIR, row, SIDE // 2] - planes[SKIN, row, SIDE // 2] for row in (1, 20, 60))
    assert top < -7
    assert head == below == 0


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"styles": np.zeros((2, 4, 8, 9), np.float32)}, "size"),
        ({"styles": np.zeros((2, 4, 7, 7), np.float32)}, "size"),
        ({"styles": np.zeros((0, 4, 8, 8), np.float32)}, "size"),
        ({"styles": np.zeros((65, 4, 8, 8), np.float32)}, "size"),
        ({"styles": np.zeros((8, 8), np.float32)}, "size"),
        ({"styles": np.zeros((2, 3, 8, 8), np.float32)}, "fit together"),
        ({"styles": np.zeros((3, 4, 8, 8), np.float32)}, "fit together"),
        ({"likely": np.zeros((2, 4), np.float32)}, "fit together"),
        ({"styles": np.full((2, 4, 8, 8), LARGE + 1, np.float32)}, "too large"),
        ({"styles": np.full((2, 4, 8, 8), np.nan, np.float32)}, "too large"),
        ({"likely": np.full_like(two(0.0).likely, np.inf)}, "too large"),
        ({"colours": np.zeros((3, 4), np.float32)}, "colours of hair do not fit"),
        ({"colours": np.full_like(two(0.0).colours, np.nan)}, "colours of hair have numbers"),
    ],
)
def test_arrays_that_are_no_styles_are_refused(change: dict[str, np.ndarray], match: str) -> None:
    usual = two(0.0)
    arrays = {"styles": usual.styles, "likely": usual.likely, "colours": usual.colours} | change
    with pytest.raises(ModelError, match=match):
        Hair.of_arrays(**arrays)
