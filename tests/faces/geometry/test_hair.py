"""Examples of hair: drawn from public bits, by how well they suit the released face."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hair_made import WIDTH, flat_hair

from dpveil.errors import ModelError
from dpveil.faces.geometry.hair import FINE, LARGE, Hair, features
from dpveil.faces.geometry.head_frame import OVAL, pixel_grid
from dpveil.faces.geometry.layout import CLASSES, HAIR, LOOK, SKIN

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


def head(hair: float) -> tuple[np.ndarray, np.ndarray]:
    """Return a painted head, an oval of 160 in hair of this level, and its layout."""
    grid = pixel_grid(SIDE)
    x, y, a, b = OVAL
    skin = np.hypot((grid[..., 0] - x) / a, (grid[..., 1] - y) / b) < 1.2
    layout = np.zeros((CLASSES, SIDE, SIDE), np.float32)
    layout[SKIN], layout[HAIR] = skin, ~skin
    return np.where(skin[..., None], 160, hair).astype(np.float32) + np.zeros(3, np.float32), layout


def test_turned_heads_get_turned_examples() -> None:
    """To within 8° to either side, or the nearest."""
    hair = replace(two(), yaws=np.array([-25, 2], np.float32))
    for yaw, wanted in ((0, {1.0}), (7, {1.0}), (20, {0.0}), (-20, {0.0}), (-60, {0.0})):
        assert set(drawn(hair, face(80), 40, yaw).round(5)) == wanted
    both = replace(two(), yaws=np.array([9, -15], np.float32))
    assert len(set(drawn(both, face(80), 40, 12))) == 2


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
