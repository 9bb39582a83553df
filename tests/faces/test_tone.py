"""Tone: what is read, what is shown, that the price is randomised response's, and skin outside of faces."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from facespace_made import FACE, astronaut
from made_nobody import gallery, model

import dpveil
from dpveil import Photo
from dpveil.catalogue import stated
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter
from dpveil.faces import Attributes
from dpveil.faces.attribute_model import READ, TONE, VALUES
from dpveil.faces.drawn.traits import TONES
from dpveil.faces.geometry import place, recombine
from dpveil.faces.geometry.colour_match import BELOW
from dpveil.faces.geometry.head_frame import HeadFrame, between
from dpveil.faces.geometry.tone import CROP, CUTS, LEVELS, lightness, patch_of, toned, tones
from dpveil.noise.bits import SeededBits
from dpveil.noise.matrix import log_above

SIZE = {"height": 90, "width": 70, "channels": 3}
GREYS = (180, 150, 135, 120, 90)
"""A grey level of each class."""
SKIN = np.array([190, 140, 110], np.uint8)
FACES, MODEL = gallery(least=80), model()


def plain(level: int) -> np.ndarray:
    return np.full((128, 128, 3), level, np.uint8)


def own(attributes: object, **more: object) -> Attributes:
    return Attributes(attributes=attributes, gallery=FACES, model=MODEL, **more)


def light(crop: np.ndarray) -> float:
    return lightness(crop[patch_of(CROP)])


def test_the_scale_is_cie_lightness_and_its_classes_are_in_order() -> None:
    assert [round(lightness(plain(level)), 1) for level in (0, 10, 119, 255)] == [0.0, 2.7, 50.0, 100.0]
    assert tones(np.stack([plain(level) for level in GREYS])).tolist() == [0, 1, 2, 3, 4]
    assert all(high > cut > low for high, cut, low in zip(LEVELS, CUTS, LEVELS[1:], strict=False))
    assert len(VALUES[TONE]) == len(LEVELS) == len(CUTS) + 1
    assert VALUES[TONE] == TONES
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


def law(method: Attributes, true: tuple[int, ...]) -> list[Fraction]:
    """The chance of every pair of a gallery face and a tone, when `true` is what is read."""
    rows = [response.matrix.weights for response in method.responses.values()]
    chances: dict[tuple[int, int], Fraction] = {}
    for answer, numbers in method.table.items():
        chance = math.prod((Fraction(r[x][y], 1 << 64) for r, x, y in zip(rows, true, answer, strict=True)))
        for number in numbers.tolist():
            key = number, answer[-1]
            chances[key] = chances.get(key, Fraction(0)) + Fraction(chance) / len(numbers)
    return [chances.get(key, Fraction(0)) for key in product(range(len(FACES)), range(5))]


@pytest.mark.parametrize("attributes", ["tone=1", "gender=1,tone=0.5", "gender=0.5,age=1,tone=1.5"])
def test_every_two_faces_keep_the_sum_of_the_budgets(attributes: str) -> None:
    method = own(attributes)
    names = [name for name, _ in method.costs]
    laws = [law(method, true) for true in product(*(range(len(VALUES[name])) for name in names))]
    assert all(sum(one) == 1 for one in laws)
    epsilon = method.guarantee(**SIZE).epsilon
    most = max(max(one) / min(one) for one in zip(*laws, strict=True) if any(one))
    assert dict(method.costs)[TONE] < log_above(most) + Fraction(1, 10**6)
    assert log_above(most) <= epsilon


def test_answers_are_kept_as_often_as_randomised_response_says() -> None:
    """500 crops at ε = 2, within 6.2 deviations: fails by chance with 1 of 10⁹."""
    crops = np.stack([plain(90)] * 500)
    shown = tones(own("tone=2").release(crops, bits=SeededBits(3)))
    chance = math.exp(2) / (math.exp(2) + 4)
    assert abs((shown == 4).sum() - 500 * chance) < 6.2 * math.sqrt(500 * chance * (1 - chance))
    others = np.bincount(shown, minlength=5)[:4]
    assert others.min() > 500 * (1 - chance) / 4 - 6.2 * math.sqrt(500 * 0.09)


def test_what_is_shown_depends_on_the_answers_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    method = own("tone=1")
    monkeypatch.setattr(Attributes, "_answers", lambda *_: [[1], [4], [1]])
    crops = np.stack([plain(level) for level in (20, 200, 120)])
    first, other = (method.release(one, bits=SeededBits(5)) for one in (crops, crops[::-1].copy()))
    assert np.array_equal(first, other)
    assert tones(first).tolist() == [1, 4, 1]


def test_a_value_that_the_user_chose_is_shown_and_costs_nothing() -> None:
    for value, place_of in (("lightest", 0), ("darkest", 4)):
        method = own(f"tone={value}")
        assert str(method.guarantee(**SIZE)) == "0-DP, any-image"
        crops = np.stack([plain(level) for level in GREYS])
        shown = method.release(crops, bits=SeededBits(2))
        assert tones(shown).tolist() == [place_of] * 5
        assert np.array_equal(shown, method.release(255 - crops, bits=SeededBits(2)))
        assert stated("attributes", method.parameters()).attributes == method.attributes
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
    drawn = Attributes(attributes="tone=1", gallery="drawn", model="none")
    assert drawn.parameters()["model"] == "none"
    figures = Attributes(attributes="tone=30", gallery="drawn").shown(
        np.stack([plain(level) for level in GREYS]), bits=SeededBits(1)
    )
    assert [figure.person.tone for figure in figures] == ["1", "2", "3", "4", "5"]
    photo = astronaut()
    release = dpveil.obfuscate(photo, drawn, regions=FACE, bits=SeededBits(1))
    assert release.certificate.parameters["attributes"] == "tone=1"
    assert Attributes(attributes="gender=male", gallery="drawn").parameters()["model"] == "none"


# What is painted, and what is seen outside


def scene(below: np.ndarray = SKIN) -> tuple[np.ndarray, np.ndarray, object]:
    """A photo with a face by its box, and `below` where skin is looked for."""
    image = np.full((400, 400, 3), (40, 60, 120), np.uint8)
    there = place(Photo(image), Box(160, 100, 80, 80), landmarks=False)
    half, top, bottom = BELOW
    pose = between(there.pose, there.frame, HeadFrame(1))
    ends = pose.back(np.array([[0.45 - half, top - 0.05], [0.55 + half, bottom + 0.05]]) - 0.5).astype(int)
    image[ends[0, 1] : ends[1, 1], ends[0, 0] : ends[1, 0]] = below
    hidden = np.zeros(image.shape[:2], bool)
    hidden[there.region.box.slices] = True if there.region.mask is None else there.region.mask
    return image, hidden, there


def test_faces_match_the_skin_that_is_seen_unless_they_have_a_tone_and_hidden_pixels_never_count() -> None:
    crop = np.random.default_rng(3).integers(100, 200, (224, 224, 3), np.uint8)
    found = {}
    for skin in (SKIN, SKIN // 2):
        image, hidden, there = scene(skin)
        crop = crop[: there.frame.size, : there.frame.size]
        for tone in (False, True):
            released = recombine(image, [there], [crop], toned=tone)
            altered = np.where(hidden[..., None], 255 - image, image)
            assert np.array_equal(recombine(altered, [there], [crop], toned=tone), released)
            found[int(skin[0]), tone] = lightness(
                there.pose.crop(released, there.frame)[patch_of(there.frame)]
            )
    assert found[190, False] - found[95, False] > 20
    assert abs(found[190, True] - found[95, True]) < 1
