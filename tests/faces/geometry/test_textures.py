"""Textures behind a painted head: the photo's own, of the right class, and without anything hidden."""

import numpy as np
import pytest

from dpveil.faces import patches
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
