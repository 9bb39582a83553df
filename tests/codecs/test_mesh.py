"""Meshes: two maps that undo each other, exactly, and shapes that never fold."""

from __future__ import annotations

import numpy as np
import pytest

from dpveil.codecs.aam import LEAST, Mesh
from dpveil.errors import InvalidParameter, ModelError

HEIGHT, WIDTH = 30, 36


@pytest.fixture
def mesh():
    angle = np.arange(14) * (2 * np.pi / 14)
    size = np.where(np.arange(14) % 2, 7.0, 12.0)
    rest = np.stack([18 + size * np.cos(angle), 15 + 0.9 * size * np.sin(angle)], axis=1)
    return Mesh.over(rest, HEIGHT, WIDTH)


def shapes(mesh, count, size, seed=1):
    return mesh.rest + np.random.default_rng(seed).normal(0, size, (count, *mesh.rest.shape))


def test_triangles_cover_the_crop_once(mesh):
    mesh.check()
    assert (mesh.areas(mesh.rest[None]) > 0).all()
    corners, parts = mesh.weights(mesh.pixels)
    assert parts.min() > -1e-9
    assert np.allclose(parts.sum(axis=1), 1)
    assert corners.max() < len(mesh.rest) + 16


def test_landmarks_go_to_their_places_and_the_border_stays(mesh):
    some = mesh.sound(shapes(mesh, 5, 1))
    assert np.allclose(mesh.moved(some, mesh.weights(mesh.rest)), some)
    edge = np.array([[-5.9, -5.0], [40.9, 33.9]])  # the corners of the border, 0.15 of the sides away
    assert np.allclose(mesh.moved(some, mesh.weights(edge)), edge, atol=0.1)


@pytest.mark.parametrize("size", [0.5, 2, 8, 100])
def test_both_maps_undo_each_other_at_every_pixel(mesh, size):
    """Where a pixel of a shape's picture comes from, moved forward again, is that pixel: all are covered."""
    for shape in mesh.sound(shapes(mesh, 6, size)):
        sources = mesh._sources(shape)
        back = mesh.moved(shape[None], mesh.weights(sources))[0]
        assert np.allclose(back, mesh.pixels, atol=1e-6)


@pytest.mark.parametrize("size", [0.2, 1, 5, 50, 1e6])
def test_sound_shapes_do_not_fold(mesh, size):
    some = shapes(mesh, 50, size)
    ratio = mesh.areas(mesh.sound(some)) / mesh.areas(mesh.rest[None])
    assert ratio.min() > LEAST - 1e-6
    low, high = mesh.sound(some).min(axis=(0, 1)), mesh.sound(some).max(axis=(0, 1))
    assert (low > [-6, -5.1]).all()
    assert (high < [41, 34.1]).all()


def test_sound_shapes_are_left_alone_and_others_are_moved_no_more_than_needed(mesh):
    small = shapes(mesh, 20, 0.1)
    assert np.allclose(mesh.sound(small), small)
    wild = shapes(mesh, 20, 4)
    wild = wild[mesh.areas(wild).min(axis=1) < 0]
    kept = mesh.sound(wild)
    ratio = (mesh.areas(kept) / mesh.areas(mesh.rest[None])).min(axis=1)
    assert len(wild) > 5
    assert np.allclose(ratio, LEAST, atol=1e-6)  # drawn back until the worst triangle just passes
    turn = (kept - mesh.rest) / (wild - mesh.rest)
    assert np.allclose(turn, turn[:, :1, :1], atol=1e-6)


def test_a_mean_shape_beyond_the_border_is_moved_inside(mesh):
    beyond = mesh.rest.copy()
    beyond[0] = 500, -500
    moved = Mesh.over(beyond, HEIGHT, WIDTH)
    moved.check()
    assert np.array_equal(moved.rest[1:], mesh.rest[1:])
    assert (moved.areas(moved.rest[None]) > 0).all()


def test_few_landmarks_make_no_mesh():
    with pytest.raises(InvalidParameter, match="landmarks = 5 are fewer") as refusal:
        Mesh.over(np.random.default_rng(1).uniform(2, 20, (5, 2)), HEIGHT, WIDTH)
    assert "68" in refusal.value.hint


@pytest.mark.parametrize("change", ["hole", "double", "turned", "unknown", "negative", "none"])
def test_triangles_of_a_file_are_checked(mesh, change):
    triangles = mesh.triangles.copy()
    if change == "hole":
        triangles = triangles[1:]
    elif change == "double":
        triangles = np.concatenate([triangles, triangles[:1]])
    elif change == "turned":
        triangles[3] = triangles[3, ::-1]
    elif change == "unknown":
        triangles[0, 0] = 99
    elif change == "negative":
        triangles[0, 0] = -1
    else:
        triangles = triangles[:0]
    with pytest.raises(ModelError, match="triangles"):
        Mesh(mesh.rest, triangles, HEIGHT, WIDTH).check()
