"""Eyes and irises of faces: where their boxes are, what certificates say, and that clips have them, too."""

from __future__ import annotations

from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
from skimage import data

import dpveil
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, NoRegion
from dpveil.faces.head_gallery import default_heads
from dpveil.noise.bits import SeededBits
from dpveil.regions import Eyes, parse

LONGER = 0.095
"""Radius of an iris in distances of the eyes: 6 of 63 mm."""


@cache
def portrait(person: int, scale: int = 1) -> tuple[np.ndarray, np.ndarray]:
    """A rendered head on grey, seen from the front, and the four corners of its eyes."""
    heads = default_heads()
    row = next(r for r in range(len(heads.person)) if heads.person[r] == person and heads.yaw[r] == 0)
    picture = cv2.imdecode(np.frombuffer(heads.pictures[row], np.uint8), cv2.IMREAD_UNCHANGED)
    alpha = picture[..., 3:] / 255
    image = (picture[..., 2::-1] * alpha + 120 * (1 - alpha)).astype(np.uint8)
    large = cv2.resize(image, None, fx=scale, fy=scale, interpolation=cv2.INTER_CUBIC)
    return large, heads.points[row][:4] * scale


def holds(box: Box, point: np.ndarray, reach: float = 0.0) -> bool:
    low, high = np.array([box.x, box.y]), np.array([box.x + box.w, box.y + box.h])
    return bool((low <= point - reach).all() and (point + reach <= high).all())


def alike(photo: np.ndarray, release: np.ndarray) -> bool:
    """Whether both are dark at one place: where the pupil is, not at the lashes or the border."""
    soft = [cv2.GaussianBlur(one.mean(axis=2), (0, 0), 6) for one in (photo, release)]
    return float(np.ptp(soft[1])) > 20 and float(np.corrcoef(*(one.ravel() for one in soft))[0, 1]) > 0.8


@pytest.mark.parametrize("person", [0, 7, 19])
@pytest.mark.parametrize("angle", [0, 20])
def test_boxes_hold_both_eyes_and_their_irises(person: int, angle: int) -> None:
    image, corners = portrait(person)
    turn = cv2.getRotationMatrix2D((200, 200), angle, 1)
    image = cv2.warpAffine(image, turn, (400, 400), borderValue=(120, 120, 120))
    corners = corners @ turn[:, :2].T + turn[:, 2]
    photo = Photo(image)
    eyes, irises = (finder(photo) for finder in (Eyes(), Eyes(iris=True)))
    assert len(eyes) == len(irises) == 2
    for pair in (corners[:2], corners[2:]):
        assert any(all(holds(one.box, point) for point in pair) for one in eyes)
        reach = LONGER * float(np.hypot(*(corners[:2].mean(axis=0) - corners[2:].mean(axis=0))))
        assert any(holds(one.box, pair.mean(axis=0), reach) for one in irises)
    areas = [sum(one.box.w * one.box.h for one in found) for found in (irises, eyes)]
    assert areas[0] < areas[1] < 0.1 * image[..., 0].size


@pytest.mark.parametrize("spec", ["eyes", "irises"])
def test_a_release_says_that_its_boxes_follow_from_pixels_and_verifies(spec: str, tmp_path: Path) -> None:
    image, _ = portrait(7)
    release = dpveil.obfuscate(image, "fill", regions=spec)
    assert [one.origin.kind for one in release.certificate.regions] == ["eye", "eye"]
    assert all(one.origin.found and one.origin.finder == spec for one in release.certificate.regions)
    hidden = np.zeros(image.shape[:2], bool)
    for one in release.certificate.regions:
        step = 1 << (max(1, max(one.box.w, one.box.h) // 8).bit_length() - 1)
        assert one.box.x % step == one.box.y % step == 0 or step == 1
        hidden[one.box.slices] = True
    np.testing.assert_array_equal(release.image[~hidden], image[~hidden])
    assert (release.image[hidden] == 127).all()
    release.save(tmp_path / "out.png")
    assert dpveil.verify(tmp_path / "out.png").status == "consistent"


def test_a_pupil_is_kept_by_dp_svd_and_snow_and_not_by_a_fill() -> None:
    image, _ = portrait(7, 4)
    photo = Photo(image)
    for method, more, kept in (
        ("snow", {"delta": "0.5"}, True),
        ("dp-svd", {"epsilon": "0.02", "rank": 6}, True),
        ("fill", {}, False),
    ):
        release = dpveil.obfuscate(photo, method, regions="eyes", bits=SeededBits(3), **more)
        parts = [one.box.slices for one in release.certificate.regions]
        assert max(alike(image[part], release.image[part]) for part in parts) == kept


def test_faces_of_a_clip_have_eyes_in_every_frame() -> None:
    image, corners = portrait(0)
    finder = Eyes().for_frames(400, 400, 640)
    for moved in (0, 30):
        seen = finder.find_in_frame(Photo(np.roll(image, moved, axis=1)))
        boxes = [Box(*map(int, one.box)) for one in seen]
        assert {one.kind for one in seen} == {"eye"}
        assert all(any(holds(box, point + np.array([moved, 0])) for box in boxes) for point in corners)
    assert finder.find_in_frame(Photo(data.coffee())) == []


def test_without_a_face_nothing_is_found_and_settings_are_checked() -> None:
    with pytest.raises(NoRegion):
        Eyes()(Photo(data.coffee()))
    assert (parse("eyes").description, parse("irises").description) == ("eyes", "irises")
    with pytest.raises(InvalidParameter):
        Eyes(margin=3)
