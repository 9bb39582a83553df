"""Textures behind a painted head: the photo's own, of the right class, and without anything hidden."""

import numpy as np
import pytest

from dpveil.faces import patches
from dpveil.faces.geometry.hair import natural
from dpveil.faces.geometry.head_frame import HEAD, pixel_grid
from dpveil.faces.geometry.layout import BACKGROUND, CLOTHES, SKIN
from dpveil.faces.geometry.textures import textures
from dpveil.noise.backend import LOAD_COST, loops

SIDE = 96
GRID = pixel_grid(SIDE)
FAR = HEAD.far(GRID)
ON_IT = FAR < 1.0
LOW = (GRID[..., 1] > 0.72) & ~ON_IT
KNOWN = FAR > 1.5
MADE = ~KNOWN & ~ON_IT & (FAR > 1.1)
Y, X = np.indices((SIDE, SIDE))


def layout() -> np.ndarray:
    shares = np.zeros((4, SIDE, SIDE), np.float32)
    shares[SKIN], shares[CLOTHES] = ON_IT, LOW
    shares[BACKGROUND] = ~ON_IT & ~LOW
    return shares


def photo() -> np.ndarray:
    """Return green and dark stripes behind a head, and blue and dark checks below it."""
    light = np.full((SIDE, SIDE, 3), 60, np.float32)
    light[..., 1] += 120 * (X // 3 % 2)
    light[LOW] = 40
    light[LOW, 2] += (160 * ((X // 3 + Y // 3) % 2))[LOW]
    return light


def painted() -> np.ndarray:
    """Return what a network makes of it: the mean colour of each class, and a face."""
    light, out = photo(), np.full((SIDE, SIDE, 3), 170, np.float32)
    for part in (LOW, ~LOW & ~ON_IT):
        out[part] = light[part].mean(axis=0)
    return out


def test_stripes_and_checks_go_on_up_to_the_head() -> None:
    made = textures(painted(), photo(), KNOWN, layout())
    assert made is not None
    out = made.over(painted())
    above = MADE & ~LOW & (GRID[..., 1] < 0.65)
    right = np.abs(out - photo()).max(axis=2) < 30
    assert right[above].mean() > 0.8, "stripes go on in their places: the mean colour would be 60 levels off"
    assert out[MADE & LOW, 2].std() > 40, "clothes have their pattern"
    assert out[above, 2].max() < 90, "no blue of clothes is in the background"
    assert out[MADE & (GRID[..., 1] > 0.78), 1].max() < 90, "no green of the background is in clothes"


def test_a_head_stays_as_it_was_painted() -> None:
    made = textures(painted(), photo(), KNOWN, layout())
    assert made is not None
    assert (made.over(painted())[FAR < 0.85] == 170).all()
    assert (made.alpha[KNOWN] == 0).all()
    assert (made.alpha[MADE] > 0.5).mean() > 0.9


def test_nothing_hidden_is_in_them() -> None:
    made = textures(painted(), photo(), KNOWN, layout())
    other = np.where(KNOWN[..., None], photo(), np.float32(255))
    again = textures(painted(), other, KNOWN, layout())
    assert made is not None
    assert again is not None
    assert np.array_equal(made.levels, again.levels)
    assert np.array_equal(made.sources, again.sources)
    y, x = made.sources[made.sources[..., 0] >= 0].T
    reach = patches.REACH
    for row in range(-reach, reach + 1):
        for column in range(-reach, reach + 1):
            assert KNOWN[y + row, x + column].all(), "patches that are copied are wholly known"


def test_a_collar_unlike_anything_seen_stays() -> None:
    collar = LOW & MADE & (np.abs(GRID[..., 0] - 0.5) < 0.12)
    given = painted()
    given[collar] = 250
    made = textures(given, photo(), KNOWN, layout())
    assert made is not None
    middle = collar & (np.abs(GRID[..., 0] - 0.5) < 0.05) & (GRID[..., 1] > 0.76) & (FAR < 1.4)
    assert np.count_nonzero(middle) > 20
    assert made.over(given)[middle].min() > 200


def test_neighbours_are_copied_from_neighbours() -> None:
    """Else a texture is a dust of single pixels: of sources that are drawn alone, 5 % are so."""
    noise = (np.random.default_rng(0).random((SIDE, SIDE, 3)) * 200).astype(np.float32)
    made = textures(painted(), noise, KNOWN, layout())
    assert made is not None
    offsets = made.sources - np.stack([Y, X], axis=2)
    there = (made.sources[:, 1:, 0] >= 0) & (made.sources[:, :-1, 0] >= 0)
    assert (offsets[:, 1:] == offsets[:, :-1]).all(axis=2)[there].mean() > 0.2


@pytest.mark.parametrize("known", [FAR > 9, FAR > 2.4, FAR > 2.1], ids=["nothing", "corners", "48 patches"])
def test_without_enough_of_the_photo_there_are_none(known: np.ndarray) -> None:
    assert textures(painted(), photo(), known, layout()) is None


def test_compiled_loops_give_what_the_same_loops_give_in_python() -> None:
    rng = np.random.default_rng(0)
    side, reach = 20, patches.REACH
    wide = side + 2 * reach
    picture = rng.integers(0, 256, (wide, 3 * wide)).astype(np.int32)
    weights = np.repeat(np.where(rng.random((wide, wide)) < 0.5, 5, 2), 3, axis=1).astype(np.int32)
    sources = np.zeros((side, side), np.int64)
    sources[reach:9, reach:-reach], sources[11:-reach, reach:-reach] = 1, 2
    targets = np.argwhere(np.ones((side, side), np.bool_))
    begun = np.where(targets[:, :1] < 10, (4, 5), (13, 6)).reshape(side, side, 2).astype(np.int64)
    shares, guide = rng.random((side, side)) / 100, rng.random((side, side, 3), np.float32) * 50
    outcomes = []
    for ways in (loops((patches,), LOAD_COST + 1), patches):
        own, off, votes = begun.copy(), np.zeros((side, side)), np.zeros((wide, wide, 4))
        ways.search(picture, weights, shares, guide, 0.1, sources, targets, own, off, 2, 10)
        ways.vote(picture, targets, own, np.ones((side, side)), np.eye(2 * reach + 1), votes)
        outcomes.append((own, off, votes))
    (found, apart, votes), (again, *others) = outcomes
    assert np.array_equal(found, again)
    assert (found != begun).any()
    assert np.allclose(apart, others[0], rtol=1e-6)
    assert np.allclose(votes, others[1])
    assert (sources[found[..., 0], found[..., 1]] == np.where(np.arange(side) < 10, 1, 2)[:, None]).all()


def test_hair_has_no_colour_that_hair_has_not() -> None:
    levels = np.full((4, 4, 3), (180, 20, 40), np.float32)
    levels[2:] = (60, 120, 200)
    hair = np.zeros((4, 4), np.float32)
    hair[:, :2] = 1
    out = natural(levels, hair)
    assert (out[:, 2:] == levels[:, 2:]).all(), "what is no hair stays"
    red, blue = out[0, 0], out[2, 0]
    assert (red[1:] > (90, 40)).all()
    assert (blue[1:] < (65, 75)).all()
    brown = np.full((4, 4, 3), (120, 90, 60), np.float32)
    assert (natural(brown, hair) == brown).all()
