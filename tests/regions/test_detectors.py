"""The face detectors alone: decoding, sizes, files, and what they refuse."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import combinations

import numpy as np
import pytest
from skimage import data

import dpveil
from dpveil.assets.trained_files import INSTALL
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.errors import UnknownName, UsageError
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil.regions import faces as faces_file
from dpveil.regions.detectors import DETECTORS, Detector, choose
from dpveil.regions.detectors import centerface as centerface_file
from dpveil.regions.detectors.centerface import CenterFace, decode
from dpveil.regions.tiling import OVERLAP, suppress

needs_centerface = pytest.mark.skipif(not CenterFace.is_installed(), reason="needs dpveil install faces")


def maps(rows: int = 8, columns: int = 10) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    return (
        np.zeros((rows, columns), np.float32),
        np.zeros((2, rows, columns), np.float32),
        np.zeros((2, rows, columns), np.float32),
    )


def test_decode_keeps_the_best_of_neighbours_and_both_of_two_faces():
    heat, scale, offset = maps()
    scale[:] = math.log(3)
    heat[2, 2], heat[2, 3], heat[6, 8], heat[0, 9] = 0.6, 0.9, 0.5, 0.49
    found = decode(heat, scale, offset, 0.5)
    assert found[:, 4].tolist() == pytest.approx([0.9, 0.5])
    assert found[:, 0].tolist() == pytest.approx([4 * 3.5 - 6, 4 * 8.5 - 6])
    assert decode(heat, scale, offset, 0.95).shape == (0, 5)


def test_suppression_is_by_intersection_over_union():
    rows = np.array([[0, 0, 10, 10, 0.5], [0, 0, 10, 10, 0.5], [5.5, 0, 10, 10, 0.4], [0, 5, 10, 10, 0.9]])
    # 45 of 155 is below 0.3 and 50 of 150 is above it.
    assert suppress(rows)[:, 4].tolist() == [0.9, 0.4]
    assert suppress(rows, 0.9)[:, 4].tolist() == [0.9, 0.5, 0.4]
    assert suppress(rows[:0]).shape == (0, 5)


@needs_centerface
def test_centerface_finds_nothing_in_one_colour(monkeypatch):
    marked = [np.zeros((1, count, 8, 8), np.float32) for count in (1, 2, 2, 10)]
    marked[0][0, 0, 3, 3] = 0.9
    detector = CenterFace()
    monkeypatch.setattr(detector, "_net", lambda image: marked)
    photo = np.zeros((32, 32, 3), np.uint8)
    assert detector(photo, 0.5).shape == (0, 5)
    photo[13, 13, 1] = 1
    assert len(detector(photo, 0.5)) == 1


@needs_centerface
def test_a_changed_network_is_refused(tmp_path, monkeypatch):
    path = centerface_file.network_path()
    contents = path.read_bytes()
    changed = tmp_path / path.name
    changed.write_bytes(contents[:-1] + bytes([contents[-1] ^ 1]))
    monkeypatch.setattr(centerface_file, "network_path", lambda: changed)
    with pytest.raises(UsageError, match="not the one") as caught:
        choose("auto")
    assert caught.value.hint == INSTALL


def overlap(one: np.ndarray, two: np.ndarray) -> float:
    start, stop = np.maximum(one[:2], two[:2]), np.minimum(one[:2] + one[2:4], two[:2] + two[2:4])
    shared = float(np.prod(np.maximum(stop - start, 0)))
    return shared / float(one[2] * one[3] + two[2] * two[3] - shared)


ASTRONAUT = np.array([182, 56, 88, 122])
"""Forehead to chin and cheek to cheek in the 512 × 512 photograph, drawn by hand."""


@needs_centerface
def test_the_astronaut_is_found():
    detector = choose("centerface")
    best = detector(data.astronaut(), float(detector.threshold))[0]
    assert overlap(best[:4], ASTRONAUT) > 0.7
    assert 0.6 < best[4] <= 1


def test_the_choice():
    with pytest.raises(UnknownName, match="'centreface'"):
        choose("centreface")


@pytest.mark.parametrize("name", DETECTORS.rows)
def test_every_detector_keeps_the_interface(name):
    kind = DETECTORS[name]
    assert kind.name == name
    assert 0 < kind.threshold < 1
    try:
        detector = choose(name)
    except UsageError as missing:
        pytest.skip(str(missing))
    grey, two = np.full((90, 120, 3), 128, np.uint8), np.hstack([data.astronaut()[:264, 92:356]] * 2)
    assert detector(grey, 0.5).shape == (0, 5)
    for image in (two, two[::3, ::3], two[:1, :1]):
        found = detector(image, float(kind.threshold))
        assert found.shape[1:] == (5,)
        assert (found[:, 2:4] > 0).all()
        assert ((found[:, 4] >= float(kind.threshold)) & (found[:, 4] <= 1)).all()
        assert all(overlap(one, other) <= OVERLAP for one, other in combinations(found, 2))


def test_a_detector_that_is_not_installed_says_how(monkeypatch):
    monkeypatch.setattr(centerface_file, "network_path", lambda: None)
    with pytest.raises(UsageError, match="CenterFace is not installed") as caught:
        choose("auto")
    assert caught.value.hint == INSTALL == "dpveil install faces"


# Places that look a little like a face: they are counted, and change nothing about the faces.


FILLED = {"method": "fill", "level": 200}
ROWS = np.array(
    [
        [10, 10, 20, 30, 0.9],
        [60, 12, 20, 20, 0.5],
        [14, 24, 10, 8, 0.25],  # on the first face
        [62, 60, 8, 10, 0.25],
        [60, 64, 9, 3, 0.12],  # on the place before it, though they have little in common
        [40, 70, 6, 6, 0.15],
        [20, 70, 4, 4, 0.14],  # a speck
        [94, 40, 12, 12, 0.13],  # a sliver at the edge
        [80, 70, 6, 6, 0.05],
    ]
)
"""Two faces, a place on one of them, and places beside them with falling scores."""


class Unsure(Detector):
    """Returns the rows of at least the threshold that it is asked for, and remembers the thresholds."""

    name, smallest = "unsure", 8
    threshold = Fraction(3, 10)
    doubtful = Fraction(1, 10)

    def __init__(self, rows: np.ndarray = ROWS) -> None:
        self.rows, self.asked = rows, list[float]()

    @classmethod
    def is_installed(cls) -> bool:
        return True

    def __call__(self, image: np.ndarray, threshold: float) -> np.ndarray:
        self.asked.append(threshold)
        return self.rows[self.rows[:, 4] >= threshold]


@pytest.fixture
def detector(monkeypatch: pytest.MonkeyPatch) -> Unsure:
    made = Unsure()
    monkeypatch.setattr(faces_file, "choose", lambda name: made)
    return made


def photo() -> Photo:
    return Photo(np.arange(80 * 100 * 3, dtype=np.uint32).reshape(80, 100, 3).astype(np.uint8))


def test_places_beside_faces_are_counted_and_not_replaced(detector: Unsure) -> None:
    planned = dpveil.plan(photo(), regions=Faces(margin=0), **FILLED)
    assert [region.score for region in planned.regions] == [0.9, 0.5]
    assert [place.box for place in planned.doubtful] == [Box(62, 60, 8, 10), Box(40, 70, 6, 6)]
    assert "2 places that may be faces are not hidden" in planned.warnings[-1]
    assert 'threshold="0.15"' in planned.warnings[-1]
    image = planned.release().image
    for place in planned.doubtful:
        assert (image[place.box.slices] == photo().image[place.box.slices]).all()
    assert detector.asked == [0.1], "the photo was searched once"


def test_the_stated_threshold_replaces_them_and_then_nothing_is_said(detector: Unsure) -> None:
    planned = dpveil.plan(photo(), regions=Faces(margin=0, threshold="0.15"), **FILLED)
    assert len(planned.regions) == 5
    assert planned.doubtful == ()
    assert not any("may be" in text for text in planned.warnings[:-1])
    high = dpveil.plan(photo(), regions=Faces(margin=0, threshold="0.6"), **FILLED)
    assert [place.score for place in high.doubtful] == [0.5, 0.25, 0.15]


def test_no_certificate_tells_of_them(detector: Unsure) -> None:
    """Whether something scores a little less than a face may follow from pixels that are replaced."""
    found = {}
    for name, rows in {"with": ROWS, "without": ROWS[:2]}.items():
        detector.rows = rows
        release = dpveil.obfuscate(photo(), regions=Faces(margin=0), bits=SeededBits(1), **FILLED)
        found[name] = release.certificate.to_text(), release.notes, release.image.tobytes()
    assert found["with"] == found["without"]
