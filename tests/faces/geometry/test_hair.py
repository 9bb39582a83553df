"""Examples of hair: drawn from public bits, by how well they suit the released face."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hair_made import WIDTH, flat_hair

from dpveil.errors import ModelError
from dpveil.faces.geometry.hair import FINE, LARGE, Hair, features
from dpveil.faces.geometry.head_frame import OVAL, pixel_grid
from dpveil.faces.geometry.layout import BACKGROUND, CLASSES, CLOTHES, HAIR, SKIN, neck
from dpveil.faces.geometry.looks import LOOK

SIDE = 64


def face(slope: float) -> np.ndarray:
    """Return a frame that gets lighter from the top to the bottom, or darker."""
    return np.tile(np.linspace(0, slope, SIDE, dtype=np.float32)[:, None, None], (1, SIDE, 3)) + 128


def two(weight: float = 0.0, *, members: tuple[int, ...] = (0, 1)) -> Hair:
    """Return examples of two groups, whose look is 1 in the second, which suits faces lighter below.

    `members` are the groups of the examples.
    """
    lighter = features(face(80))
    likely = np.zeros((2, WIDTH), np.float32)
    likely[1, :-1] = weight * lighter / (lighter @ lighter)
    looks = np.array(members, np.float32)[:, None, None, None] * np.ones((LOOK, 8, 8), np.float32)
    return replace(flat_hair(len(members)), looks=looks, groups=np.array(members), likely=likely)


def drawn(hair: Hair, of: np.ndarray, count: int = 400, yaw: float = 0.0) -> np.ndarray:
    """Return the look of the example that each number gets."""
    return np.array([hair.of(of, number, float(yaw))[0][CLASSES:].mean() for number in range(count)])


@pytest.mark.parametrize("members", [(0, 1), (0, 1, 1, 1)])
def test_examples_are_drawn_as_often_as_their_group_suits_the_face(members: tuple[int, ...]) -> None:
    """Logits 0 and ±1.2: the second in 76.9 % and 23.1 % of 400, however many examples it has; six standard
    deviations are 12.7 %.
    """
    for slope, share in ((80, 0.769), (-80, 0.231)):
        found = drawn(two(1.2, members=members), face(slope))
        assert set(found.round(5)) == {0.0, 1.0}
        assert abs((found == 1).mean() - share) < 0.127
    assert (drawn(two(40.0), face(80), 40) == 1).all()
    assert (drawn(two(40.0), face(-80), 40) == 0).all()


def test_a_group_without_examples_leaves_the_others() -> None:
    """Even where it suits the face so much better that the others' shares are no floats any more."""
    hair = two(1e4, members=(1, 1))
    other = replace(hair, looks=hair.looks - np.array([0, 1], np.float32)[:, None, None, None])
    found = drawn(other, face(-80))
    assert abs(found.mean() - 0.5) < 0.15  # six standard deviations


def test_the_same_number_gives_the_same_example() -> None:
    hair = two()
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


def test_hair_of_the_drawn_colour_is_worn() -> None:
    """A face that gets lighter downwards has light hair here, and one that gets darker has dark hair."""
    lighter = features(face(80))
    colours = np.zeros((3, WIDTH), np.float32)
    colours[:, :-1] = 0.4 * lighter / (lighter @ lighter)
    colours[:, -1] = -0.85
    hair = replace(two(), colours=colours, ratios=np.array([[-1.4] * 3, [-0.3] * 3], np.float32))
    assert drawn(hair, face(80)).mean() > 0.7
    assert drawn(hair, face(-80)).mean() < 0.3
    for number in range(60):
        wanted = hair.colour(face(80), number).mean()
        if abs(wanted + 0.85) > 0.3:
            assert drawn(hair, face(80), number + 1)[number] == (wanted > -0.85), (
                "by the same draw as the curve"
            )
    warm = replace(hair, ratios=np.array([[-0.5] * 3, [-0.15, -0.5, -0.85]], np.float32))
    assert drawn(warm, face(80)).mean() < 0.1, "of two as light, that of the expected warmth"


def test_some_example_suits_every_face() -> None:
    """However far all are from the colour that is expected, each of two alike is drawn as often."""
    colours = np.full((3, WIDTH), LARGE, np.float32)
    hair = replace(two(), colours=colours)
    assert abs(drawn(hair, face(80)).mean() - 0.5) < 0.15  # six standard deviations


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


@pytest.mark.parametrize(("weight", "hair"), [(-20.0, 45.0), (20.0, 80.0)])
def test_hair_is_neither_pitch_black_nor_lighter_than_the_face(weight: float, hair: float) -> None:
    """However far off a regression is: from a sixth of the face's lightness up to nearly all of it."""
    extreme = two(0.0)
    extreme.colours[:, -1] = weight
    levels, layout = head(hair)
    made = np.array([extreme.coloured(levels, layout, number)[2, 2] for number in range(20)])
    assert (made + 8).min() > 168 / 6
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


def test_turned_heads_get_turned_examples() -> None:
    """To within 8° to either side, or the nearest."""
    hair = replace(two(), yaws=np.array([-25, 2], np.float32))
    for yaw, wanted in ((0, {1.0}), (7, {1.0}), (20, {0.0}), (-20, {0.0}), (-60, {0.0})):
        assert set(drawn(hair, face(80), 40, yaw).round(5)) == wanted
    both = replace(two(), yaws=np.array([9, -15], np.float32))
    assert len(set(drawn(both, face(80), 40, 12))) == 2


def test_examples_are_mirrored_as_heads_are_turned_and_by_half_where_they_look_ahead() -> None:
    hair = flat_hair(1, yaw=-25.0)
    assert [hair.of(face(80), 1, yaw)[1] for yaw in (-25.0, 25.0, -11.0, 11.0)] == [False, True, False, True]
    ahead = [hair.of(face(80), number, 5.0)[1] for number in range(400)]
    assert abs(np.mean(ahead) - 0.5) < 0.15  # six standard deviations
    first = [two().of(face(80), number)[1] for number in range(400)]
    worn = drawn(two(), face(80)) == 0
    assert abs(np.mean(np.array(first)[worn]) - 0.5) < 0.22, (
        "whichever example it is; six standard deviations"
    )


def test_hair_ends_above_the_head() -> None:
    planes = two().of(face(80), 0)[0]
    top, head, below = (
        planes[HAIR, row, SIDE // 2] - planes[BACKGROUND, row, SIDE // 2] for row in (1, 20, 60)
    )
    assert top < -7
    assert head == below == 0


def test_below_the_chin_examples_tell_of_hair_alone_and_a_neck_is_likely() -> None:
    styles = np.ones((1, CLASSES, 8, 8), np.float32)
    planes = replace(flat_hair(1), styles=styles).of(face(80), 0)[0][:CLASSES]
    more = planes - neck(SIDE)
    for one in (BACKGROUND, SKIN, CLOTHES):
        assert np.allclose(more[one, 20:42], 1)
        assert np.allclose(more[one, 50:], 0, atol=1e-6)
    assert np.allclose(more[HAIR, 34:], 1)


def test_a_file_keeps_examples_to_its_steps() -> None:
    random = np.random.default_rng(0)
    styles = random.normal(0, 1, (2, CLASSES, 8, 8)).astype(np.float32)
    looks = random.uniform(-1, 1, (2, LOOK, 8, 8)).astype(np.float32)
    own = replace(two(0.5), styles=styles, looks=looks, yaws=np.array([3, -40], np.float32))
    again = Hair.of_arrays(own.tensors())
    assert np.abs(again.styles - styles).max() <= 0.5001 / FINE[0]
    assert np.abs(again.looks - looks).max() <= 0.5001 / FINE[1]
    for name in ("groups", "ratios", "yaws"):
        assert (getattr(again, name) == getattr(own, name)).all()
    assert np.abs(again.likely - own.likely).max() < 1e-3
    assert own.tensors()["looks"].nbytes == looks.size // 2


GOOD = two(0.5).tensors()


@pytest.mark.parametrize(
    ("change", "match"),
    [
        ({"styles": np.zeros((2, 4, 8, 9), np.int8)}, "size"),
        ({"styles": np.zeros((2, 4, 7, 7), np.int8)}, "size"),
        ({"styles": np.zeros((2, 4, 65, 65), np.int8)}, "size"),
        ({"looks": np.zeros((2, 4, 8, 7), np.uint8)}, "size"),
        ({"looks": np.zeros((2, 8), np.uint8)}, "size"),
        ({"styles": np.zeros((0, 4, 8, 8), np.int8)}, "1 to 255"),
        ({"styles": np.zeros((256, 4, 8, 8), np.int8)}, "1 to 255"),
        ({"likely": np.zeros((0, WIDTH), np.float16)}, "1 to 255"),
        ({"styles": np.zeros((8, 8), np.int8)}, "size"),
        ({"styles": np.zeros((2, 3, 8, 8), np.int8)}, "fit together"),
        ({"styles": np.zeros((3, 4, 8, 8), np.int8)}, "fit together"),
        ({"looks": np.zeros((2, 8, 8, 8), np.uint8)}, "fit together"),
        ({"groups": np.zeros(3, np.uint8)}, "fit together"),
        ({"ratios": np.zeros((2, 4), np.float16)}, "fit together"),
        ({"yaws": np.zeros((2, 1), np.int8)}, "fit together"),
        ({"likely": np.zeros((2, 4), np.float16)}, "fit together"),
        ({"groups": np.array([0, 2], np.uint8)}, "not there"),
        ({"groups": np.array([0.5, 1], np.float16)}, "not there"),
        ({"styles": np.zeros((2, 4, 8, 8), np.float32)}, "whole steps"),
        ({"looks": np.zeros((2, 4, 8, 8), np.int64)}, "whole steps"),
        ({"yaws": np.array([np.nan, 0])}, "whole steps"),
        ({"likely": np.full((2, WIDTH), np.inf, np.float16)}, "too large"),
        ({"ratios": np.full((2, 3), np.nan, np.float16)}, "too large"),
        ({"colours": np.full((3, WIDTH), LARGE + 1, np.float32)}, "too large"),
        ({"colours": np.zeros((3, 4), np.float16)}, "colours of hair do not fit"),
    ],
)
def test_arrays_that_are_no_examples_are_refused(change: dict[str, np.ndarray], match: str) -> None:
    assert Hair.of_arrays(GOOD).looks.shape == (2, LOOK, 8, 8)
    with pytest.raises(ModelError, match=match):
        Hair.of_arrays(GOOD | change)


def test_every_byte_is_some_look() -> None:
    every = np.arange(256, dtype=np.uint8).reshape(1, 4, 8, 8)
    hair = Hair.of_arrays(flat_hair(1).tensors() | {"looks": every})
    assert np.abs(hair.looks).max() == 1
