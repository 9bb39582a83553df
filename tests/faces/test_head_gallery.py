"""Galleries of heads: whole files load, others are one clear line, and who is shown suits the photo."""

from __future__ import annotations

import json
import math
from collections import Counter
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from dpveil.assets.trained_files import KEY, _hash, card_path, default_path, save, tensors_of
from dpveil.errors import ModelError
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.drawn_face import DIM_LIGHT, SURE, HeadFace, portrait
from dpveil.faces.geometry.align import Frame
from dpveil.faces.geometry.tone import LEVELS
from dpveil.faces.head_gallery import HeadGallery
from dpveil.noise.bits import SeededBits
from dpveil_audit.faces.made_heads import made_heads

HEADS = made_heads()
EVERY = np.arange(len(HEADS))


@pytest.fixture
def path(tmp_path):
    save(HEADS, tmp_path / "heads.safetensors")
    return tmp_path / "heads.safetensors"


def rewritten(path, change):
    """Write the file anew with a right hash after `change` of its arrays and of what it says about itself."""
    tensors, (_, text) = load_file(path), tensors_of(path)
    about = json.loads(text)["about"]
    change(tensors, about)
    text = json.dumps({"about": about, "sha256": _hash(about, tensors)}, sort_keys=True)
    save_file(tensors, path, metadata={KEY: text})


def test_what_is_saved_is_loaded(path):
    back = HeadGallery.load(path)
    assert len(back) == len(HEADS) == 20
    assert back.digest == HEADS.digest
    assert back.pictures == HEADS.pictures
    assert (back.card, back.values) == (HEADS.card, HEADS.values)
    for yaw in (-40, 0, 20):
        one, other = HEADS.view(3, yaw), back.view(3, yaw)
        assert np.array_equal(one.levels, other.levels)
        assert np.array_equal(one.alpha, other.alpha)
        assert one.pose == other.pose
    words = card_path(path).read_text(encoding="utf-8")
    assert HEADS.digest in words
    assert "20 heads of nobody" in words


def test_the_default_gallery_is_installed_and_can_keep_what_the_method_offers():
    heads = HeadGallery.load(default_path("heads"))
    assert all(heads.looks(name) is not None for name in ("gender", "age", "tone"))
    for person in (0, len(heads) - 1):
        view = heads.view(person, 0)
        assert view.levels.shape == (heads.size, heads.size, 3)
        assert 0.2 < view.alpha.mean() < 0.95
        assert view.face.any()


DAMAGE = {
    "size": lambda tensors, about: about.update(size=63),
    "no size": lambda tensors, about: about.pop("size"),
    "fewer masks": lambda tensors, about: tensors.update({"mask ends": tensors["mask ends"][:-1]}),
    "ends": lambda tensors, about: tensors.update({"picture ends": tensors["picture ends"][::-1].copy()}),
    "past the end": lambda tensors, about: tensors.update({"pictures": tensors["pictures"][:-1]}),
    "persons": lambda tensors, about: tensors["person"].__setitem__(0, 300),
    "yaw": lambda tensors, about: tensors["yaw"].__setitem__(0, -20),
    "points": lambda tensors, about: tensors["points"].__setitem__((0, 0, 0), np.nan),
    "points of few": lambda tensors, about: tensors.update({"points": tensors["points"][1:]}),
    "labels": lambda tensors, about: tensors["label gender"].__setitem__(0, 2),
    "labels of few": lambda tensors, about: tensors.update({"label age": tensors["label age"][1:]}),
    "no labels": lambda tensors, about: tensors.pop("label tone"),
}


@pytest.mark.parametrize("name", DAMAGE)
def test_contents_that_do_not_fit_together_are_refused(path, name):
    rewritten(path, DAMAGE[name])
    with pytest.raises(ModelError) as refusal:
        HeadGallery.load(path)
    assert "\n" not in str(refusal.value)


def test_damage_is_noticed(path, tmp_path):
    data = path.read_bytes()
    for size in (0, 9, 300, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:size])
        with pytest.raises(ModelError):
            HeadGallery.load(path)
    path.write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    with pytest.raises(ModelError, match="altered"):
        HeadGallery.load(path)
    path.write_bytes(data)

    def broken(tensors, about):
        tensors["pictures"][:40] = 0

    rewritten(path, broken)
    with pytest.raises(ModelError, match="head 0 is not 64 × 64 in colour with alpha"):
        HeadGallery.load(path).view(0, 0)


def test_the_nearest_yaw_is_shown_and_mirrored_to_the_other_side():
    levels = {yaw: HEADS.view(5, yaw).levels for yaw in (-40, -15, 0, 20, 29, 31)}
    assert np.array_equal(levels[20], levels[29])
    assert not np.array_equal(levels[20], levels[31])
    for yaw in (20, 40):
        right, left = HEADS.view(5, yaw), HEADS.view(5, -yaw)
        assert np.array_equal(right.levels[:, ::-1], left.levels)
        assert np.array_equal(right.hair[:, ::-1], left.hair)
        noses = [view.pose.back(np.zeros((1, 2)))[0, 0] for view in (right, left)]
        assert sum(noses) == pytest.approx(HEADS.size - 1, abs=0.05)
    assert np.array_equal(HEADS.view(5, -9).levels, levels[0])


# Who is shown


def around(skin: float | None, protect: str = "head", shown: tuple = ()) -> SimpleNamespace:
    cheeks = None if skin is None else np.array([skin, 15.0, 18.0])
    picture = np.zeros((128, 128, 3), np.uint8)
    return SimpleNamespace(cheeks=cheeks, protect=protect, picture=picture, shown=frozenset(shown))


def shown(persons, count=2000, seed=3, model=None, **where) -> Counter:
    numbers = SeededBits(seed).words(count).tolist()
    place = around(**where) if where else None
    return Counter(HeadFace(HEADS, persons, number, model=model).person(place) for number in numbers)


def test_all_persons_are_as_likely_and_a_number_decides():
    found = shown(EVERY)
    assert set(found) == {*EVERY.tolist()}
    assert max(abs(count - 100) for count in found.values()) < 6.5 * 100**0.5
    assert found == shown(EVERY)
    ends = [HeadFace(HEADS, EVERY, number).person(None) for number in (0, 2**64 - 1)]
    assert ends == [0, len(HEADS) - 1]


def test_persons_are_shown_the_more_often_the_nearer_their_tone_is_to_the_skin_around():
    tones = HEADS.labels["tone"]
    for tone, light in enumerate(LEVELS):
        found = shown(EVERY, skin=light - DIM_LIGHT)
        away = np.abs(tones - tone)
        means = [np.mean([found[p] for p in np.flatnonzero(away == far)]) for far in range(away.max() + 1)]
        assert means == sorted(means, reverse=True)
        assert means[1] > 0.1 * means[0] > 0
        assert all(mean < 0.01 * means[0] for mean in means[3:])
    assert len(shown(EVERY, skin=None)) == 20


def test_nobody_is_shown_twice_in_a_photo_unless_there_is_nobody_else():
    for number in SeededBits(1).words(20).tolist():
        assert HeadFace(HEADS, np.arange(3), number).person(around(None, shown=(0, 2))) == 1
        assert HeadFace(HEADS, np.arange(1), number).person(around(None, shown=(0,))) == 0


def test_gender_and_age_that_a_model_reads_around_are_shown_as_often_as_it_says():
    columns = {"gender": slice(0, 2), "age": slice(2, 7)}
    scores = np.array([0, 0.1, 0, 0, 0, 0, 0], np.float32)
    model = SimpleNamespace(scores=lambda picture: scores, columns=columns, values=VALUES)
    found = shown(EVERY, model=model, skin=None)
    female = sum(count for person, count in found.items() if HEADS.labels["gender"][person] == 1)
    share = 1 / (1 + math.exp(-0.1 * SURE["gender"]))
    assert abs(female / 2000 - share) < 0.03


def test_a_beard_that_would_be_cut_off_is_shown_only_if_it_was_drawn():
    heads = made_heads([(n % 2, n // 2 % 2) for n in range(8)], ("beard", "glasses"))
    for persons, beards in ((np.arange(8), {0}), (np.array([1, 3]), {1})):
        for number in SeededBits(1).words(50).tolist():
            inner = HeadFace(heads, persons, number).person(around(None, "face"))
            assert int(heads.labels["beard"][inner]) in beards
    whole = {HeadFace(heads, np.arange(8), n).person(around(None)) for n in SeededBits(1).words(99).tolist()}
    assert len(whole) == 8


# How they are shown alone


def test_a_portrait_and_a_crop_show_the_head_before_a_backdrop_and_follow_steps():
    head = HeadFace(HEADS, np.array([4]), 9)
    for height, width in ((40, 30), (64, 64), (30, 90), (1, 1)):
        assert portrait(head, height, width).shape == (height, width, 3)
    crop, wide = head.crop(Frame(64)), portrait(head, 90, 120)
    dark = head.after(lambda levels: levels // 4)
    assert dark.crop(Frame(64))[20:44, 20:44].mean() < 0.5 * crop[20:44, 20:44].mean()
    other = portrait(HeadFace(HEADS, np.array([4]), 10), 90, 120)
    assert np.array_equal(wide[45, 60], other[45, 60])
    assert not np.array_equal(wide[5, 5], other[5, 5])
