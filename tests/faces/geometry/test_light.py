"""A face within a head that stays: its light is that of the skin at the rim, and of nothing else there."""

from __future__ import annotations

import numpy as np
import pytest
from geometry_made import placed

from dpveil.core.region import Box
from dpveil.faces.geometry import Frame, Placed, Similarity
from dpveil.faces.geometry.around import OF_JAW, USUAL, Around
from dpveil.faces.geometry.colour_match import match_of
from dpveil.faces.geometry.grain import MOST as MOST_GRAIN
from dpveil.faces.geometry.grain import grained, softened
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.light import DARK, DOME, WHOLE, Light, light_of
from dpveil.faces.geometry.membrane import MOST, TINT, lab_of, levels_of, stretched
from dpveil.faces.recombine import recombine
from dpveil.faces.released import CropFace

SKIN, PALE, WALL, HAIR = (150, 105, 80), (200, 150, 125), (250, 252, 255), (25, 20, 18)
BOX = Box(50, 40, 90, 120)


def oval() -> np.ndarray:
    y, x = np.mgrid[:120, :90]
    return ((x - 44.5) / 45) ** 2 + ((y - 59.5) / 60) ** 2 <= 1


def face() -> Placed:
    """An oval in a photo of 200 × 190 pixels."""
    return placed(BOX, mask=oval(), unit=100.0, protect="face")


def around(left: tuple[int, ...], right: tuple[int, ...]) -> np.ndarray:
    image = np.empty((200, 190, 3), np.uint8)
    image[:, :95], image[:, 95:] = left, right
    return image


def put(image: np.ndarray, crop: tuple[int, ...] = PALE) -> np.ndarray:
    """The release of a face of one colour."""
    return recombine(image, [face()], [flat(crop)]).astype(int)


def flat(colour: tuple[int, ...]) -> CropFace:
    return CropFace(np.full((128, 128, 3), colour, np.uint8), Frame(128))


def at(one: Placed) -> Similarity:
    return between(one.pose, one.frame, HeadFrame(1))


def light(image: np.ndarray) -> Light:
    one, hidden = face(), np.zeros(image.shape[:2], bool)
    hidden[BOX.slices] = oval()
    outside = np.where(hidden[..., None], 0, image).astype(np.uint8)
    return light_of(
        flat(PALE).view(None), one.region, Around(at(one), outside, hidden, "face", match_of(outside, hidden))
    )


def cheeks(skin: tuple[int, ...]) -> np.ndarray:
    """The CIE Lab of cheeks beside skin of this colour."""
    return OF_JAW[:, 0] * lab_of(np.array([skin]))[0] + OF_JAW[:, 1]


def framed() -> tuple[np.ndarray, np.ndarray, int]:
    """A rectangle, its rim of one pixel, and how many pixels that has."""
    inside, rim = np.zeros((2, 24, 30), bool)
    rim[3:21, 3:27] = True
    inside[4:20, 4:26] = True
    rim &= ~inside
    return inside, rim, int(rim.sum())


def test_a_face_takes_the_light_of_the_skin_around_it() -> None:
    """Of a photo whose other half is a wall or hair, too. Its middle has the colour of cheeks."""
    for other in (SKIN, WALL, HAIR):
        out = put(around(SKIN, other))
        assert np.abs(out[95:105, 80:90] / levels_of(cheeks(SKIN)) - 1).max() <= 0.1, other
    middle = put(around(SKIN, WALL))[80:110, 75:115]
    assert np.abs(middle - levels_of(cheeks(SKIN))).max() <= 25, (
        "the wall makes no patch of the face beside it white"
    )


def test_the_correction_is_limited() -> None:
    """In all, in one place and in one colour; black stays nearly black."""
    inside, rim, count = framed()
    for missed in ((-3.0, -3.0, -3.0), (3.0, 3.0, -3.0)):
        found = stretched(inside, rim, np.ones(count), np.tile(missed, (count, 1)))[0]
        middle = float(np.clip(np.mean(missed), -MOST[0], MOST[0]))
        assert np.abs(found - middle).max() <= TINT + MOST[1] + 1e-5
    x = np.nonzero(rim)[1][:, None]
    red = stretched(inside, rim, np.ones(count), np.where(x > x.mean(), (1.2, -0.6, -0.6), (0.0, 0.0, 0.0)))[
        0
    ]
    assert 0.5 * TINT < np.abs(red - red.mean(axis=2, keepdims=True)).max() <= 4 / 3 * TINT + 1e-5, (
        "a red shirt"
    )
    uneven = light(around((90, 60, 44), (230, 180, 155))).gain
    assert np.log(uneven.max() / uneven.min()) <= 2 * MOST[1] + WHOLE * (DOME[1] - DOME[0]) / 2 + 1e-5
    gain, _ = light(around(SKIN, SKIN)).on(at(face()), BOX)
    assert Light.lit(np.full((*gain.shape,), 3, np.float32), gain).max() < 3 + DARK


def test_the_tone_of_skin_around_is_that_of_what_is_seen_and_looks_like_skin() -> None:
    hidden = np.zeros((200, 190), bool)
    hidden[BOX.slices] = oval()
    for colour, known in ((SKIN, True), (WALL, False), (HAIR, False)):
        for under in (0, 255):
            image = np.where(hidden[..., None], under, around(colour, colour)).astype(np.uint8)
            found = Around(
                at(face()), image * ~hidden[..., None], hidden, "face", match_of(image, hidden)
            ).cheeks
            assert found == pytest.approx(cheeks(SKIN) if known else USUAL, abs=0.1)


def test_a_membrane_is_harmonic_between_the_pixels_that_hold_it() -> None:
    """What falls evenly at the rim falls evenly inside; pixels of weight 0 change nothing."""
    inside, rim, _ = framed()
    y, x = np.nonzero(rim)
    even = 0.01 * (x - 14.5)[:, None] + 0.004 * (y - 11.5)[:, None]
    found, skin = stretched(inside, rim, np.full(len(x), 50.0), even)
    rows, columns = np.nonzero(inside)
    wanted = 0.01 * (columns - 14.5) + 0.004 * (rows - 11.5)
    assert np.abs(found[inside][:, 0] - wanted).max() < 0.005
    weights = np.where(x > 20, 0.0, 50.0)
    other = np.where(x > 20, 9.0, 0.1)[:, None]
    assert np.abs(stretched(inside, rim, weights, other)[0][inside] - 0.1).max() < 1e-3
    assert stretched(inside, rim, np.zeros(len(x)), even)[0].max() == 0
    assert skin[inside].min() > 0.99


def test_a_face_gets_the_grain_of_the_photo_and_no_more() -> None:
    rng = np.random.default_rng(4)
    flat = np.full((120, 90, 3), 120, np.uint8)
    hidden = np.zeros((200, 190), bool)
    hidden[BOX.slices] = oval()
    whole = np.ones((120, 90), np.float32)
    found = []
    for spread in (0.0, 2.0, 4.0, 40.0):
        noise = rng.normal(0, spread, (200, 190, 1)) * np.ones(3)
        image = np.where(hidden[..., None], 0, np.clip(120 + noise, 0, 255)).astype(np.uint8)
        found.append(float(grained(flat, whole, BOX, image, hidden).std()))
    assert found[0] == 0
    assert 0.8 * 2 < found[1] < 1.05 * 2
    assert 0.8 * 4 < found[2] < 1.05 * 4
    assert found[3] < 1.3 * MOST_GRAIN, "texture is not grain"


def test_a_face_is_no_sharper_than_the_photo_and_a_softer_one_stays() -> None:
    rng = np.random.default_rng(4)
    sharp = rng.integers(60, 200, (120, 90, 3)).astype(np.float32)
    whole, hidden = np.ones((120, 90), np.float32), np.zeros((200, 190), bool)
    hidden[BOX.slices] = oval()
    soft = np.where(hidden[..., None], 0, np.full((200, 190, 3), 120)).astype(np.uint8)
    loud = np.where(hidden[..., None], 0, rng.integers(0, 256, (200, 190, 3))).astype(np.uint8)
    assert softened(sharp, whole, BOX, soft, hidden).std() < 0.5 * sharp.std()
    assert (softened(sharp, whole, BOX, loud, hidden) == sharp).all()
