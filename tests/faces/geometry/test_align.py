"""Alignment: the similarity, its inverse, and what lies at the photo's edge."""

from __future__ import annotations

import math

import numpy as np
import pytest
from geometry_made import placed, textured

from dpveil.core.region import Box
from dpveil.faces.drawn_face import CropFace
from dpveil.faces.geometry.align import Frame, Similarity, halvings, of_points
from dpveil.faces.geometry.head_frame import between
from dpveil.faces.geometry.landmarks import SEEN
from dpveil.faces.paint_faces import paint_faces

POSES = [
    (0.5, 0.0, (301.3, 260.2)),
    (0.16, 0.3, (400.7, 333.4)),
    (2.3, -0.6, (150.2, 90.9)),
    (1.0, math.pi / 2, (222.2, 111.1)),
]


def spot(height: int, width: int, at: np.ndarray, sigma: float) -> np.ndarray:
    """A bright spot on black, at a place between pixels."""
    y, x = np.mgrid[:height, :width]
    level = 230 * np.exp(-((x - at[0]) ** 2 + (y - at[1]) ** 2) / (2 * sigma**2))
    return np.repeat(np.rint(level).astype(np.uint8)[..., None], 3, axis=2)


def centre(image: np.ndarray) -> np.ndarray:
    level = image[..., 0].astype(float)
    y, x = np.mgrid[: level.shape[0], : level.shape[1]]
    return np.array([(x * level).sum(), (y * level).sum()]) / level.sum()


def pose_at(scale: float, angle: float, middle: tuple[float, float], frame: Frame) -> Similarity:
    turned = Similarity(scale, angle, 0.0, 0.0).to(np.array([middle], float))[0]
    x, y = np.array([(frame.size - 1) / 2] * 2) - turned
    return Similarity(scale, angle, float(x), float(y))


@pytest.mark.parametrize(("scale", "angle", "middle"), POSES)
def test_inverse_is_exact(scale, angle, middle):
    pose = pose_at(scale, angle, middle, Frame())
    points = np.random.default_rng(1).uniform(-2000, 5000, (200, 2))
    assert np.abs(pose.back(pose.to(points)) - points).max() < 1e-8
    assert np.abs(pose.inverse.inverse.matrix - pose.matrix).max() < 1e-8


@pytest.mark.parametrize(("scale", "angle", "middle"), POSES)
def test_pixels_go_where_the_map_says(scale, angle, middle):
    """A spot of the photo is found in the crop within half a pixel of either picture."""
    frame = Frame(128)
    pose = pose_at(scale, angle, middle, frame)
    for off in ((-9.3, 4.7), (12.4, -15.8), (0.5, 0.25)):
        wanted = np.array([63.5 + off[0], 63.5 + off[1]])
        at = pose.back(wanted[None])[0]
        seen = pose.crop(spot(600, 700, at, max(2.0, 2.0 / scale)), frame)
        miss = np.abs(centre(seen) - wanted).max()
        assert miss < 0.25
        assert miss / scale < 0.5


@pytest.mark.parametrize(("scale", "angle", "middle"), POSES)
def test_a_crop_comes_back_to_its_place(scale, angle, middle):
    """Photo to crop and crop to photo: a spot comes back within half a pixel."""
    frame = Frame(128)
    pose = pose_at(scale, angle, middle, frame)
    at = pose.back(np.array([[66.0, 60.0]]))[0]
    photo = spot(600, 700, at, max(2.0, 2.0 / scale))
    place = placed(Box(0, 0, 700, 600))
    place = type(place)(place.region, pose, frame, protect="face")
    again = paint_faces(photo, [place], [CropFace(pose.crop(photo, frame), frame)])
    # What is filled around the face is not black: compare where the spot is.
    left, top = (max(0, int(v - 8 / scale)) for v in at)
    cut = slice(top, int(at[1] + 8 / scale) + 1), slice(left, int(at[0] + 8 / scale) + 1)
    assert np.abs(centre(again[cut]) - centre(photo[cut])).max() < 0.5


def test_crop_at_borders_and_outside_has_its_size_and_repeats_the_edge():
    photo = textured(40, 60)
    for middle in ((0, 0), (59, 39), (30, -200), (-500, 20), (900, 900)):
        for scale in (0.05, 1.0, 7.0):
            crop = pose_at(scale, 0.4, middle, Frame()).crop(photo, Frame())
            assert crop.shape == (128, 128, 3)
            assert crop.dtype == np.uint8
    flat = np.full((50, 50, 3), 77, np.uint8)
    assert (pose_at(1.3, 0.2, (0, 0), Frame()).crop(flat, Frame()) == 77).all()


def test_points_are_aligned_and_frames_convert():
    rng = np.random.default_rng(3)
    true = Similarity(0.37, -0.4, 12.0, -5.0)
    found = true.back(Frame().points())
    made = of_points(found, Frame().points())
    assert made.matrix == pytest.approx(true.matrix, abs=1e-9)
    noisy = of_points(found + rng.normal(0, 0.5, found.shape), Frame().points())
    assert np.abs(noisy.to(found) - Frame().points()).max() < 1
    other = between(made, Frame(), SEEN)
    assert other.to(found) == pytest.approx(SEEN.points(), abs=1e-9)


def test_an_image_pyramid_ends_before_its_shorter_side_has_64_pixels() -> None:
    for tall, wide in ((300, 1100), (1100, 300)):
        shapes = [level.shape[:2] for level in halvings(np.zeros((tall, wide, 3), np.uint8))]
        assert shapes == [(tall, wide), (tall // 2, wide // 2), (tall // 4, wide // 4)]
