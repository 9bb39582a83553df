"""Tone: what is read, what is shown, and skin outside of faces."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from facespace_made import FACE, astronaut
from made_nobody import model

import dpveil
from dpveil import Photo
from dpveil.catalogue import method_from_certificate
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter
from dpveil.faces import Attributes
from dpveil.faces.attribute_model import READ, TONE, VALUES
from dpveil.faces.drawn_face import HeadFace
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.place import place
from dpveil.faces.geometry.surroundings_seen import NECK
from dpveil.faces.geometry.tone import CROP, CUTS, LEVELS, lightness, patch_of, toned, tones
from dpveil.faces.paint_faces import paint_faces
from dpveil.noise.bits import SeededBits
from dpveil_audit.faces.made_heads import made_heads

SIZE = {"height": 90, "width": 70, "channels": 3}
GREYS = (180, 150, 135, 120, 90)
"""A grey level of each class."""
SKIN = np.array([190, 140, 110], np.uint8)
HEADS, MODEL = made_heads(), model()


def plain(level: int) -> np.ndarray:
    return np.full((128, 128, 3), level, np.uint8)


def own(attributes: object, **more: object) -> Attributes:
    return Attributes(attributes=attributes, gallery=HEADS, model=MODEL, protect="head", **more)


def shown(method: Attributes, crops: np.ndarray, seed: int) -> list[int]:
    """The tones of the heads that are shown."""
    heads = method.shown(crops, bits=SeededBits(seed))
    return [int(HEADS.labels[TONE][head.person(None)]) for head in heads if isinstance(head, HeadFace)]


def light(crop: np.ndarray) -> float:
    return lightness(crop[patch_of(CROP)])


def test_the_scale_is_cie_lightness_and_its_classes_are_in_order() -> None:
    assert [round(lightness(plain(level)), 1) for level in (0, 10, 119, 255)] == [0.0, 2.7, 50.0, 100.0]
    assert tones(np.stack([plain(level) for level in GREYS])).tolist() == [0, 1, 2, 3, 4]
    assert all(high > cut > low for high, cut, low in zip(LEVELS, CUTS, LEVELS[1:], strict=False))
    assert len(VALUES[TONE]) == len(LEVELS) == len(CUTS) + 1
    assert TONE not in READ


@pytest.mark.parametrize("wanted", LEVELS)
def test_a_face_brought_to_a_tone_has_it_and_keeps_black_and_white(wanted: float) -> None:
    face = np.random.default_rng(2).integers(60, 200, (128, 128, 3), np.uint8)
    face[:4], face[-4:] = 0, 255
    found = toned(face, CROP, wanted)
    assert abs(light(np.rint(found)) - wanted) < 0.1
    assert found[:4].max() < 1
    assert found[-4:].min() > 254
    rising = np.repeat(np.arange(128, dtype=np.uint8), 384).reshape(128, 128, 3)
    assert np.all(np.diff(toned(rising, CROP, 40.0), axis=0) >= 0)


# The attribute


def test_what_is_shown_depends_on_the_answers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    method = own("tone=1")
    monkeypatch.setattr(Attributes, "_answers", lambda *_: [[1], [4], [1]])
    crops = np.stack([plain(level) for level in (20, 200, 120)])
    first, other = (method.release(one, bits=SeededBits(5)) for one in (crops, crops[::-1].copy()))
    assert np.array_equal(first, other)
    assert shown(method, crops, 5) == [1, 4, 1]


def test_a_value_that_the_user_chose_is_shown_and_costs_nothing() -> None:
    for value, place_of in (("lightest", 0), ("darkest", 4)):
        method = own(f"tone={value}")
        assert str(method.guarantee(**SIZE)) == "0-DP, any-image"
        crops = np.stack([plain(level) for level in GREYS])
        assert shown(method, crops, 2) == [place_of] * 5
        released = method.release(crops, bits=SeededBits(2))
        assert np.array_equal(released, method.release(255 - crops, bits=SeededBits(2)))
        assert method_from_certificate("attributes", method.parameters()).attributes == method.attributes
        assert method.parameters()["epsilon"] is None
    assert {*own("gender=female").table} == {(1,)}
    both = own("gender=1,tone=medium")
    assert both.parameters()["attributes"] == "gender=1,tone=medium"
    assert str(both.guarantee(**SIZE)) == "1-DP, any-image"
    assert {answer[1] for answer in both.table} == {2}
    assert both.with_budget(epsilon=Fraction(3)).parameters()["attributes"] == "gender=3,tone=medium"


def test_a_chosen_value_has_no_share_of_the_budget() -> None:
    shared = own("gender,age=75+,tone", epsilon=4)
    assert shared.parameters()["attributes"] == "gender=2,age=75+,tone=2"
    with pytest.raises(InvalidParameter, match="nothing is kept"):
        own("tone=dark", epsilon=1)
    with pytest.raises(InvalidParameter, match="neither a budget nor a value") as error:
        own("tone=darkish")
    assert "lightest, light, medium, dark, darkest" in str(error.value)
    with pytest.raises(InvalidParameter, match="did you mean medium"):
        own("tone=Medum")
    with pytest.raises(InvalidParameter, match="not above 0"):
        own("tone=-1")


def test_the_tone_alone_needs_no_model() -> None:
    alone = Attributes(attributes="tone=30", gallery=HEADS, model="none", protect="head")
    assert alone.parameters()["model"] == "none"
    assert shown(alone, np.stack([plain(level) for level in GREYS]), 1) == [0, 1, 2, 3, 4]
    release = dpveil.obfuscate(astronaut(), alone, regions=FACE, bits=SeededBits(1))
    assert release.certificate.parameters["attributes"] == "tone=30"
    assert Attributes(attributes="gender=male", gallery=HEADS).parameters()["model"] == "none"


# What is painted, and what is seen outside


def scene(below: np.ndarray = SKIN) -> tuple[np.ndarray, np.ndarray, object]:
    """A photo with a face by its box, and `below` where skin is looked for."""
    image = np.full((400, 400, 3), (40, 60, 120), np.uint8)
    there = place(Photo(image), Box(160, 100, 80, 80), landmarks=False)
    half, top, bottom = NECK
    pose = between(there.pose, there.frame, HeadFrame(1))
    ends = pose.back(np.array([[0.45 - half, top - 0.05], [0.55 + half, bottom + 0.05]]) - 0.5).astype(int)
    image[ends[0, 1] : ends[1, 1], ends[0, 0] : ends[1, 0]] = below
    hidden = np.zeros(image.shape[:2], bool)
    hidden[there.region.box.slices] = True if there.region.mask is None else there.region.mask
    return image, hidden, there


def test_heads_match_the_skin_that_is_seen_unless_they_have_a_tone_and_hidden_pixels_never_count() -> None:
    head, found = HeadFace(HEADS, np.array([2]), 1), {}
    for skin in (SKIN, SKIN // 2):
        image, hidden, there = scene(skin)
        for tone in (False, True):
            released = paint_faces(image, [there], [head], toned=tone)
            altered = np.where(hidden[..., None], 255 - image, image)
            assert np.array_equal(paint_faces(altered, [there], [head], toned=tone), released)
            found[int(skin[0]), tone] = light(there.pose.crop(released, there.frame))
    assert found[190, False] - found[95, False] > 8
    assert abs(found[190, True] - found[95, True]) < 6
