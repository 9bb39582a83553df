"""Figure 6.7: what an active appearance model shows of made faces, and who is named."""

from __future__ import annotations

from functools import cache

import cv2
import numpy as np
import pytest

from dpveil.assets import Card
from dpveil.assets.trained_files import default_path
from dpveil.codecs import AAM, GAN, load
from dpveil.noise.bits import SeededBits
from dpveil_research.croft_2022_faces import PRIVATE, SAME
from dpveil_research.croft_thesis_6_aam import (
    ALONE,
    DECODED,
    GENERATOR,
    INSIDE,
    LOOKS,
    PHOTOS,
    Attacked,
    Plan,
    Point,
    Scene,
    claims,
    tables,
)
from dpveil_research.faces import GREY, People
from dpveil_train.aam import train_aam

SIDE, COUNT = 16, 6
TINY = Plan(people=COUNT, known=2, draws=2, epsilons=(100, 10**9), groups=(2, 3))


def numbers(stream: str, count: int) -> np.ndarray:
    return SeededBits(67, stream).words(count) / 2.0**64


def portrait(person: int, photo: int) -> np.ndarray:
    """A made face: an oval on a background, both the person's, and a little that is the photo's."""
    own, now = numbers(f"person {person}", 8), numbers(f"photo {person} {photo}", 8)
    mixed = 0.9 * own + 0.1 * now
    picture = np.full((SIDE, SIDE, 3), 40 + 170 * mixed[:3])
    face = (60 + 150 * mixed[3:6]).tolist()
    axes = (4 + round(1.5 * mixed[6]), 5 + round(1.5 * mixed[7]))
    cv2.ellipse(picture, (8, 8), axes, 0, 0, 360, face, -1)
    return np.clip(
        picture + 6 * (numbers(f"grain {person} {photo}", 768).reshape(picture.shape) - 0.5), 0, 255
    )


def marks(crops: np.ndarray) -> np.ndarray:
    """Points on the ovals, by their area."""
    angles = np.linspace(0, 2 * np.pi, 12, endpoint=False)
    reach = 3.5 + (np.abs(crops.astype(float) - crops[:, :1, :1]).sum(axis=3) > 60).mean(axis=(1, 2)) * 4
    return 8 + reach[:, None, None] * np.stack([np.cos(angles), 1.1 * np.sin(angles)], axis=1)


@cache
def scene() -> Scene:
    crops = np.array([[portrait(i, n) for n in range(3)] for i in range(COUNT)]).astype(np.uint8)
    training = np.array([portrait(100 + i, 0) for i in range(40)]).astype(np.uint8)
    card = Card("aam", "made faces", "ours", 1)
    model = train_aam(lambda: iter([training]), card=card, seed=1, length=8, landmarks=marks)
    generator = load(default_path("gan"))
    assert isinstance(model, AAM)
    assert isinstance(generator, GAN)
    people = People("made", crops, tuple(f"p{i}" for i in range(COUNT)))
    return Scene(people, model, generator, TINY)


def plain(crops: np.ndarray) -> np.ndarray:
    """A recogniser that is quick: means of parts."""
    small = [cv2.resize(crop, (4, 4), interpolation=cv2.INTER_AREA).ravel() for crop in crops]
    return np.array(small, np.float64)


@cache
def points() -> tuple[Point, ...]:
    return tuple(Attacked(scene(), embed=plain).points())


@pytest.mark.parametrize(("method", "x"), [(PRIVATE, "100"), (SAME, "3"), (DECODED, "")])
def test_in_the_photo_all_that_was_face_is_replaced_and_nothing_else(method: str, x: str) -> None:
    own = scene()
    photo, shown = own.people.photo(2), own.shown(INSIDE, method, x, 2)
    alone = own.shown(ALONE, method, x, 2)
    was = own.contours(own._modelled[2])
    outside = (shown == photo).all(axis=3) | was | (alone != GREY).any(axis=3)
    assert outside.all()
    if method == PRIVATE:
        changed = (shown != photo).any(axis=3)
        assert changed[was].mean() > 0.9


def test_alone_nothing_is_read_from_the_photo_but_its_code() -> None:
    """Whatever lies around the face, equal codes and draws give equal pictures, of one draw with `INSIDE`."""
    own = scene()
    alone, inside = (own.shown(look, PRIVATE, "100", 2) for look in (ALONE, INSIDE))
    face = (alone != GREY).any(axis=3)
    assert face.any()
    assert not face.all()
    np.testing.assert_array_equal(alone[face], inside[face])


def test_hardly_any_noise_shows_what_the_codec_alone_shows() -> None:
    for look in LOOKS:
        one, other = (
            scene().shown(look, method, x, 2) for method, x in ((PRIVATE, str(10**9)), (DECODED, ""))
        )
        assert np.abs(one.astype(int) - other).max() <= 2


def test_every_look_is_measured_at_every_setting() -> None:
    wanted = {(PRIVATE, "100"), (PRIVATE, str(10**9)), (SAME, "2"), (SAME, "3"), (DECODED, "")}
    every = {(one.look, one.method, one.x) for one in points()}
    assert every == {(PHOTOS, "", ""), *((look, *setting) for look in LOOKS for setting in wanted)}
    assert set(tables({"A&T": points()})) == {"results.csv", "verdicts.csv", "figure-6-7-at.png"}


def test_claims_are_differences_of_the_strongest_attackers() -> None:
    at = {(one.look, one.method, one.x): one for one in points()}
    found = {(one.name, one.about): one for one in claims("made", points())}
    inside, alone = (at[look, SAME, "2"].named for look in (INSIDE, ALONE))
    np.testing.assert_array_equal(found["A3", f"made, {SAME} 2"].values, inside - 1 / 2)
    np.testing.assert_array_equal(found["A5", f"made, {SAME} 2"].values, inside - alone)
    ends = (at[GENERATOR, PRIVATE, x].named for x in (str(10**9), "100"))
    own = found["A1", f"made, {GENERATOR}, {PRIVATE} {10**9} - 100"].values
    np.testing.assert_array_equal(own, np.subtract(*ends))
    assert (found["A2", f"made, {SAME} 3"].low, found["A2", f"made, {SAME} 3"].high) == (0, np.inf)
    for one in points():
        assert one.named.mean() == max(values.mean() for values in one.by_attack.values())
