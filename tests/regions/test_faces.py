"""The finder of faces: boxes, numbers, choices, and that it fails closed."""

from __future__ import annotations

import pickle
from fractions import Fraction
from threading import Thread

import numpy as np
import pytest
from PIL import Image
from skimage import data

import dpveil
from dpveil.core.photo import Grid, Photo
from dpveil.core.region import Box
from dpveil.errors import NoRegion, RegionError
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces, find
from dpveil.regions import faces as faces_file
from dpveil.regions.detectors import Detector
from dpveil.regions.detectors.centerface import CenterFace
from dpveil.regions.detectors.dlib_hog import DlibHOG
from dpveil.regions.spec import TABLE
from dpveil.release.crowd import FACE_BOX, FACE_COUNT, NO_OTHER_FACE
from dpveil.release.words import CHANNELS, STORED
from tiny_onnx import yunet

needs_centerface = pytest.mark.skipif(not CenterFace.installed(), reason="needs dpveil install faces")
needs_dlib = pytest.mark.skipif(not DlibHOG.installed(), reason="needs pip install dlib-bin")
SPENDING = {"method": "dp-pix", "epsilon": 20, "block": 16, "neighbourhood": 16}
ROW = [[60, 12, 20, 20, 0.8], [10, 10, 20, 30, 0.9], [40, 60, 8, 10, 0.4]]
"""Two faces side by side, the left one first although it is listed second, and one below."""


class Fake(Detector):
    """Returns or raises what it was given, and keeps what it was shown."""

    name = "fake"
    threshold = Fraction(3, 10)

    def __init__(self, answer=ROW):
        self.answer = answer
        self.shown = []

    @classmethod
    def installed(cls):
        return True

    def __call__(self, image, threshold):
        self.shown.append((image, threshold))
        if isinstance(self.answer, BaseException):
            raise self.answer
        return np.array(self.answer, float) if isinstance(self.answer, list) else self.answer


@pytest.fixture
def fake(monkeypatch):
    detector = Fake()
    monkeypatch.setattr(faces_file, "choose", lambda name, model: detector)
    return detector


@pytest.fixture
def photo():
    return Photo(np.arange(80 * 100 * 3, dtype=np.uint32).reshape(80, 100, 3).astype(np.uint8))


class Untouchable:
    """A bit source that must not be asked."""

    def words(self, count):
        raise AssertionError("noise was drawn")


def corners(regions):
    return [(r.box.x, r.box.y, r.box.w, r.box.h) for r in regions]


# Boxes and numbers


def test_boxes_have_margins_whole_pixels_and_numbers(fake, photo):
    found = Faces(margin="1/4")(photo)
    assert [region.label for region in found] == ["face 1", "face 2", "face 3"]
    assert corners(found) == [(5, 2, 30, 46), (55, 7, 30, 30), (38, 57, 12, 16)]
    assert corners(Faces(margin=0)(photo)) == [(10, 10, 20, 30), (60, 12, 20, 20), (40, 60, 8, 10)]
    assert [face.score for face in Faces().detect(photo)] == [0.9, 0.8, 0.4]


def test_small_faces_are_left_only_when_asked(fake, photo):
    assert len(Faces(min_face=10)(photo)) == 3
    assert len(Faces(min_face=11)(photo)) == 2
    with pytest.raises(NoRegion):
        Faces(min_face=31)(photo)
    wide = Photo(np.zeros((800, 1000), np.uint8))  # min_face counts pixels of the photo, not of the search
    assert len(Faces(min_face=101, long_side=100)(wide)) == 2


# Choices


def test_only_and_except(fake, photo):
    assert [r.label for r in Faces(only="3,1,3")(photo)] == ["face 1", "face 3"]
    assert [r.label for r in Faces(exclude=(2,))(photo)] == ["face 1", "face 3"]
    assert len(Faces(only=(1,)).detect(photo)) == 3
    for wrong in ({"only": (1, 4)}, {"exclude": "4"}):
        with pytest.raises(RegionError, match="face 4 was chosen, and the photo has 3") as caught:
            Faces(**wrong)(photo)
        assert not isinstance(caught.value, NoRegion)
    with pytest.raises(RegionError, match="face 5 was chosen, and the photo has 3 faces: "):
        Faces(only=(5,))(photo)
    with pytest.raises(NoRegion, match="to stay as it is"):
        Faces(exclude=(1, 2, 3))(photo)


@needs_dlib
def test_the_description_names_the_detector_that_runs(monkeypatch):
    monkeypatch.setattr(CenterFace, "installed", classmethod(lambda cls: False))
    assert Faces().description == "faces detector=dlib"
    assert Faces().notes
    assert Faces(detector="dlib").notes == ()


def test_a_users_network_is_named_by_its_hash_alone(tmp_path):
    path = tmp_path / "secret name.onnx"
    path.write_bytes(yunet())
    faces = Faces(detector="yunet", model=path)
    assert faces.description.startswith("faces detector=yunet model=sha256:")
    assert "secret" not in faces.description
    assert "secret" not in repr(faces)
    image = np.zeros((64, 64, 3), np.uint8)
    image[24:32, 24:32, 0] = 255
    release = dpveil.obfuscate(image, regions=faces, bits=SeededBits(1), **SPENDING)
    assert "secret" not in release.certificate.to_text()
    assert len(release.certificate.regions) == 1


@needs_centerface
def test_a_finder_travels_between_processes_and_threads():
    finder = Faces(only=(1,))
    photo = Photo(data.astronaut())
    expected = finder.detect(photo)
    again = pickle.loads(pickle.dumps(finder))  # noqa: S301
    assert again == finder
    assert again.detect(photo) == expected
    answers = []
    threads = [Thread(target=lambda: answers.append(finder.detect(photo))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [expected] * 4


# Real photos


def overlap(one: Box, two: Box) -> float:
    wide = min(one.x + one.w, two.x + two.w) - max(one.x, two.x)
    high = min(one.y + one.h, two.y + two.h) - max(one.y, two.y)
    shared = max(0, wide) * max(0, high)
    return shared / (one.w * one.h + two.w * two.h - shared)


HEAD = Box(158, 28, 132, 178)
"""Hair line to throat and ear to ear in the astronaut's photograph, with the default margin."""


@needs_centerface
@pytest.mark.parametrize("channels", [1, 3])
def test_the_astronaut_in_colour_and_grey(channels):
    image = data.astronaut()
    (face,) = Faces()(Photo(image if channels == 3 else np.ascontiguousarray(image[:, :, 1])))
    assert overlap(face.box, HEAD) > 0.85


@needs_centerface
@pytest.mark.parametrize("tag", range(1, 9))
def test_turned_photos_have_the_same_boxes(tmp_path, tag):
    upright = Image.fromarray(data.astronaut()[:400])
    undo = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # the transposition that the tag asks viewers to undo
    stored = upright if tag == 1 else upright.transpose(Image.Transpose(undo[tag]))
    exif = Image.Exif()
    exif[0x0112] = tag
    stored.save(tmp_path / "turned.png", exif=exif)
    photo = dpveil.read(tmp_path / "turned.png")
    assert (photo.width, photo.height) == (512, 400)
    found = TABLE["faces"].detect(photo)
    assert found == TABLE["faces"].detect(Photo(np.asarray(upright)))
    assert overlap(found[0].box, HEAD) > 0.85


@needs_centerface
def test_several_faces_in_one_large_photo():
    canvas = np.full((700, 2600, 3), 90, np.uint8)
    canvas[100:612, 200:712] = data.astronaut()
    canvas[150:662, 2000:2512] = data.astronaut()[:, ::-1]
    canvas[180:692, 1200:1712] = data.astronaut()
    found = Faces()(Photo(canvas))
    assert [region.label for region in found] == ["face 1", "face 2", "face 3"]
    places = [(200 + 224, 100 + 117), (2000 + 511 - 224, 150 + 117), (1200 + 224, 180 + 117)]
    for region, (x, y) in zip(found, places, strict=True):
        assert abs(region.box.x + region.box.w / 2 - x) < 15
        assert abs(region.box.y + region.box.h / 2 - y) < 15


@needs_centerface
@pytest.mark.parametrize(
    ("name", "pattern", "step"), [("lfw10_128", "*/*.jpg", 100), ("att_faces", "*/*.pgm", 20)]
)
def test_no_face_of_the_shared_sets_is_missed(shared, name, pattern, step):
    paths = sorted((shared / name).glob(pattern))[::step]
    assert len(paths) >= 20
    missed = []
    for path in paths:
        photo = Photo(np.asarray(Image.open(path)))
        boxes = [face.box for face in Faces(margin=0).detect(photo)]
        x, y = photo.width / 2, photo.height / 2
        if not any(b.x <= x <= b.x + b.w and b.y <= y <= b.y + b.h for b in boxes):
            missed.append(path.name)
    assert missed == []


# Fail closed


@pytest.mark.parametrize(
    "answer",
    [
        RuntimeError("out of order"),
        MemoryError(),
        [[np.nan, 0, 9, 9, 0.5]],
        [[0, 0, np.inf, 9, 0.5]],
        [[0, 0, 9, 9, np.nan]],
        [[0, 0, 9, 9, 1.5]],
        [[0, 0, 0, 9, 0.5]],
        [[0, 0, 9, -9, 0.5]],
        [[100, 0, 9, 9, 0.5]],
        [[0, 80, 9, 9, 0.5]],
        [[-9, 0, 9, 9, 0.5]],
        [[1, 1, 9, 9, 0.9], [0, -20, 9, 9, 0.5]],
        [[1, 1, 9, 9]],
        np.zeros(5),
        None,
        "faces",
    ],
    ids=repr,
)
@pytest.mark.parametrize("if_none", [None, "whole", "copy"])
def test_a_failing_detector_releases_nothing(fake, photo, answer, if_none):
    fake.answer = answer
    with pytest.raises(RegionError, match="detector") as caught:
        dpveil.obfuscate(photo, regions=Faces(), bits=Untouchable(), if_none=if_none, **SPENDING)
    assert not isinstance(caught.value, NoRegion)
    assert caught.value.hint
    assert caught.value.exit_code == 1


def test_no_face_releases_nothing(fake, photo):
    fake.answer = np.zeros((0, 5))
    with pytest.raises(NoRegion, match="no face was found") as refusal:
        dpveil.obfuscate(photo, regions=Faces(), bits=Untouchable(), **SPENDING)
    assert "if_none whole" not in str(refusal.value)  # which draws one large face
    assert {"if_none", "method", "regions"} <= refusal.value.arguments.keys()
    with pytest.raises(NoRegion):
        find(photo, ["whole", Faces()])


# What certificates say


def test_the_scope_names_box_count_and_every_other_face(fake, tmp_path):
    image = np.zeros((80, 100, 3), np.uint8)
    release = dpveil.obfuscate(Photo(image, Grid(8, 8)), regions=Faces(), **SPENDING)
    certificate = release.certificate
    assert [record.label.partition(",")[0] for record in certificate.regions] == [
        "face 1",
        "face 2",
        "face 3",
    ]
    for guarantee in certificate.guarantees:
        assert guarantee.scope.in_the_clear == (
            *(FACE_BOX, FACE_COUNT, STORED.format("JPEG"), CHANNELS, NO_OTHER_FACE),
        )
    assert certificate.composition.epsilon == 60
    release.save(tmp_path / "out.png")
    assert dpveil.verify(tmp_path / "out.png").status == "consistent"


def test_changing_a_face_changes_nothing_outside_its_box(fake, photo):
    """With the same boxes and the same noise, what lies in a box reaches no pixel outside the boxes."""
    inside = np.zeros((80, 100), bool)
    for region in Faces()(photo):
        inside[region.box.slices] = True
    results = []
    for level in (0, 255):
        image = photo.image.copy()
        image[inside] = level
        results.append(dpveil.obfuscate(image, regions=Faces(), bits=SeededBits(3), **SPENDING).image)
    assert np.array_equal(results[0][~inside], results[1][~inside])
    assert np.array_equal(results[0][~inside], photo.image[~inside])
    assert (results[0][inside] != results[1][inside]).any()


def test_a_box_too_thin_for_floats_has_a_pixel(fake, photo):
    """Where rounding left nothing of a row of faces, the order of reading never came to its end."""
    fake.answer = [[10, 50, 5, 1e-15, 0.9], *ROW[:1]]
    found = Faces(margin=0).detect(photo)
    assert len(found) == 2
    assert all(face.box.inside(photo.width, photo.height) for face in found)
