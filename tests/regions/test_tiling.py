"""The search in tiles: what it covers, what it adds, and what it says that it did not look for."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from skimage import data

import dpveil
from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.errors import RegionError
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil.regions import faces as faces_file
from dpveil.regions.detectors import Detector
from dpveil.regions.detectors.centerface import CenterFace
from dpveil.regions.given_regions import oval_in
from dpveil.regions.growth import grow
from dpveil.regions.tiling import TILE_SIDE, Tiling, has_centre_in, join, pieces, resize_rgb
from dpveil.release.words import not_searched

needs_centerface = pytest.mark.skipif(not CenterFace.is_installed(), reason="needs dpveil install faces")
SIZES = [(3000, 4000), (4000, 3000), (8000, 12000), (500, 20000), (1081, 3000), (2401, 2401)]
NONE = np.zeros((0, 5))


class Marks(Detector):
    """Finds white squares of 24 pixels and more, wherever they are wholly seen."""

    name = "marks"
    threshold = Fraction(3, 10)

    def __init__(self):
        self.shown = []

    @classmethod
    def is_installed(cls):
        return True

    def __call__(self, image, threshold):
        import cv2

        self.shown.append(image.shape[:2])
        count, _, boxes, _ = cv2.connectedComponentsWithStats((image[:, :, 0] > 128).astype(np.uint8))
        seen = [[*map(float, box[:4]), 0.9] for box in boxes[1:count] if min(box[2:4]) >= self.smallest - 1]
        return np.array(seen, float).reshape(-1, 5)


@pytest.fixture
def marks(monkeypatch):
    detector = Marks()
    monkeypatch.setattr(faces_file, "choose", lambda name: detector)
    return detector


def tiling(height, width, smallest=None):
    return Tiling.of(height, width, long_side=1920, seen=24, smallest=smallest)


def corners(faces):
    return sorted((f.box.x, f.box.y, f.box.w, f.box.h) for f in faces)


@pytest.mark.parametrize("smallest", [None, 12, 16, 24])
@pytest.mark.parametrize(("height", "width"), SIZES)
def test_every_face_between_the_two_searches_lies_whole_in_a_tile_that_keeps_it(height, width, smallest):
    """Wherever its centre is, and though its guess is off by a quarter of what tiles have in common."""
    how = tiling(height, width, smallest)
    tiles = list(how.tiles(height, width))
    assert len({size for _, size, _ in tiles}) == 1
    assert max(tiles[0][1]) <= max(TILE_SIDE, 2 * how.overlap * how.scale) + 32
    assert all(part.inside(width, height) for part, _, _ in tiles)
    coarse = 24 * max(1, max(height, width) / 1920)
    spread = [np.random.default_rng(n).integers(0, side, 400) for n, side in enumerate((width, height))]
    middles = np.column_stack(spread)
    start = np.maximum(middles - coarse / 2, 0)
    stop = np.minimum(middles + coarse / 2, [width, height])
    points = np.column_stack([middles, np.zeros((400, 2)), np.ones(400)])
    kept = [
        has_centre_in(points, core)
        & (start >= [part.x, part.y]).all(axis=1)
        & (stop <= [part.x + part.w, part.y + part.h]).all(axis=1)
        for part, _, core in tiles
    ]
    assert np.any(kept, axis=0).all(), middles[~np.any(kept, axis=0)]


def test_small_faces_are_found_in_tiles_and_only_once(marks):
    image = np.zeros((3000, 4000, 1), np.uint8)
    places = [(x, y) for x in range(5, 3900, 97) for y in range(3, 2900, 101)]
    for x, y in places:
        image[y : y + 24, x : x + 24] = 255
    image[2960:2990, 3960:3990] = 255
    found = corners(Faces(margin=0).detect(Photo(image)))
    assert found == sorted([*((x, y, 24, 24) for x, y in places), (3960, 2960, 30, 30)])
    assert corners(Faces(margin=0, smallest=50).detect(Photo(image))) == []
    assert max(max(shape) for shape in marks.shown) == 1920


@needs_centerface
def test_a_face_of_16_pixels_is_found_in_a_photo_as_wide_as_twelve_megapixels_are():
    canvas = np.full((1000, 4000, 3), 90, np.uint8)
    head = data.astronaut()[17:217, 124:324]
    side = round(16 / 111 * 200)  # the astronaut's face has 111 of these 200 pixels
    places = (100, 900), (1030, 540), (3000, 200)
    for x, y in places:
        canvas[y : y + side, x : x + side] = resize_rgb(head, side, side)
    photo = Photo(canvas)
    found = sorted(face.box.x for face in Faces(margin=0).detect(photo))
    assert len(found) == 3
    assert all(0 < x - start < side / 2 for x, (start, _) in zip(found, places, strict=True))
    assert Faces(smallest=50).detect(photo) == []


def test_joining_never_loses_a_pixel_that_was_found():
    """Beyond the tolerance of a tenth, and what the ellipse of a kept box holds."""
    draw = np.random.default_rng(7)
    for _ in range(80):
        rows = np.column_stack(
            [draw.uniform(0, 100, (12, 2)), draw.uniform(5, 60, (12, 2)), np.full(12, 0.5)]
        )
        joined, _ = join(rows[:4], rows[4:])
        spare = 0.1 * joined[:, 2:4]
        low, high = joined[:, :2] - spare, joined[:, :2] + joined[:, 2:4] + spare
        for row in rows:
            covered = (low <= row[:2]).all(axis=1) & (high >= row[:2] + row[2:4]).all(axis=1)
            assert covered.any()
        assert len(join(joined, NONE)[0]) == len(joined)
    assert join(NONE, NONE)[0].shape == (0, 5)


def test_pieces_of_a_face_that_a_tile_cuts_are_no_faces_and_whole_ones_are():
    photo, tile = Photo(np.zeros((4000, 4000, 1), np.uint8)), Box(1000, 1000, 1000, 1000)
    known = np.array([[1400.0, 500, 700, 900, 0.9]])  # reaches beyond the tile above and at the right
    rows = {
        "mouth, cut above": ([1450, 990, 600, 250, 0.8], True),
        "cheek, cut at the right": ([1900, 1050, 120, 300, 0.3], True),
        "a whole face in the corner of the box": ([1410, 1010, 60, 80, 0.5], False),
        "cut below, where the known face ends": ([1500, 1300, 200, 710, 0.5], False),
        "half beside the known face": ([1300, 990, 220, 200, 0.5], False),
        "the known face itself": ([1400, 600, 700, 800, 0.5], False),
        "another, far away": ([990, 1500, 200, 200, 0.5], False),
    }
    found = np.array([row for row, _ in rows.values()], float)
    assert dict(zip(rows, pieces(found, known, tile, photo).tolist(), strict=True)) == {
        name: out for name, (_, out) in rows.items()
    }
    assert not pieces(found, NONE, tile, photo).any()
    edge = Photo(np.zeros((2000, 2000, 1), np.uint8))  # the tile ends where the photo does: nothing is cut
    assert pieces(found, known, tile, edge).tolist() == [True, False, *[False] * 5]


@needs_centerface
@pytest.mark.parametrize("side", [3500, 4000])
def test_a_face_larger_than_a_tile_is_one_face(side):
    """Before, the mouth and a cheek in the next tiles were found as faces of their own."""
    import cv2

    large = cv2.resize(
        data.astronaut()[:300, 60:360], (side * 300 // 512,) * 2, interpolation=cv2.INTER_CUBIC
    )
    canvas = np.full((side, side, 3), 90, np.uint8)
    canvas[: len(large), side * 60 // 512 :][:, : len(large)] = large
    assert len(Faces().detect(Photo(canvas))) == 1


def test_neighbours_stay_two_faces_and_a_face_inside_another_is_one():
    big = np.array([[0.0, 0, 100, 100, 0.5]])
    assert len(join(big, np.array([[40.0, 40, 20, 20, 0.9]]))[0]) == 1  # in the ellipse: replaced anyway
    assert len(join(big, np.array([[0.0, 0, 20, 20, 0.9]]))[0]) == 2  # in the corner, which heads leave
    assert len(join(big, np.array([[60.0, 0, 100, 100, 0.9]]))[0]) == 2
    assert (join(big, np.array([[5.0, 5, 95, 95, 0.9]]))[0] == big).all()  # and keeps its score


def test_every_plan_and_release_says_what_was_not_looked_for(marks):
    image = np.zeros((400, 600, 3), np.uint8)
    image[50:90, 50:90] = 255
    settings = {"method": "dp-pix", "epsilon": 20, "block": 16, "neighbourhood": 16}
    assert dpveil.plan(image, regions=Faces(), **settings).smallest == {"face": 24}
    assert dpveil.plan(image, regions=Faces(min_face=30), **settings).smallest == {"face": 30}
    assert dpveil.plan(image, regions="1,2,30,40", **settings).smallest == {}
    release = dpveil.obfuscate(image, regions=Faces(smallest=16), bits=SeededBits(1), **settings)
    said = not_searched("face", 16)
    assert said in release.notes
    assert said not in release.certificate.to_text()
    assert release.certificate.request == ("faces detector=marks smallest=16",)


def test_of_a_kept_face_at_a_region_s_core_the_oval_stays() -> None:
    """The corner of its box goes with the core, and no pixel of the oval does."""
    kept = Region(Box(40, 40, 30, 40), oval_in(Box(40, 40, 30, 40)))
    whole = Region(Box(0, 0, 60, 60), kept=(kept,), core=Region(Box(10, 10, 31, 31)))
    grown = grow(whole, Photo(np.zeros((100, 100), np.uint8)))
    assert grown.touches(Box(40, 40, 1, 1))
    assert not grown.meets(kept)
    blocks = grow(replace(whole, core=Region(Box(10, 10, 20, 20))), Photo(np.zeros((100, 100), np.uint8)))
    assert not blocks.touches(kept.box)
    with pytest.raises(RegionError):
        grow(replace(whole, core=Region(Box(10, 10, 45, 45))), Photo(np.zeros((100, 100), np.uint8)))
