"""Faces that are excepted: their pixels stay, what reaches over them is cut, and certificates say so."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import product

import numpy as np
import pytest

import dpveil
from dpveil.core.photo import Grid, Photo
from dpveil.core.region import Box, Region
from dpveil.errors import RegionError
from dpveil.faces import Attributes
from dpveil.mechanisms.pixel import DPPix
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil.regions import faces as faces_file
from dpveil.regions.boxes import box_around, box_within
from dpveil.regions.detectors import Detector
from dpveil.regions.tiling import grow, grown_mask, reach
from dpveil.release.crowd import NO_OTHER_FACE
from dpveil.release.words import MASKED

SPENDING = {"method": "dp-pix", "epsilon": 20, "block": 4, "neighbourhood": 16}
PIXELS = DPPix(epsilon=20, block=4, neighbourhood=16)
HEADS = Attributes(attributes="none", protect="head", placing="box")
GRIDS = [None, Grid(8, 8), Grid(16, 16), Grid(16, 8, x0=3, y0=5)]
CROWD = [[40 * c + 10.0, 40 * r + 10.0, 20.0, 20.0, 0.9] for r in range(3) for c in range(4)]
"""Four by three faces of 20 pixels; with a margin of 2, each reaches over all its neighbours."""


class Given(Detector):
    """Returns the faces that it holds."""

    name = "given"
    threshold = Fraction(3, 10)
    rows: list[list[float]] = CROWD

    @classmethod
    def installed(cls):
        return True

    def __call__(self, image, threshold):
        return np.array(self.rows, float)


@pytest.fixture
def given(monkeypatch):
    detector = Given()
    monkeypatch.setattr(faces_file, "choose", lambda name, model: detector)
    return detector


def picture(height=130, width=180):
    return np.random.default_rng(3).integers(0, 256, (height, width, 3)).astype(np.uint8)


def of_face(number):
    x, y, w, h, _ = map(int, CROWD[number - 1])
    return Box(x, y, w, h)


def test_in_a_crowd_a_kept_face_stays_bit_for_bit_and_all_others_go(given, tmp_path):
    image = picture()
    asked = Faces(exclude=(6, 7), margin=2)
    release = dpveil.obfuscate(image, regions=asked, bits=SeededBits(1), **SPENDING)
    for number in range(1, 13):
        where = of_face(number).slices
        same = (release.image[where] == image[where]).all(axis=2)
        assert same.all() if number in (6, 7) else same.mean() < 0.1
    cut = [r for r in release.certificate.regions if r.masked is not None]
    assert len(cut) == 10
    assert MASKED in release.certificate.guarantees[0].scope.in_the_clear
    assert NO_OTHER_FACE in release.certificate.guarantees[0].scope.in_the_clear
    assert f"of which {cut[0].masked:,} are replaced" in release.certificate.guarantees[0].scope.covers
    release.save(tmp_path / "out.png")
    assert dpveil.verify(tmp_path / "out.png").status == "consistent"


@pytest.mark.parametrize("grid", GRIDS, ids=str)
def test_nothing_that_is_covered_leaves_traces_in_what_is_kept(grid):
    """After growth nothing of the kept box is covered, and before it every pixel that could be is."""
    photo = Photo(picture(90, 100), grid)
    for x, y, w, h in ((40, 30, 20, 20), (0, 0, 9, 9), (91, 80, 9, 10), (37, 41, 1, 1)):
        kept = Box(x, y, w, h)
        whole = Region(Box(2, 1, 96, 88), kept=(Region(kept),))
        grown = grow(whole, photo)
        assert not grown.touches(kept)
        assert grown.mask is not None
        zone = reach(kept, grid)
        for py in range(0, 90, 3):
            for px in range(0, 100, 3):
                dot = grow(Region(Box(px, py, 1, 1)), photo)
                assert zone.overlaps(Box(px, py, 1, 1)) == dot.touches(kept)


@pytest.mark.parametrize("grid", GRIDS[1:], ids=str)
def test_a_cut_region_still_covers_all_the_blocks_that_its_pixels_touch(grid):
    photo = Photo(picture(90, 100), grid)
    kept = Box(40, 30, 20, 20)
    start = Box(10, 10, 70, 70)
    bare = np.ones((70, 70), bool)
    zone = reach(kept, grid)
    bare[max(0, zone.y - 10) : zone.y + zone.h - 10, max(0, zone.x - 10) : zone.x + zone.w - 10] = False
    grown = grow(Region(start, kept=(Region(kept),)), photo)
    assert grown.mask is not None
    assert (grown.mask == grown_mask(bare, start, grown.box, grid)).all()
    assert grown.origin.grown_to == "JPEG"


def test_a_face_that_would_have_to_be_cut_itself_is_refused(given):
    given.rows = [[10, 10, 20, 20, 0.9], [28, 12, 20, 20, 0.8]]
    for choice in ((1,), (2,)):
        with pytest.raises(RegionError, match="reaches into it"):
            dpveil.plan(picture(), regions=Faces(exclude=choice), **SPENDING)
    given.rows = [[10, 10, 20, 20, 0.9], [31, 12, 20, 20, 0.8]]
    dpveil.plan(picture(), regions=Faces(exclude=(1,)), **SPENDING)
    with pytest.raises(RegionError, match="reaches into it"):  # in one block of the JPEG
        dpveil.plan(Photo(picture(), Grid(16, 16)), regions=Faces(exclude=(1,)), **SPENDING)


@pytest.mark.parametrize("other", ["whole", "60,60,20,20", "mask"])
def test_other_regions_over_a_kept_face_are_refused(given, other):
    image = picture()
    if other == "mask":
        other = np.zeros(image.shape[:2], bool)
        other[60:70, 60:70] = True
    with pytest.raises(RegionError, match="reaches over a face that stays"):
        dpveil.plan(image, regions=[Faces(exclude=(6,)), other], **SPENDING)


def test_only_faces_with_exceptions_may_be_cut(given, tmp_path):
    image = picture()
    release = dpveil.obfuscate(image, regions=Faces(exclude=(6,), margin=2), bits=SeededBits(1), **SPENDING)
    (request,) = release.certificate.request
    plain = request.removesuffix(" except=6")
    masked = [record for record in release.certificate.regions if record.masked is not None]
    forged = [replace(r, origin=replace(r.origin, finder=plain)) for r in masked]
    keep = [release.certificate.regions.index(r) for r in masked]
    certificate = replace(
        release.certificate,
        request=(plain,),
        regions=tuple(forged),
        guarantees=tuple(release.certificate.guarantees[n] for n in keep),
    )
    replace(release, certificate=certificate).save(tmp_path / "forged.png")
    problems = dpveil.verify(tmp_path / "forged.png").problems
    assert "faces were requested, and no protected region is one" in problems


def outcomes(given, method, shown, scenes):
    """Return, by what is `shown` of a hidden face that moves beside a kept one, whether it was released, and
    whether its detected box touches that of the kept one.
    """
    rng, found = np.random.default_rng(7), {}
    finder = method.accepts([Faces(exclude=(1,))])[0]
    for scene in range(scenes):
        row = [rng.uniform(36, 52), 44.0, *rng.uniform(19, 23, 2), 0.8]
        given.rows = [[10, 40, 32, 32, 0.9], row]
        photo = Photo(picture(), Grid(8, 8) if scene % 2 else None)
        meet = box_around(row, photo, Fraction(0)).overlaps(reach(Box(10, 40, 32, 32), photo.grid))
        asked = finder(photo) if method.order is None else finder.in_order(photo, method.order)
        try:
            released = bool(method.place(photo, asked).regions)
        except RegionError as error:
            released = "face 1 stays, and face 2 is so near" not in str(error)
        bare = replace(asked[0], kept=())
        told = (photo.grid, shown(method.place(photo, [bare]).regions[0].record))
        found.setdefault(told, []).append((released, meet))
    return found


@pytest.mark.parametrize(
    ("method", "shown", "scenes"),
    [(PIXELS, lambda record: str(record.box), 160), (HEADS, lambda record: record.origin.cell, 60)],
    ids=["pixels", "heads"],
)
def test_a_refusal_beside_a_kept_face_tells_nothing_that_a_release_does_not(given, method, shown, scenes):
    """Photos of which releases show the same are all released or all refused."""
    found = outcomes(given, method, shown, scenes)
    assert {frozenset(released for released, _ in each) for each in found.values()} == {
        frozenset([True]),
        frozenset([False]),
    }
    both = [each for each in found.values() if len({meet for _, meet in each}) == 2]
    assert both, "the boxes themselves would tell photos apart that a release does not"


def test_the_part_that_is_not_cut_holds_the_detected_box(given):
    """Else a face would be cut itself where the pixels of a kept one stay."""
    rng = np.random.default_rng(5)
    for grid, margin in product(GRIDS, (Fraction(0), Fraction(3, 10), Fraction(2))):
        photo = Photo(picture(90, 100), grid)
        for _ in range(60):
            size = rng.uniform(1, 60, 2)
            row = [*rng.uniform(1 - size, (99, 89)), *size]
            whole, bare = box_around(row, photo, margin), box_around(row, photo, Fraction(0))
            assert _holds(box_within(whole, margin, photo), bare)
    assert box_within(Box(20, 20, 52, 52), Fraction(3, 10), Photo(picture())).w <= 36


def _holds(outer, inner):
    return (
        inner.x >= outer.x
        and inner.y >= outer.y
        and Box(inner.x - outer.x, inner.y - outer.y, inner.w, inner.h).inside(outer.w, outer.h)
    )
