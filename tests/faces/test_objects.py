"""Boxes around objects beside faces: they are filled, cost nothing, and nothing else reads their pixels."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from facespace_made import astronaut
from PIL import Image

import dpveil
from dpveil import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter
from dpveil.faces.objects_beside_faces import GREY_FILL, MixedPlacement
from dpveil.noise.bits import SeededBits
from dpveil.regions import parse
from region_search import find

pytest.importorskip("dlib")
PLATE = Box(20, 400, 60, 40)
NEAR = Box(170, 60, 110, 140)
"""Most of the face of the astronaut."""
BESIDE = Box(143, 225, 165, 20)
"""Below that face, and in part of what is replaced."""
DRAWN: dict[str, Any] = {"protect": "head", "attributes": "tone=2"}


@pytest.fixture(scope="module")
def photo() -> Photo:
    return Photo(astronaut())


def test_an_object_beside_a_face_is_grey_and_the_face_stays_the_same(photo: Photo) -> None:
    regions = [f"object:{PLATE}", "faces"]
    plan = dpveil.plan(photo, "attributes", regions=regions, **DRAWN)
    assert [str(each) for each in plan.guarantees] == ["0-DP, any-image", "2-DP, any-image"]
    assert str(plan.total) == "2-DP, any-image"
    assert [region.origin.kind for region in plan.regions] == ["object", "face"]
    assert plan.guarantees[0].scope.covers == "object: 60×40 pixels at 20,400, 3 channels"
    assert "position and size of the region" in plan.in_the_clear
    release = plan.release(bits=SeededBits(3))
    assert (release.image[PLATE.slices] == GREY_FILL.level).all()
    alone = dpveil.obfuscate(photo, "attributes", regions="faces", bits=SeededBits(3), **DRAWN)
    rest = np.ones(photo.image.shape[:2], bool)
    rest[PLATE.slices] = False
    assert (release.image[rest] == alone.image[rest]).all()
    assert (alone.image[PLATE.slices] == photo.image[PLATE.slices]).all()


@pytest.mark.parametrize("box", [PLATE, BESIDE])
def test_no_pixel_of_an_object_is_read_for_a_face(photo: Photo, box: Box) -> None:
    """With the places fixed, no change of an object's pixels changes the release by a bit."""
    method = dpveil.plan(photo, "attributes", protect="head", attributes="tone=50").method
    asked = find(photo, ["faces", f"object:{box}"])
    first = method.place(photo, asked)
    assert isinstance(first, MixedPlacement)
    assert first.heads is not None
    drawn = first.draw(SeededBits(1), ())
    levels = np.random.Generator(np.random.PCG64(5)).integers(0, 256, (box.h, box.w, 3), np.uint8)
    for level in (0, 255, levels):
        changed = photo.image.copy()
        changed[box.slices] = level
        other = method.place(photo, asked)
        assert isinstance(other, MixedPlacement)
        assert other.heads is not None
        other.photo = other.heads.photo = other.covers.photo = Photo(changed)
        assert np.array_equal(other.draw(SeededBits(1), ()), drawn)


def test_a_release_with_objects_verifies_and_so_does_one_of_objects_alone(
    photo: Photo, tmp_path: Path
) -> None:
    Image.fromarray(photo.image).save(tmp_path / "one.jpg", quality=90)
    for name, regions in (
        ("both", ["faces", f"object:{PLATE}", f"object:{BESIDE}"]),
        ("alone", [f"object:{PLATE}"]),
    ):
        made = dpveil.obfuscate(tmp_path / "one.jpg", "attributes", regions=regions, **DRAWN)
        made.save(tmp_path / f"{name}.png")
        assert made.certificate.request[-1] == regions[-1]
        last = made.certificate.regions[-1]
        assert last.origin.grown_to == "JPEG"
        found = dpveil.verify(tmp_path / f"{name}.png")
        assert (found.status, found.problems) == ("consistent", ())
        assert found.publishable
    assert str(made.certificate.composition) == "0-DP, any-image"


def test_pixel_methods_take_objects_as_boxes(photo: Photo) -> None:
    one, other = (
        dpveil.obfuscate(photo, "dp-pix", epsilon=1, block=8, regions=text, bits=SeededBits(2))
        for text in (f"object:{PLATE}", str(PLATE))
    )
    assert (one.image == other.image).all()
    assert str(one.certificate.composition) == "1-DP, any-image"


@pytest.mark.parametrize("regions", [["whole", f"object:{PLATE}"], ["0,0,512,512", f"object:{PLATE}"]])
def test_the_whole_photo_as_one_face_has_no_objects(photo: Photo, regions: list[str]) -> None:
    with pytest.raises(InvalidParameter, match="the whole photo and more"):
        dpveil.plan(photo, "attributes", regions=regions, **DRAWN)


@pytest.mark.parametrize(
    "text", ["object:", "object:1,2,3", "object:faces", "object:object:1,2,3,4", "objects:1,2,3,4"]
)
def test_what_is_no_box_is_refused(text: str) -> None:
    with pytest.raises(dpveil.errors.UsageError):
        parse(text)


def _plans(photo: np.ndarray, box: Box, levels: tuple[int | None, ...]) -> list[tuple[Any, ...]]:
    """Return regions, certificate and image for photos that differ under an object alone."""
    made = []
    for level in levels:
        changed = photo.copy()
        if level is not None:
            changed[box.slices] = level
        plan = dpveil.plan(Photo(changed), "attributes", regions=["faces", f"object:{box}"], **DRAWN)
        release = plan.release(bits=SeededBits(1))
        records = [(region.record, region.score) for region in (*plan.regions, *plan.doubtful)]
        made.append((records, plan.warnings, release.certificate.to_text(), release.image.tobytes()))
    return made


def test_a_face_under_an_object_is_neither_found_nor_counted(photo: Photo) -> None:
    """A poster with a face, and a blank one, give the same release."""
    beside = np.hstack([photo.image, photo.image])
    poster, *blank = _plans(beside, Box(512, 0, 512, 512), (None, 128, 0))
    assert all(one == poster for one in blank)
    assert len(poster[0]) == 2


@pytest.mark.parametrize("box", [NEAR, Box(200, 60, 110, 140), BESIDE])
def test_where_a_face_is_does_not_follow_from_the_pixels_of_an_object_over_it(photo: Photo, box: Box) -> None:
    """Neither its box, nor its landmarks, nor whether there is one."""

    def told(level: int | None) -> Any:
        try:
            return _plans(photo.image, box, (level,))
        except dpveil.errors.NoRegion:
            return None

    assert told(None) == told(0) == told(255)


def test_an_object_is_covered_before_the_search(photo: Photo) -> None:
    beside = np.hstack([photo.image, photo.image])
    poster = "object:512,0,512,512"
    plan = dpveil.plan(Photo(beside), "attributes", regions=["faces", poster], **DRAWN)
    assert [region.origin.kind for region in plan.regions] == ["face", "object"]
