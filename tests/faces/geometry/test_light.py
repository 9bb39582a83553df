"""A face within a head that stays: its light is that of the skin at the rim, and of nothing else there."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

import numpy as np
import pytest
from geometry_made import placed

from dpveil.core.region import Box
from dpveil.faces.drawn_face import CropFace
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.colour_match import match_of
from dpveil.faces.geometry.grain import MOST_GRAIN, add_grain, match_sharpness
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.light import Light, light_of
from dpveil.faces.geometry.membrane import (
    DARK,
    MOST_RIM_DEVIATION,
    continue_skin,
    lab_of,
    levels_of,
    rim_gain,
)
from dpveil.faces.geometry.place import Placed
from dpveil.faces.geometry.surroundings_seen import OF_JAW, USUAL, Around
from dpveil.faces.paint_faces import paint_faces

if TYPE_CHECKING:
    from dpveil.faces.surroundings_network import SurroundingsNetwork

SKIN, PALE, WALL, HAIR = (150, 105, 80), (200, 150, 125), (250, 252, 255), (25, 20, 18)
BOX = Box(50, 40, 90, 120)


def oval() -> np.ndarray:
    y, x = np.mgrid[:120, :90]
    return ((x - 44.5) / 45) ** 2 + ((y - 59.5) / 60) ** 2 <= 1


def face_in_photo() -> Placed:
    """An oval in a photo of 200 × 190 pixels."""
    return placed(BOX, mask=oval(), unit=100.0, protect="face")


def around(left: tuple[int, ...], right: tuple[int, ...]) -> np.ndarray:
    image = np.empty((200, 190, 3), np.uint8)
    image[:, :95], image[:, 95:] = left, right
    return image


def put(image: np.ndarray, crop: tuple[int, ...] = PALE) -> np.ndarray:
    """The release of a face of one colour."""
    return paint_faces(image, [face_in_photo()], [flat(crop)]).astype(int)


def flat(colour: tuple[int, ...]) -> CropFace:
    return CropFace(np.full((128, 128, 3), colour, np.uint8), Frame(128))


def at(one: Placed) -> Similarity:
    return between(one.pose, one.frame, HeadFrame(1))


def light(image: np.ndarray, network: SurroundingsNetwork | None = None) -> Light:
    one, hidden = face_in_photo(), np.zeros(image.shape[:2], bool)
    hidden[BOX.slices] = oval()
    outside = np.where(hidden[..., None], 0, image).astype(np.uint8)
    return light_of(
        flat(PALE).view(None),
        one.region,
        Around(at(one), outside, hidden, "face", match_of(outside, hidden)),
        network,
    )


class Half:
    """A network that shows the left half of a face twice as light, and green beside it."""

    def light(self, planes: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        self.planes = planes
        shape = planes.shape[:2]
        left = (np.arange(shape[1]) < shape[1] / 2) * np.ones(shape, np.float32)
        green = np.full((*shape, 3), (0, 255, 0), np.float32)
        return np.full((*shape, 3), np.log(2), np.float32), left, green


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


def test_what_is_seen_around_changes_a_face_by_no_more_than_a_limit() -> None:
    inside, rim, count = framed()
    face = np.full((24, 30, 3), 100, np.float32)
    for level in (0, 255):
        out, _ = continue_skin(inside, rim, inside, face, np.full_like(face, level), np.ones(count), 4.0)
        assert np.abs(np.log((out + DARK) / (face + DARK))).max() <= MOST_RIM_DEVIATION + 1e-5
    there = light(around(SKIN, SKIN)).on(at(face_in_photo()), BOX)
    assert there.lit(np.full(there.gain.shape, 3, np.float32)).max() < 3 + DARK, "black stays dark"


def test_a_network_says_how_light_a_face_is_and_where_something_else_is_seen() -> None:
    network = Half()
    both = light(around(SKIN, SKIN)), light(around(SKIN, SKIN), cast("SurroundingsNetwork", network))
    plain, lit = (one.on(at(face_in_photo()), BOX) for one in both)
    assert np.allclose(lit.gain[oval()], 2 * plain.gain[oval()], rtol=0.02)
    photo, known, region, rest = np.split(network.planes, (3, 4, 5), axis=2)
    assert not photo[known[..., 0] == 0].any()
    assert not (known * region).any()
    assert np.abs(rest).max() <= 1.01
    whole = flat(PALE)
    object.__setattr__(whole, "model", network)
    out = paint_faces(around(SKIN, SKIN), [face_in_photo()], [whole])
    assert np.abs(out[95:105, 120:130].astype(int) - (0, 255, 0)).max() < 30
    assert (out[95:105, 65:75] > levels_of(cheeks(SKIN))).all()


def test_the_tone_of_skin_around_is_that_of_what_is_seen_and_looks_like_skin() -> None:
    hidden = np.zeros((200, 190), bool)
    hidden[BOX.slices] = oval()
    for colour, known in ((SKIN, True), (WALL, False), (HAIR, False)):
        for under in (0, 255):
            image = np.where(hidden[..., None], under, around(colour, colour)).astype(np.uint8)
            found = Around(
                at(face_in_photo()), image * ~hidden[..., None], hidden, "face", match_of(image, hidden)
            ).cheeks
            assert found == pytest.approx(cheeks(SKIN) if known else USUAL, abs=0.1)


def test_skin_goes_on_from_the_rim_to_a_face_and_pixels_without_weight_change_nothing() -> None:
    inside, rim, count = framed()
    face, outside = np.full((24, 30, 3), 100, np.float32), np.full((24, 30, 3), 140, np.float32)
    out, skin = continue_skin(inside, rim, inside, face, outside, np.ones(count), 5.0)
    row = out[12, 3:16, 0]
    assert (np.diff(row) <= 1e-3).all(), "from the edge to the middle, levels fall evenly"
    assert row[0] > 135
    assert row[6:] == pytest.approx(100, abs=1)
    assert skin[inside].min() > 0.99
    none, bare = continue_skin(inside, rim, inside, face, outside, np.zeros(count), 5.0)
    assert none[inside] == pytest.approx(100, abs=0.5)
    assert bare.max() < 1e-3
    dark = continue_skin(
        inside, rim, inside, face, outside * 0, np.where(np.nonzero(rim)[1] > 20, 1.0, 0.0), 5.0
    )[0]
    assert dark[12, 4:10, 0] == pytest.approx(100, abs=2), "only where the rim is skin"
    assert dark[12, 25, 0] < 90
    left = np.indices(inside.shape)[1] < 15
    both = [
        continue_skin(
            inside, rim, inside & left, np.where(left[..., None], face, level), outside, np.ones(count), 5.0
        )[0]
        for level in (np.float32(0), np.float32(255))
    ]
    assert (both[0] == both[1])[inside].all(), "what a face does not show has no influence"
    gain = rim_gain(inside, rim, face, outside, np.ones(count))
    assert gain[inside] == pytest.approx(np.log(152 / 112), abs=0.02)
    assert not rim_gain(inside, rim, face, outside, np.zeros(count)).any(), "no skin, no gain"


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
        found.append(float(add_grain(flat, whole, BOX, image, hidden).std()))
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
    assert match_sharpness(sharp, whole, BOX, soft, hidden).std() < 0.5 * sharp.std()
    assert (match_sharpness(sharp, whole, BOX, loud, hidden) == sharp).all()
