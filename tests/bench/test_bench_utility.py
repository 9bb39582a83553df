"""What is left of photos: measures of faces that are there, lost, moved or another's, and what they took."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import cv2
import numpy as np
import pytest
from skimage import data

from dpveil.attacks.base import installed
from dpveil.bench import faces_seen, measuring
from dpveil.bench.faces_seen import Seen
from dpveil.bench.measuring import Time, spent
from dpveil.bench.utility import measured
from dpveil.core.region import Box
from dpveil.errors import DataError

needs_faces = pytest.mark.skipif(
    not (installed("faces") and installed("models")), reason="needs dpveil install faces"
)
ABOUT_FACES = ("face-found", "landmarks", "yaw", "pitch", "gender", "age", "smile")
PIXELS = ("mse", "psnr", "ssim", "ms-ssim")


@cache
def portrait() -> np.ndarray:
    """A public-domain photo of a face."""
    return np.ascontiguousarray(data.astronaut()[:256, 100:356])


def alone(name: str, photo: np.ndarray, release: np.ndarray) -> float | None:
    (value,) = measured([name], [photo], [release])[0][name]
    return value


@needs_faces
def test_a_photo_that_is_left_as_it_is_keeps_everything() -> None:
    kept, _ = measured(ABOUT_FACES, [portrait()], [portrait().copy()])
    assert {name: value for name, (value,) in kept.items()} == {
        **dict.fromkeys(ABOUT_FACES, 1.0),
        **dict.fromkeys(("landmarks", "yaw", "pitch"), 0.0),
    }


@needs_faces
def test_a_face_that_is_lost_counts_as_lost_and_is_nowhere() -> None:
    """The bug to fear drops it, so that the rest looks well."""
    grey = np.full_like(portrait(), 128)
    kept, _ = measured(ABOUT_FACES, [portrait()], [grey])
    assert [kept[name] for name in ("face-found", "gender", "age", "smile")] == [(0.0,)] * 4
    assert [kept[name] for name in ("landmarks", "yaw", "pitch")] == [(None,)] * 3
    none, _ = measured(ABOUT_FACES, [grey], [portrait()])
    assert set(none.values()) == {(None,)}, "a photo without a face has none to keep"
    gone, together = measured([*PIXELS, "wasserstein"], [portrait()], [None])
    assert set(gone.values()) == {(None,)}
    assert together == {"wasserstein": None}


@needs_faces
def test_a_face_that_is_moved_is_as_far_away_and_one_elsewhere_is_not_it() -> None:
    first = faces_seen.seen(portrait())
    assert first is not None
    moved = np.roll(portrait(), 12, axis=1)
    assert alone("landmarks", portrait(), moved) == pytest.approx(12 / first.eyes, rel=0.2)
    for axis in (0, 1):
        assert alone("face-found", portrait(), np.roll(portrait(), 120, axis=axis)) == 0


def test_turns_are_told_by_how_much_they_differ(monkeypatch: pytest.MonkeyPatch) -> None:
    five = np.zeros((5, 2))
    faces = [Seen(Box(0, 0, 9, 9), five, 30.0, yaw, pitch, {}) for yaw, pitch in ((20, -4), (-10, 3))]
    monkeypatch.setattr(faces_seen, "seen", lambda image, at=None: faces[at is not None])
    blank = np.zeros((9, 9, 1), np.uint8)
    assert (faces_seen.yaw(blank, blank), faces_seen.pitch(blank, blank)) == (30, 7)


def test_sets_are_compared_as_sets() -> None:
    rng = np.random.default_rng(0)
    photos = [
        np.clip(rng.normal(30 + 60 * (n % 3), 9, (20, 20, 3)), 0, 255).astype(np.uint8) for n in range(60)
    ]
    names = ["wasserstein", "ndb", "frechet"] if installed("models") else ["wasserstein", "ndb"]
    _, same = measured(names, photos, photos[::-1])
    assert all(value == pytest.approx(0, abs=1e-6) for value in same.values())
    _, lighter = measured(names, photos, [one + np.uint8(60) for one in photos])
    # The mean of |normal| is (2 / pi)^0.5, of the component of a shift along a random direction.
    assert lighter["wasserstein"] == pytest.approx(60 * (2 / np.pi) ** 0.5, rel=0.1)
    assert lighter["ndb"] == pytest.approx(2 / 3), "none is dark, too many are light"
    _, few = measured(["ndb"], photos[:30], photos[:30])
    assert few == {"ndb": None}


def test_grey_photos_and_releases_in_colour_are_compared() -> None:
    grey = cv2.cvtColor(portrait(), cv2.COLOR_RGB2GRAY)[..., None]
    wide = np.broadcast_to(grey, portrait().shape).copy()
    kept, _ = measured(PIXELS, [grey], [wide])
    assert kept == {"mse": (0.0,), "psnr": (100.0,), "ssim": (1.0,), "ms-ssim": (1.0,)}


def test_what_releases_take_is_kept_and_what_comes_back_is_checked(tmp_path: Path) -> None:
    with spent() as took:
        sum(number * number for number in range(300_000))
        held = np.ones(80 << 20)
    assert took.seconds > 0
    assert took.mebibytes is None or took.mebibytes > 50
    assert held.any()
    (tmp_path / measuring.FOLDER).mkdir()
    time = Time(18, 1.5, None)
    measuring.write(tmp_path, "ab", time)
    assert (measuring.read(tmp_path, "ab"), measuring.read(tmp_path, "cd")) == (time, None)
    assert time.row({"method": "fill"}) == {"method": "fill", "releases": "18", "ms": "1.5", "MiB": ""}
    good = {"releases": 1, "ms": 1, "MiB": None}
    forged = [json.dumps({**good, "ms": wrong}) for wrong in ("<b>", None, -1, float("nan"), True)]
    for text in ("[]", "{", '{"magic": 1}', '{"ms": 3}', "[" * 60_000, *forged):
        (tmp_path / measuring.FOLDER / "ab.json").write_text(text, encoding="utf-8")
        with pytest.raises(DataError, match="does not say"):
            measuring.read(tmp_path, "ab")
