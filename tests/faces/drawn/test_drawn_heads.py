"""Drawn heads: every trait shows where it belongs, all of them go together, and the version holds."""

from __future__ import annotations

import subprocess
import sys
from dataclasses import fields
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
from people import SIDE, people, person, picture, sheet, units

from dpveil.core.region import Box
from dpveil.faces.drawn import drawing, hair, traits
from dpveil.faces.drawn.canvas import NAMES, Canvas
from dpveil.faces.drawn.drawing import draw
from dpveil.faces.drawn.figure import DrawnHead
from dpveil.faces.drawn.gallery import TABLES, VERSION, DrawnGallery
from dpveil.faces.drawn.head import Head
from dpveil.faces.drawn.palette import colours
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.head_frame import HeadFrame, pixel_grid
from dpveil.faces.geometry.protection import PROTECTIONS

DRAWN = {2: "f72d46f596e4b557f58471a37d1d8b5359c1f65d06e05b0804b0db84ca7328db"}
"""The hash of a sheet by version: whoever changes a pixel of it raises `gallery.VERSION`."""
DIGESTS = {2: "5fd26eddf67c9b76273c0ee1faabb14cfe0dbe40010f82da99b62ac2d5948595"}
ALONE = Similarity(1.0, 0.0, 0.0, 0.0)


def test_a_version_draws_what_it_drew() -> None:
    assert sheet() == DRAWN[VERSION]
    assert DrawnGallery().digest == DIGESTS[VERSION]


def test_every_process_draws_the_same() -> None:
    here = Path(__file__).parent
    done = subprocess.run(
        [sys.executable, str(here / "people.py")], capture_output=True, check=True, text=True
    )
    assert done.stdout.strip() == sheet()


def test_the_digest_follows_every_table(monkeypatch: pytest.MonkeyPatch) -> None:
    digests = {DrawnGallery().digest}
    for module, names in TABLES:
        for name in names:
            with monkeypatch.context() as patch:
                patch.setattr(module, name, [getattr(module, name)])
                digests.add(DrawnGallery().digest)
    assert len(digests) == 1 + sum(len(names) for _, names in TABLES)


PLACES = {
    "glasses": ({"glasses": "square"}, (-21, 21, -7, 9)),
    "beard": ({"beard": "full"}, (-22, 22, 2, 42)),
    "stubble": ({"beard": "stubble"}, (-22, 22, 2, 42)),
    "moustache": ({"beard": "moustache"}, (-10, 10, 15, 26)),
    "smile": ({"smile": "no"}, (-12, 12, 16, 30)),
    "mouth": ({"mouth": "open"}, (-12, 12, 16, 30)),
    "age": ({"age": "60-74"}, (-22, 22, -20, 24)),
    "old age": ({"age": "75+"}, (-22, 22, -23, 24)),
    "eyes": ({"eyes": "blue"}, (-14, 14, -4, 4)),
    "garment": ({"garment": "vee"}, (-20, 20, 36, 56)),
}


@pytest.mark.parametrize("name", PLACES)
def test_a_trait_shows_where_it_belongs_and_nowhere_else(name: str) -> None:
    changed, (left, right, top, bottom) = PLACES[name]
    base = person(hair="bald")
    apart = np.abs(picture(base) - picture(person(hair="bald", **changed))).max(axis=2) > 12
    (x0, y0), (x1, y1) = units(SIDE).to(np.array([[left, top], [right, bottom]], float)).round().astype(int)
    inside = np.zeros_like(apart)
    inside[y0 : y1 + 1, x0 : x1 + 1] = True
    assert (apart & inside).sum() >= 12
    assert not (apart & ~inside).any()


@pytest.mark.parametrize(
    "change",
    [
        {"gender": "male"},
        {"tone": "5"},
        {"shade": "deep"},
        {"hair": "curly"},
        {"colour": "blond"},
        {"grey": "white"},
        {"pose": "left"},
        {"pose": "right"},
        *({"measures": {name: 1.0}} for name in traits.MEASURES if name not in ("ears", "garment")),
    ],
    ids=str,
)
def test_every_trait_and_measure_changes_the_head(change: dict) -> None:
    one = {"hair": "bob"}
    assert (np.abs(picture(person(**one)) - picture(person(**{**one, **change}))) > 8).sum() > 20


def test_a_turned_head_looks_that_way() -> None:
    """The dark of the eyes and the mouth moves to the side that the nose points to."""
    middles = []
    for pose in ("left", "frontal", "right"):
        left, right = (at[0] for at in Head(person(pose=pose)).turned([(-10, 0), (10, 0)]))
        middles.append((left + right) / 2)
    assert middles[0] < -3 < middles[1] < 3 < middles[2]


def test_tones_are_in_order_of_lightness() -> None:
    light = [sum(colours(person(tone=t, shade=s))["skin"]) for t, s in product("12345", ("light", "deep"))]
    assert light == sorted(light, reverse=True)
    assert min(before - after for before, after in pairwise(light)) > 10


def test_all_values_of_all_traits_go_together() -> None:
    looks = (hair.BEFORE, ("none", "square"), ("none", "full", "goatee"), ("18-29", "75+"), ("left", "right"))
    for number, (style, glasses, beard, age, pose) in enumerate(product(*looks)):
        gender, ring = ("male", "drop") if number % 2 else ("female", "none")
        one = person(
            gender=gender,
            hair=style,
            glasses=glasses,
            beard=beard,
            age=age,
            pose=pose,
            earrings=ring,
            mouth="open",
        )
        alpha, image = draw(one, Box(0, 0, 40, 40), units(40))
        assert alpha[10:25, 15:25].min() == 1
        assert image[10:25, 15:25].std() > 5


def test_every_label_has_a_colour() -> None:
    assert {*colours(person())} == {*NAMES} - {""}


def test_nothing_is_painted_beyond_the_public_shape() -> None:
    """The head and its rim lie within the shape that is replaced: nothing of them is cut off."""
    side = 200
    beyond, box = ~PROTECTIONS["head"].whole.holds(pixel_grid(side)), Box(0, 0, side, side)
    nothing = np.zeros((side, side, 3), np.uint8), np.ones((side, side), bool)
    for one in people(300):
        alpha, _ = DrawnHead(one).on(ALONE, HeadFrame(side), box, *nothing)
        assert alpha[beyond].sum() <= 4, one


@pytest.mark.parametrize("side", [1, 2, 3, 7, 24, 600, 2000])
def test_heads_of_every_size(side: int) -> None:
    alpha, image = draw(people(1)[0], Box(0, 0, side, side), units(side))
    assert (alpha.shape, image.shape) == ((side, side), (side, side, 3))
    assert 0.15 < alpha.mean() < 0.5 or side < 7
    assert 0 <= alpha.min() <= alpha.max() <= 1


def test_large_heads_are_drawn_in_bands(monkeypatch: pytest.MonkeyPatch) -> None:
    one, box = people(1, seed=8)[0], Box(3, 5, 90, 90)
    whole = draw(one, box, units(100))
    monkeypatch.setattr(drawing, "SAMPLES", 16 * 90 * 7)
    for before, after in zip(whole, draw(one, box, units(100)), strict=True):
        apart = np.abs(before.astype(float) - after) / (1 if before.ndim == 2 else 255)
        assert apart.max() <= 0.3  # of single samples on an edge
        assert apart.mean() < 1e-3


def test_a_turned_place_turns_the_head() -> None:
    """A quarter turn of the place is a quarter turn of the picture, but for rounding."""
    one, side = people(1, seed=5)[0], 101
    upright, _ = draw(one, Box(0, 0, side, side), Similarity(1.0, 0.0, 50.0, 50.0))
    turned, _ = draw(one, Box(0, 0, side, side), Similarity(1.0, np.pi / 2, 50.0, 50.0))
    assert np.abs(np.rot90(upright, -1) - turned).mean() < 0.01


def test_shapes_are_filled_only_where_they_may_be() -> None:
    canvas = Canvas(Box(0, 0, 8, 8), ALONE, 4)
    square = np.array([[1.0, 1], [5, 1], [5, 5], [1, 5]])
    canvas.fill("skin", square)
    canvas.fill("lip", square + 2.0, within=("skin",))
    canvas.fill("hair", square + 100.0, within=("skin",))
    seen = canvas.labels
    assert {*np.unique(seen).tolist()} == {0, NAMES.index("skin"), NAMES.index("lip")}
    assert not (seen[26:] > 0).any()


def test_people_have_no_other_fields_than_tables() -> None:
    assert [each.name for each in fields(traits.Person)][-1] == "measures"
    with pytest.raises(ValueError, match="do not add up to 64"):
        traits._pick({"a": 3}, 63)
