"""Every attack on made people: the interface, what each reads, and what each must find."""

from __future__ import annotations

from dataclasses import is_dataclass, replace

import numpy as np
import pytest
from crowd import sides, view
from scipy.stats import binom

from dpveil.attacks.base import PIXELS, SEES, Background
from dpveil.attacks.combined import attack, missing
from dpveil.attacks.measures import identification
from dpveil.core.registry import ATTACKS
from dpveil.errors import InvalidParameter
from dpveil.mechanisms.pixel import DPSVD, Blur, DPPix, Fill, Mosaic

LIGHT = ("pixels", "eigenfaces", "shown", "subspaces", "restored")
ALL = tuple(ATTACKS.rows)


def made(label):
    """Return an attack, or skip where what it needs is not installed."""
    one = attack(label)
    if missing(one):
        pytest.skip(f"{label} needs {', '.join(missing(one))}, which is not installed")
    return one


def rate(label, method, **settings):
    background, shown, people = sides(method, **settings)
    return identification(made(label).fit(background).score(shown), people)


@pytest.mark.parametrize("name", ALL)
def test_every_attack_keeps_the_interface(name):
    one = made(name)
    assert is_dataclass(one)
    assert type(one).name == name
    assert type(one)() == one
    assert one.summary
    assert set(one.reads) <= set(type(one).sees) <= set(SEES)
    background, shown, _ = sides(Mosaic(block=8), people=3, known=3, probes=1)
    scores = one.fit(background).score(shown)
    assert scores.names == ("p00", "p01", "p02")
    assert scores.likeness.shape == (3, 3)
    assert np.array_equal(
        scores.likeness, one.fit(background).score(shown).likeness, equal_nan=True
    )  # the same background gives the same attacker
    with pytest.raises(InvalidParameter, match="fewer than two people"):
        one.fit(replace(background, people=("p00",) * 9))


@pytest.mark.parametrize("name", LIGHT)
@pytest.mark.parametrize("method", [None, Blur(sigma=3), DPSVD(epsilon=1, rank=4)], ids=str)
def test_pictures_that_show_people_name_them(name, method):
    assert rate(name, method).value >= 0.75


@pytest.mark.parametrize("name", LIGHT)
def test_what_shows_nothing_names_nobody(name):
    """Releases say nothing of people: of 160 guesses among 8, over 60 are right with probability < 1e-9."""
    found = rate(name, DPPix(epsilon=1, block=8), probes=20)
    assert found.value * 160 <= 60
    assert binom.sf(60, 160, 1 / 8) < 1e-9
    assert found.chance == 1 / 8
    assert rate(name, Fill()).value <= 0.5


@pytest.mark.parametrize("name", ["pixels", "eigenfaces", "shown", "subspaces", "restored", "network"])
def test_attacks_of_pixels_see_nothing_around_a_region(name):
    """The guarantee bounds them, so nothing that was not replaced may change what they say."""
    background, shown, _ = sides(None, people=3, known=3, probes=1)
    mask = np.zeros(shown[0].hidden.shape, bool)
    mask[10:40, 8:38] = True
    mask[10:16, 8:20] = False  # a region is no box
    one, scores = made(name), []
    one = replace(one, epochs=1) if hasattr(one, "epochs") else one
    assert one.reads == (PIXELS,)
    for level in (0, 255):
        changed = [_around(each, mask, level) for each in (*background.released, *shown)]
        clean = tuple(
            replace(_around(each, mask, level), hidden=np.zeros_like(mask)) for each in background.clean
        )
        own = Background(clean, tuple(changed[:9]), background.people)
        scores.append(one.fit(own).score(changed[9:]).likeness)
    assert np.array_equal(*scores)


def _around(each, mask, level):
    image = each.image.copy()
    image[~mask] = level
    return replace(each, image=image, hidden=mask)


@pytest.mark.parametrize("name", ["context", "placement"])
def test_attacks_of_the_rest_see_nothing_in_a_region(name):
    background, shown, _ = sides(None, people=3, known=3, probes=1)
    mask = np.zeros(shown[0].hidden.shape, bool)
    mask[10:40, 8:38] = True
    mask[10:16, 8:20] = False  # a region is no box
    scores = []
    for level in (0, 255):
        views = [replace(one, image=np.where(mask[..., None], np.uint8(level), one.image), hidden=mask)
                 for one in (*background.released, *shown)]  # fmt: skip
        own = replace(background, released=tuple(views[:9]))
        scores.append(made(name).fit(own).score(views[9:]).likeness)
    assert np.array_equal(*scores)


def test_the_context_names_people_whose_faces_are_hidden():
    def at_home(person, photo):
        image = np.full((60, 60, 3), np.random.default_rng(person).integers(0, 255, 3), np.uint8)
        image[::4] = np.random.default_rng((person, photo)).integers(0, 255, 3)
        return image

    background, shown, people = sides(None, make=at_home)
    mask = np.zeros((60, 60), bool)
    mask[10:50, 10:50] = True
    background = replace(background, released=tuple(replace(one, hidden=mask) for one in background.released))
    shown = [replace(one, hidden=mask) for one in shown]
    for label, least in (("context", 0.75), ("context:thumbnail", 0.75), ("context:colours", 0.5)):
        assert identification(attack(label).fit(background).score(shown), people).value >= least
    everything = [replace(one, hidden=np.ones((60, 60), bool)) for one in (*background.released, *shown)]
    hidden = replace(background, released=tuple(everything[:32]))
    assert identification(attack("context").fit(hidden).score(everything[32:]), people).value == 1 / 8
    with pytest.raises(InvalidParameter, match="no part of the context"):
        attack("context:smell")


def _placed(person, photo, *, cell):
    """Return a view whose region lies where the person likes it, or whose certificate says so."""
    x, y = (4 * person, 2) if not cell else (8, 8)
    mask = np.zeros((60, 60), bool)
    mask[y + photo % 2 : y + 20, x : x + 20] = True
    region = {"box": [x, y, 20, 20], "origin": {"cell": [person, 0, photo % 2, 0, 0]} if cell else {}}
    return view(np.zeros((60, 60, 1), np.uint8), mask, certificate={"regions": [region]})


@pytest.mark.parametrize("cell", [False, True], ids=["box", "cell"])
def test_the_placement_names_people_who_stand_in_one_place(cell):
    views = [_placed(person, photo, cell=cell) for person in range(8) for photo in range(6)]
    people = [f"p{person}" for person in range(8) for _ in range(6)]
    known = [row for row in range(48) if row % 6 < 4]
    probes = [row for row in range(48) if row % 6 >= 4]
    own = tuple(views[row] for row in known)
    background = Background(own, own, tuple(people[row] for row in known))
    scores = attack("placement").fit(background).score([views[row] for row in probes])
    assert identification(scores, [people[row] for row in probes]).value == 1.0
    nowhere = attack("placement").fit(background).score([view(views[0].image, hidden=False)])
    assert np.isnan(nowhere.likeness).all()


# Names by text that is read, and by colours and gradients.
