"""A portrait takes the same steps whatever the photo shows: what is found must not be told by the time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from facespace_made import SIDE, Flat, astronaut

import dpveil
from dpveil import Photo
from dpveil.core.region import Box
from dpveil.errors import RegionError
from dpveil.faces import portrait_placement
from dpveil.faces.geometry.align import Similarity
from dpveil.faces.geometry.landmarks import NetworkLandmarks
from dpveil.noise.bits import SeededBits
from dpveil.regions import Faces
from dpveil.regions.detectors.centerface import CenterFace
from dpveil.regions.faces import FaceFound, Search

pytest.importorskip("dlib")
SHAPE = (256, 256, 3)
LARGEST_PATCH = 400
"""Pixels of a side that no crop may read more of, however large the face is: twice what a crop needs."""


def small() -> np.ndarray:
    """Return the astronaut, 256 × 256."""
    return np.ascontiguousarray(astronaut()[::2, ::2])


def pictures() -> dict[str, np.ndarray]:
    rng = np.random.default_rng(5)
    face, two = small(), np.zeros(SHAPE, np.uint8)
    two[:128, :128] = two[128:, 128:] = astronaut()[40:168, 160:288]
    large = np.ascontiguousarray(np.repeat(np.repeat(astronaut()[60:188, 160:288], 2, 0), 2, 1))
    return {
        "a face": face,
        "none": np.zeros(SHAPE, np.uint8),
        "noise": rng.integers(0, 256, SHAPE).astype(np.uint8),
        "two": two,
        "a large one": large,
        "turned over": np.ascontiguousarray(face[::-1]),
    }


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The names of all steps that take time, in order; crops with what they read too much of."""
    taken: list[str] = []

    def watched(owner: Any, name: str, says: Callable[[Any], str] = lambda _: "") -> None:
        real = getattr(owner, name)

        def call(*given: Any, **named: Any) -> Any:
            number = len(taken)
            taken.append(name)
            found = real(*given, **named)
            taken[number] += says(found)
            return found

        monkeypatch.setattr(owner, name, call)

    def size(read: Box) -> str:
        return " of a large part" if max(read.w, read.h) > LARGEST_PATCH else ""

    watched(Faces, "detect")
    watched(NetworkLandmarks, "near")
    watched(CenterFace, "points")
    watched(Similarity, "reads", size)
    return taken


def way(image: np.ndarray, steps: list[str], **settings: Any) -> list[str]:
    steps.clear()
    dpveil.obfuscate(Photo(image), Flat(**settings), regions="whole", bits=SeededBits(1))
    return list(steps)


@pytest.mark.parametrize("placing", ["auto", "landmarks", "box"])
def test_all_photos_of_a_size_take_the_same_steps(steps: list[str], placing: str) -> None:
    ways = {name: way(image, steps, placing=placing) for name, image in pictures().items()}
    asked = ["near", "reads", "points"] if placing != "box" else []
    assert ways == {key: ["detect", *asked, "reads"] for key in ways}


@pytest.mark.parametrize("box", [(), (500, 400, 60, 70), (100, 50, 900, 1300), (0, 0, 1, 1)], ids=str)
@pytest.mark.parametrize("placing", ["auto", "landmarks"])
def test_no_crop_reads_much_of_a_large_photo(
    steps: list[str], monkeypatch: pytest.MonkeyPatch, box: tuple[int, ...], placing: str
) -> None:
    found = [FaceFound(Box(*box), 0.9)] if box else []
    monkeypatch.setattr(Faces, "detect", lambda *_: found)
    taken = way(np.zeros((1500, 1100, 3), np.uint8), steps, placing=placing)
    assert taken == ["near", "reads", "points", "reads"]


def fails(*_: object, **__: object) -> Any:
    raise RegionError("as it happens")


@pytest.mark.parametrize(
    ("owner", "name"),
    [
        (Search, "_detect"),
        (portrait_placement, "check"),
        (portrait_placement, "of_points"),
    ],
)
def test_what_fails_takes_the_same_steps(
    steps: list[str], monkeypatch: pytest.MonkeyPatch, owner: object, name: str
) -> None:
    usual = way(small(), steps)
    monkeypatch.setattr(owner, name, fails)
    assert way(small(), steps) == usual


def test_what_is_found_still_decides_what_is_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of three answers the right one counts: sure landmarks, else the box, else the middle square."""

    def crop(**settings: Any) -> np.ndarray:
        Flat.seen.clear()
        dpveil.obfuscate(photo, Flat(**settings), regions="whole", bits=SeededBits(1))
        ((seen,),) = Flat.seen
        return seen.astype(int)

    photo = Photo(small())
    by_landmarks, by_box = crop(), crop(placing="box")
    assert np.array_equal(crop(placing="landmarks"), by_landmarks)
    assert np.abs(by_landmarks - by_box).mean() > 1
    monkeypatch.setattr("dpveil.faces.portrait_placement.check", fails)
    assert np.array_equal(crop(), by_box)
    middle = crop(placing="landmarks")
    squares = small().reshape(SIDE, 256 // SIDE, SIDE, 256 // SIDE, 3).mean(axis=(1, 3))
    assert np.abs(middle - squares).mean() < 4
    monkeypatch.setattr(Faces, "detect", lambda *_: [FaceFound(Box(9, 9, 5, 90), 1.0)])
    assert np.array_equal(crop(), middle)


def test_the_middle_of_a_grey_photo_fills_a_canvas_of_colour() -> None:
    """The largest part of the canvas's shape, at its own size here, so that nothing is resampled."""
    grey = np.arange(40 * 90, dtype=np.uint32).astype(np.uint8).reshape(40, 90, 1)
    middle = np.repeat(grey[:, 15:75], 3, axis=2)
    assert (portrait_placement.centred(Photo(grey), (40, 60, 3)) == middle).all()
    assert portrait_placement.centred(Photo(middle), (20, 30, 1)).shape == (20, 30, 1)
