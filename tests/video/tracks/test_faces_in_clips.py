"""Faces of the project's own gallery, which are of nobody, found in a clip by the installed detector."""

from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from moving_world import smooth

from dpveil.core.photo import Photo
from dpveil.core.region import Box, Region
from dpveil.core.region_origin import FACE, Origin
from dpveil.errors import NoRegion, UsageError
from dpveil.faces.face_gallery import FaceGallery
from dpveil.faces.geometry.landmarks import BOX
from dpveil.regions import Faces
from dpveil.regions.detectors import DETECTORS, Detector
from dpveil.regions.finder import Finder, Seen
from dpveil.video.facts import Facts, Frame
from dpveil.video.tracks import tracker
from dpveil.video.tracks.tracker import find_tracks, turn_of

GALLERY = (
    Path(__file__).parents[3] / "packages" / "dpveil-faces" / "src" / "dpveil_faces" / "gallery.safetensors"
)
WIDTH, HEIGHT, COUNT = 320, 240, 30
SIDE = 96
"""Side of the face's picture in pixels, in the frame of UTKFace."""
FACTS = Facts(
    sha256="",
    format="mp4",
    codec="h264",
    width=WIDTH,
    height=HEIGHT,
    time_base=Fraction(1, 25),
    start=0,
    steps=((1, COUNT - 1),),
    audio=False,
)
needs_centerface = pytest.mark.skipif(
    not DETECTORS["centerface"].is_installed(), reason="needs dpveil install faces"
)


@pytest.fixture(scope="module")
def face():
    return FaceGallery.load(GALLERY).decoded([0])[0]


def place(n):
    """Return the left top corner of the face's picture in a frame."""
    return round(40 + 70 * np.sin(n / 9)), round(30 + n)


def frames(face, turn=0.0):
    """Yield a face in a soft oval that moves over a background, which moves the other way."""
    import cv2

    middle = (63.5, 63.5)
    oval = cv2.ellipse(np.zeros((128, 128), np.float32), ((64, 64), (118, 126), 0), 1.0, -1)
    oval = cv2.GaussianBlur(oval, (0, 0), 4)
    both = np.dstack([face.astype(np.float32) * oval[..., None], oval])
    both = cv2.warpAffine(both, cv2.getRotationMatrix2D(middle, -turn, 0.75), (128, 128))
    behind = cv2.GaussianBlur(smooth(HEIGHT, 3 * WIDTH, 3, 24), (0, 0), 3)
    for n in range(COUNT):
        image = behind[:, 2 * n : 2 * n + WIDTH].copy()
        x, y = place(n)
        part = image[y : y + 128, x + 60 : x + 188]
        part[:] = part * (1 - both[..., 3:]) + both[..., :3]
        yield image


def box_of_face(n):
    """Return left, top, right and bottom of the face, from the forehead to the chin, in a frame."""
    x, y = place(n)
    left, top, wide, high = np.array(BOX) * SIDE
    left, top = x + 60 + 16 + left, y + 16 + top
    return left, top, left + wide, top + high


@needs_centerface
def test_a_face_that_moves_is_one_track_that_holds_it_in_every_frame(face):
    clip = [Frame(n, n, image) for n, image in enumerate(frames(face))]
    found = find_tracks(clip, FACTS, [Faces(detector="centerface")])
    (track,) = found.tracks
    assert (track.kind, track.first, track.last, track.end) == (FACE, 0, COUNT - 1, "end")
    assert track.finder == "faces margin=0 long-side=1280 smallest=24"
    assert track.score > 0.5
    for n in range(COUNT):
        x, y, w, h = (
            np.interp(n, [key.frame for key in track.keys], [getattr(key, side) for key in track.keys])
            for side in "xywh"
        )
        left, top, right, bottom = box_of_face(n)
        across, down = min(right, x + w) - max(left, x), min(bottom, y + h) - max(top, y)
        assert across * down >= 0.95 * (right - left) * (bottom - top)
        assert w * h < 1.6 * (right - left) * (bottom - top)


@pytest.mark.skipif(find_spec("dlib") is None, reason="needs pip install dlib-bin")
@pytest.mark.parametrize("turn", [-20, 20])
def test_the_roll_of_a_face_is_clockwise_and_its_yaw_towards_the_right(face, turn):
    image, box = next(frames(face, turn)), np.array(box_of_face(0))
    roll, yaw = turn_of(image, box)
    assert abs(roll - turn) < 4
    assert abs(yaw) < 15
    assert turn_of(image, box * [1, 1, 0.6, 0.5]) is None
    assert turn_of(image, box - 400) is None
    assert turn_of(smooth(HEIGHT, WIDTH, 9), box) is None


def test_without_landmarks_turns_are_not_known(face, monkeypatch):
    def missing():
        raise UsageError("landmarks need dlib, which is not installed")

    monkeypatch.setattr(tracker, "locator", missing)
    tracker._landmark_locator.cache_clear()
    try:
        assert turn_of(next(frames(face)), np.array(box_of_face(0))) is None
    finally:
        tracker._landmark_locator.cache_clear()


class Told(Detector):
    """Returns rows that are told, if they score enough, and remembers the sizes of images."""

    name = "told"
    threshold = Fraction(3, 10)
    doubtful = Fraction(1, 10)
    rows = np.array([[-10, 5, 30, 40, 0.9], [60, 60, 8, 9, 0.8], [100, 20, 20, 20, 0.2]])

    def __init__(self):
        self.sizes = []

    @classmethod
    def is_installed(cls):
        return True

    def __call__(self, image, threshold):
        self.sizes.append(image.shape[:2])
        return self.rows[self.rows[:, 4] >= threshold]


def test_frames_are_searched_once_and_boxes_are_neither_widened_nor_clipped(monkeypatch):
    detector = Told()
    monkeypatch.setattr("dpveil.regions.faces.choose", lambda name: detector)
    finder = Faces(min_face=10).for_frames(4000, 3000, 1280)
    assert (finder.margin, finder.long_side) == (0, 1280)
    seen = finder.find_in_frame(Photo(np.zeros((3000, 4000, 3), np.uint8)))
    assert detector.sizes == [(960, 1280)]
    assert [one.sure for one in seen] == [True, True, False]
    assert seen[0].box == (-31.25, 15.625, 93.75, 125.0)
    assert {one.kind for one in seen} == {FACE}


def test_other_finders_search_frames_as_photos():
    class Square(Finder):
        kind = "square"
        description = "square"

        def __call__(self, photo):
            if not photo.image.any():
                raise NoRegion("no square was found")
            return [Region(Box(1, 2, 3, 4), origin=Origin("square", found=True), score=0.5)]

        def doubtful_in(self, photo):
            return [Region(Box(5, 5, 2, 2), origin=Origin("square", found=True), score=0.1)]

    finder = Square()
    assert finder.for_frames(640, 480, 1280) is finder
    assert finder.find_in_frame(Photo(np.ones((9, 9, 3), np.uint8))) == [
        Seen("square", (1, 2, 3, 4), 0.5),
        Seen("square", (5, 5, 2, 2), 0.1, sure=False),
    ]
    assert [one.sure for one in finder.find_in_frame(Photo(np.zeros((9, 9, 3), np.uint8)))] == [False]
