"""Places that look a little like a face: they are counted, and change nothing about the faces."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pytest
from skimage import data

import dpveil
from dpveil.core.photo import Photo
from dpveil.core.region import Box
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil.regions import faces as faces_file
from dpveil.regions.detectors import Detector
from dpveil.regions.detectors.centerface import CenterFace
from dpveil.regions.detectors.dlib_hog import DlibHOG

FILLED = {"method": "fill", "level": 200}
ROWS = np.array(
    [
        [10, 10, 20, 30, 0.9],
        [60, 12, 20, 20, 0.5],
        [14, 24, 10, 8, 0.25],  # on the first face
        [62, 60, 8, 10, 0.25],
        [60, 64, 9, 3, 0.12],  # on the place before it, though they have little in common
        [40, 70, 6, 6, 0.15],
        [80, 70, 6, 6, 0.05],
    ]
)
"""Two faces, a place on one of them, and places beside them with falling scores."""


class Unsure(Detector):
    """Returns the rows of at least the threshold that it is asked for, and remembers the thresholds."""

    name = "unsure"
    threshold = Fraction(3, 10)
    doubtful = Fraction(1, 10)

    def __init__(self, rows: np.ndarray = ROWS) -> None:
        self.rows, self.asked = rows, list[float]()

    @classmethod
    def installed(cls) -> bool:
        return True

    def __call__(self, image: np.ndarray, threshold: float) -> np.ndarray:
        self.asked.append(threshold)
        return self.rows[self.rows[:, 4] >= threshold]


@pytest.fixture
def detector(monkeypatch: pytest.MonkeyPatch) -> Unsure:
    made = Unsure()
    monkeypatch.setattr(faces_file, "choose", lambda name, model: made)
    return made


def photo() -> Photo:
    return Photo(np.arange(80 * 100 * 3, dtype=np.uint32).reshape(80, 100, 3).astype(np.uint8))


def test_places_beside_faces_are_counted_and_not_replaced(detector: Unsure) -> None:
    planned = dpveil.plan(photo(), regions=Faces(margin=0), **FILLED)
    assert [region.score for region in planned.regions] == [0.9, 0.5]
    assert [place.box for place in planned.doubtful] == [Box(62, 60, 8, 10), Box(40, 70, 6, 6)]
    assert "2 places that may be faces stay in the clear" in planned.warnings[-1]
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


@pytest.mark.parametrize("bad", [np.inf, -1.0, 500.0])
def test_a_doubtful_place_that_is_none_stops_no_release(detector: Unsure, bad: float) -> None:
    """As where the size that a network gives for it is infinite."""
    detector.rows = np.vstack([ROWS, [bad, 2, bad, 5, 0.2]])
    assert [region.score for region in Faces()(photo())] == [0.9, 0.5]
    assert Faces().doubtful_in(photo()) == []
    assert detector.asked[:2] == [0.1, 0.3]


def test_a_detector_that_says_nothing_about_lower_scores_is_not_asked(monkeypatch, detector: Unsure) -> None:
    monkeypatch.setattr(Unsure, "doubtful", None)
    one = photo()
    assert len(Faces()(one)) == 2
    assert Faces().doubtful_in(one) == []
    assert detector.asked == [0.3]


def scene() -> np.ndarray:
    """Return faces of several sizes, partly blurred away, in a picture that is searched in tiles."""
    import cv2

    rng, canvas = np.random.default_rng(5), np.full((1500, 2600, 3), 90, np.uint8)
    canvas += rng.integers(0, 30, canvas.shape, np.uint8)
    for n in range(14):
        side = int(rng.integers(40, 300))
        face = cv2.resize(data.astronaut()[20:220, 130:320], (side, side), interpolation=cv2.INTER_AREA)
        face = cv2.GaussianBlur(face, (0, 0), 0.1 + side / 100 * (n % 4))
        y, x = int(rng.integers(0, 1500 - side)), int(rng.integers(0, 2600 - side))
        canvas[y : y + side, x : x + side] = face
    return canvas


@pytest.mark.slow
@pytest.mark.parametrize("kind", [CenterFace, DlibHOG], ids=lambda kind: kind.name)
def test_the_same_faces_are_found_whether_or_not_others_are_counted(monkeypatch, kind) -> None:
    if not kind.installed():
        pytest.skip("needs dpveil install faces")
    group, found = scene(), []
    for least in (kind.doubtful, Fraction(1, 100), None):
        monkeypatch.setattr(kind, "doubtful", least)
        finder = Faces(detector=kind.name)
        found.append((finder.detect(Photo(group)), len(finder.doubtful_in(Photo(group)))))
    assert found[0][0] == found[1][0] == found[2][0]
    assert len(found[0][0]) > 2
    assert found[1][1] > found[2][1] == 0
