"""Interpolation between shown pixels: reads no other pixel, covers every one once, and is linear."""

import numpy as np
import pytest
from scipy.interpolate import LinearNDInterpolator
from scipy.spatial import Delaunay

from dpveil.mechanisms.pixel import interpolation as module
from dpveil.mechanisms.pixel import triangles as triangle_loops
from dpveil.mechanisms.pixel.interpolation import interpolate
from dpveil.noise import backend

unsafe = np.random.default_rng(5)


def some(shape, share, seed=0):
    return np.random.default_rng(seed).random(shape) < share


def written_by(triangles, nearest, size):
    """The pixels that are written, once for each time."""
    written = []

    class Recorder:
        shape = (*size, 1)

        def __getitem__(self, place):
            return 0

        def __setitem__(self, place, level):
            written.append(place[0] * size[1] + place[1])

    room = np.empty((2, 3), np.int64), np.empty((3, 1))
    triangle_loops.paint(Recorder(), triangles, nearest, 0, size[0], 0, size[1], *room)
    return written


@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 0.97, "row", "diagonal"])
def test_triangles_own_every_pixel_exactly_once(share):
    for seed in range(60):
        height, width = np.random.default_rng(seed).integers(1, 24, 2)
        shown = np.zeros((height, width), bool)
        if share == "row":
            shown[seed % height] = some(width, 0.5, seed)
        elif share == "diagonal":
            shown[range(min(height, width)), range(min(height, width))] = True
        else:
            shown = some((height, width), share, seed)
        if not shown.any():
            shown[seed % height, seed % width] = True
        points, size = np.argwhere(shown), (int(height), int(width))
        triangles, nearest = module._triangles(points, size), module._nearest(points, size)
        written = written_by(triangles, nearest, size)
        assert sorted(written) == list(range(height * width))


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("shape", [(1, 1), (1, 9), (9, 1), (2, 2), (13, 7), (40, 60)])
def test_hidden_pixels_are_not_read(shape, channels):
    for share in (0, 0.05, 0.3, 1):
        shown = some(shape, share)
        one, other = unsafe.integers(0, 256, (2, *shape, channels), dtype=np.uint8)
        other[shown] = one[shown]
        first = interpolate(one, shown)
        assert np.array_equal(first, interpolate(other, shown))
        assert np.array_equal(first[shown], one[shown])
        assert first.shape == one.shape
        assert first.dtype == np.uint8


def test_none_one_and_two_pixels():
    image = np.full((5, 6, 1), 10, np.uint8)
    image[4, 5] = 50
    shown = np.zeros((5, 6), bool)
    assert (interpolate(image, shown) == 127).all()
    shown[2, 2] = True
    assert (interpolate(image, shown) == 10).all()
    shown[4, 5] = True
    out = interpolate(image, shown)
    assert (out[2, 2], out[4, 5]) == (10, 50)
    assert ((out >= 10) & (out <= 50)).all()


def test_a_line_of_pixels_is_interpolated_along_it():
    image = np.array([[[0], [9], [9], [9], [200], [9], [9], [9], [100]]], np.uint8)
    shown = np.zeros((1, 9), bool)
    shown[0, [0, 4, 8]] = True
    assert interpolate(image, shown).ravel().tolist() == [0, 50, 100, 150, 200, 175, 150, 125, 100]


def test_a_plane_comes_back_within_the_points():
    y, x = np.mgrid[:50, :70]
    plane = (20 + 2 * x + y)[:, :, None].astype(np.uint8)
    shown = some((50, 70), 0.05)
    shown[[0, 0, -1, -1], [0, -1, 0, -1]] = True
    out = interpolate(plane, shown).astype(int)
    inner = np.abs(out - plane)[10:40, 10:60]
    assert inner.max() <= 1


def test_it_agrees_with_scipy_away_from_the_edge():
    """Four points on a circle have two triangulations, so a few pixels may differ."""
    y, x = np.mgrid[:120, :90]
    image = (127 + 90 * np.sin(y / 9) * np.cos(x / 11)).astype(np.uint8)[:, :, None]
    shown = some((120, 90), 0.08)
    peer = LinearNDInterpolator(np.argwhere(shown), image[shown][:, 0].astype(float))(y, x)
    gap = np.abs(interpolate(image, shown)[:, :, 0] - peer)[15:-15, 15:-15]
    assert np.nanquantile(gap, 0.95) <= 0.51
    assert np.nanmean(gap) < 0.5


def test_parts_of_a_large_picture_fit_together(monkeypatch):
    y, x = np.mgrid[:90, :120]
    image = (127 + 90 * np.sin(y / 30) * np.cos(x / 25))[:, :, None].astype(np.uint8)
    shown = some((90, 120), 0.2)
    whole = interpolate(image, shown).astype(int)
    monkeypatch.setattr(module, "MOST_POINTS", 300)
    windows = list(module._windows(shown, module.Window(0, 0, 90, 120), 300))
    assert len(windows) > 6
    covered = np.zeros((90, 120), int)
    for window in windows:
        covered[window.pixels] += 1
        assert shown[window.pixels].sum() <= 300
    assert (covered == 1).all()
    apart = np.abs(interpolate(image, shown) - whole)
    assert (apart == 0).mean() > 0.97
    assert apart.max() <= 12


def test_pieces_that_are_all_shown_or_in_one_row_are_halved(monkeypatch):
    monkeypatch.setattr(module, "MOST_POINTS", 10)
    image = unsafe.integers(0, 256, (7, 50, 3), dtype=np.uint8)
    assert np.array_equal(interpolate(image, np.ones((7, 50), bool)), image)
    row = np.zeros((7, 50), bool)
    row[3] = True
    assert np.array_equal(interpolate(image, row)[3], image[3])


@pytest.mark.parametrize("channels", [1, 3])
def test_compiled_and_plain_paint_the_same_picture(channels, monkeypatch):
    backend.compile_now()
    for seed in range(8):
        height, width = np.random.default_rng(seed).integers(1, 40, 2)
        image = unsafe.integers(0, 256, (height, width, channels), dtype=np.uint8)
        shown = some((height, width), (0.01, 0.1, 0.4, 0.9)[seed % 4], seed)
        monkeypatch.setattr(module, "FEWEST_POINTS", (20, 500)[seed % 2])
        monkeypatch.setattr(backend._State, "plain", False)
        compiled = interpolate(image, shown)
        monkeypatch.setattr(backend._State, "plain", True)
        assert np.array_equal(interpolate(image, shown), compiled)


@pytest.mark.parametrize("plain", [True, False])
def test_a_picture_of_many_parts_reads_shown_pixels_only(plain, monkeypatch):
    """Parts are painted side by side in the array from which levels are read."""
    backend.compile_now()
    monkeypatch.setattr(backend._State, "plain", plain)
    monkeypatch.setattr(module, "FEWEST_POINTS", 30)
    shown = some((80, 90), 0.3)
    one, other = unsafe.integers(0, 256, (2, 80, 90, 3), dtype=np.uint8)
    other[shown] = one[shown]
    first = interpolate(one, shown)
    assert np.array_equal(first, interpolate(other, shown))
    assert np.array_equal(first[shown], one[shown])


@pytest.mark.parametrize("channels", [1, 3])
@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_pixels_amid_their_own_level_take_no_part_in_other_triangles(share: float, channels: int):
    """All that they share a triangle with has their level."""
    rows, columns = np.mgrid[:70, :90]
    image = np.repeat(((rows + columns > 80) * np.uint8(90))[:, :, None], channels, axis=2)
    image[40:44, 20:60, channels - 1] = 30
    shown = some((70, 90), share)
    kept = module.needed_pixels(image, shown)
    assert not (kept & ~shown).any()
    assert kept.sum() < (1 if share == 0.1 else 0.7) * shown.sum()
    assert all_amid_their_level(image, shown, kept)


def all_amid_their_level(image, shown, kept) -> bool:
    levels = image[shown]
    starts, ends = Delaunay(np.argwhere(shown)).vertex_neighbor_vertices
    dropped = np.flatnonzero(~kept[shown])
    assert len(dropped)
    return all((levels[ends[starts[i] : starts[i + 1]]] == levels[i]).all() for i in dropped)


def test_pixels_without_others_around_in_their_part_stay_there():
    """One white pixel at the end of a part sees black ones far away, as those between lie beyond the end."""
    shown = np.zeros((60, 90), bool)
    shown[::5, ::5] = shown[22, 44] = True
    image = np.zeros((60, 90, 1), np.uint8)
    image[:, 44] = 255
    kept, part = module.needed_pixels(image, shown), np.s_[:, :45]
    assert all_amid_their_level(image, shown, kept)
    assert not all_amid_their_level(image[part], shown[part], kept[part])
    assert all_amid_their_level(image[part], shown[part], module.with_outermost(kept[part], shown[part]))
