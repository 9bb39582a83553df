"""The attributes method: its law over everything that a face can look like."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import permutations, product

import numpy as np
import pytest
from made_nobody import crop, gallery, model

from dpveil.assets.file_reference import Reference
from dpveil.assets.trained_files import installed_path
from dpveil.errors import InvalidParameter, ModelError, UnknownName, UsageError
from dpveil.faces.attribute_model import VALUES
from dpveil.faces.attributes_method import HEADS as HEADS_KIND
from dpveil.faces.attributes_method import Attributes
from dpveil.faces.drawn_face import HeadFace
from dpveil.faces.face_gallery import FRAME
from dpveil.faces.geometry.head_picture import View
from dpveil.noise.bits import SeededBits
from dpveil.noise.integer_matrix import log_above
from dpveil_audit.distributions import finite_distribution
from dpveil_audit.faces.made_heads import made_heads
from dpveil_audit.fit import fit

NAMES = ("gender", "age")
SIZE = {"height": 90, "width": 70, "channels": 3}
MODEL, GALLERY = model(), gallery()
HEADS = made_heads(list(product(range(2), range(2), range(2))), ("gender", "glasses", "beard"))
BY_NAME = {"gallery": "gallery sha256:" + 64 * "a", "model": "attributes sha256:" + 64 * "b"}


def method(attributes="gender=2,age=1", faces=GALLERY, **more):
    return Attributes(attributes=attributes, gallery=faces, model=MODEL, **more)


def truths(names=NAMES):
    return list(product(*(range(len(VALUES[name])) for name in names)))


def law(own, true, table, faces):
    """The chance of every face when `true` are the values, from the written law of randomised response."""
    chances = [Fraction(0)] * faces
    rows = [response.matrix.weights for response in own.responses.values()]
    for answer, numbers in table.items():
        chance = math.prod(
            (Fraction(row[x][y], 1 << 64) for row, x, y in zip(rows, true, answer, strict=True)),
            start=Fraction(1),
        )
        for number in numbers:
            chances[number] += chance / len(numbers)
    return chances


def worst(laws):
    return max(
        log_above(max(a / b, b / a)) for x, y in permutations(laws, 2) for a, b in zip(x, y, strict=True)
    )


def table_of(own):
    return own.table


def shown(own, crops, seed):
    """Which faces of the gallery are released."""
    released = own.release(crops, bits=SeededBits(seed))
    levels = own.gallery.held.faces[:, 64, 64, 0]
    assert len(np.unique(levels)) == len(levels)
    numbers = np.argmax(released[:, 64, 64, :1] == levels, axis=1)
    assert np.array_equal(own.gallery.held.faces[numbers], released)
    return numbers


@pytest.mark.parametrize("without", [(), ((0, 0), (1, 2), (1, 3))], ids=["full", "holes"])
@pytest.mark.parametrize("budgets", ["gender=2,age=1", "age=0.5,gender=4"])
def test_every_two_faces_keep_the_sum_of_the_budgets_and_nothing_is_wasted(budgets, without):
    own = method(budgets, gallery(without=without))
    table = table_of(own)
    assert set(table) == set(truths())
    laws = [law(own, true, table, len(own.gallery.held)) for true in truths()]
    assert all(sum(one) == 1 for one in laws)
    epsilon = own.guarantee(**SIZE).epsilon
    assert worst(laws) <= epsilon
    if not without:
        assert worst(laws) >= epsilon - Fraction(1, 10**6)


def test_two_crops_that_look_alike_give_the_same_release_from_the_same_bits():
    own = method()
    first, second = (crop({"gender": 1, "age": 2}, seed=s)[None] for s in (1, 2))
    assert not np.array_equal(first, second)
    for seed in range(20):
        assert np.array_equal(*(own.release(one, bits=SeededBits(seed)) for one in (first, second)))


def test_none_kept_costs_nothing_and_every_face_is_as_likely():
    """A right sampler fails with probability 1e-9 at most."""
    own = method("none")
    assert own.guarantee(**SIZE).epsilon == 0
    assert str(own.guarantee(**SIZE)) == "0-DP, any-image"
    faces = own.shown(np.tile(crop({})[None], (1500, 1, 1, 1)), bits=SeededBits(4))
    numbers = np.array([face.person(None) for face in faces])
    assert not fit(numbers, finite_distribution([1 / len(GALLERY)] * len(GALLERY))).is_rejected


def test_combinations_without_a_face_give_the_nearest_ones():
    own = method("gender=2,age=1", gallery(without=((0, 0), (1, 2), (1, 3), (1, 4))))
    table, looks = table_of(own), own.gallery.held.labels
    told = {key: {(int(looks["gender"][i]), int(looks["age"][i])) for i in table[key]} for key in truths()}
    assert told[0, 0] == {(0, 1)}
    assert told[1, 2] == told[1, 3] == told[1, 4] == {(1, 1)}
    dearer_age = table_of(method("gender=1,age=2", gallery(without=((0, 0), (1, 2), (1, 3), (1, 4)))))
    held = {(int(looks["gender"][i]), int(looks["age"][i])) for i in dearer_age[1, 3]}
    assert held == {(0, 3)}


def test_labels_that_the_gallery_lacks_are_read_from_its_faces():
    table = table_of(method("smile=3"))
    read = MODEL.read(GALLERY.faces)["smile"]
    assert {place[0]: numbers.tolist() for place, numbers in table.items()} == {
        0: np.flatnonzero(read == 0).tolist(),
        1: np.flatnonzero(read == 1).tolist(),
    }
    assert 0 < read.sum() < len(read)


def test_a_face_is_shown_for_a_value_only_if_label_and_reading_agree_or_none_does():
    """The first two faces of every combination are read one age band lower than they are labelled."""
    young = gallery(each=4, younger=2)
    table, read = table_of(method("gender=2,age=1", young)), MODEL.read(young.faces)["age"]
    for (gender, age), numbers in table.items():
        assert (young.labels["gender"][numbers] == gender).all()
        assert len(numbers) == (4 if age == 0 else 2)
        assert (read[numbers] == age).all()
        assert (young.labels["age"][numbers] == age).all()


# What users write


@pytest.mark.parametrize(
    ("attributes", "epsilon", "wanted"),
    [
        ("gender=4,age=2", None, "gender=4,age=2"),
        ("age=2, gender=4", 6, "gender=4,age=2"),
        ("gender,age", 8, "gender=4,age=4"),
        ("gender,age,smile", 1, "gender=1/3,age=1/3,smile=1/3"),
        ({"gender": "1/3"}, None, "gender=1/3"),
        (["gender"], 2, "gender=2"),
        ("none", None, "none"),
    ],
)
def test_budgets_as_written(attributes, epsilon, wanted):
    own = Attributes(attributes=attributes, epsilon=epsilon, **BY_NAME)
    told = own.parameters()
    assert told["attributes"] == wanted
    read = BY_NAME if wanted != "none" else BY_NAME | {"model": "none"}
    assert {name: told[name] for name in BY_NAME} == read
    again = Attributes(**told)
    assert again.parameters() == told
    assert again.guarantee(**SIZE) == own.guarantee(**SIZE)


def test_what_is_shown_and_what_is_replaced_go_together():
    """A face within a head that stays has no tone of its own, and a face alone is no head."""
    for tone in ("tone=2", "gender=1,tone=dark"):
        with pytest.raises(InvalidParameter, match="cannot be shown with protect face"):
            Attributes(attributes=tone, gallery=HEADS, model=MODEL)
        assert Attributes(attributes=tone, gallery=HEADS, model=MODEL, protect="head").toned
    for protect in ("head", "box"):
        with pytest.raises(InvalidParameter, match="is not for faces of attributes"):
            Attributes(attributes="none", protect=protect, **BY_NAME)
    with pytest.raises(InvalidParameter, match="is nothing that faces of the gallery differ by"):
        Attributes(attributes="perceived-race=1", gallery=HEADS, model=MODEL).prepare(**SIZE)


@pytest.mark.parametrize("name", ["glasses", "beard"])
def test_glasses_and_beards_are_those_of_the_heads(name):
    """At ε = 60 the answer is the reading: fails with probability 1e-24."""
    own = Attributes(attributes={name: 60}, gallery=HEADS, model=MODEL)
    crops = np.stack([crop({name: n % 2}, seed=n) for n in range(40)])
    heads = own.shown(crops, bits=SeededBits(1))
    assert [int(HEADS.labels[name][head.person(None)]) for head in heads] == [n % 2 for n in range(40)]
    chosen = Attributes(attributes=f"{name}=yes", gallery=HEADS, model="none")
    assert {
        int(HEADS.labels[name][head.person(None)]) for head in chosen.shown(crops, bits=SeededBits(2))
    } == {1}
    assert str(chosen.guarantee(**SIZE)) == "0-DP, any-image"


def test_unknown_names_and_files_that_are_not_at_hand():
    for typo, meant in (("gendre", "gender"), ("race", "perceived-race")):
        with pytest.raises(UnknownName, match=f"'{typo}': did you mean '{meant}'"):
            Attributes(attributes=f"{typo}=4", **BY_NAME)
    with pytest.raises(ModelError, match="not available"):
        Attributes(attributes="gender=4", **BY_NAME).prepare(**SIZE)
    with pytest.raises(InvalidParameter, match="is no gallery"):
        Attributes(attributes="gender=4", gallery=BY_NAME["model"], model=BY_NAME["model"])
    with pytest.raises(ModelError, match="there is no gallery"):
        Attributes(attributes="gender=4", gallery="nowhere.safetensors", model=MODEL)


# Who is shown


def test_the_default_gallery_depends_on_what_is_replaced_and_on_what_is_installed(monkeypatch):
    rendered = Attributes(gallery="heads", protect="head").gallery
    if installed_path("people") is not None:
        inner, head = (Attributes(protect=protect).gallery for protect in ("face", "head"))
        assert inner == Attributes(gallery="research").gallery
        assert head == Attributes(gallery="research", protect="box").gallery
        assert (inner.name, head.name) == ("gallery", "heads")
        assert head != rendered
        assert Reference.parse(str(head), HEADS_KIND).held is head.held
    monkeypatch.setattr("dpveil.assets.trained_files._package_folders", lambda package: ())
    assert {Attributes(protect=protect).gallery for protect in ("face", "head")} == {rendered}
    with pytest.raises(UsageError):
        Attributes(gallery="research")


def test_averages_of_faces_are_drawn_as_heads_are():
    (every,) = method("none").table.values()
    faces = [HeadFace(GALLERY, every, number) for number in SeededBits(5).words(400).tolist()]
    assert {face.person(None) for face in faces} == set(every.tolist())
    assert all(np.array_equal(face.crop(FRAME), GALLERY.faces[face.person(None)]) for face in faces[:20])


def test_hair_that_reaches_into_a_crop_is_not_shown():
    crop = np.full((128, 128, 3), (190, 140, 115), np.uint8)
    crop[60:, :22], crop[76:80, 58:70] = (25, 20, 18), (120, 40, 40)
    wide = View.of_crop(crop, FRAME, None).face
    more = (len(wide) - 128) // 2  # the picture is wider than its crop
    face = wide[more:-more, more:-more]
    assert face[75:110, :22].max() == 0
    assert face[30:105, 60:80].min() == 1, "a mouth does not reach in"
