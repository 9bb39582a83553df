"""`dpveil train aam`: landmarks that have to be allowed, and a model that needs none."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import numpy as np
import pytest
from network_made import train
from PIL import Image

from dpveil.codecs import AAM, load
from dpveil.core.region import Box
from dpveil.errors import InvalidParameter
from dpveil_train import landmarks

COUNT = 45
SMALL = ("--side", "16", "--length", "5")
found = pytest.mark.skipif(
    not (importlib.util.find_spec("dlib") and importlib.util.find_spec("face_recognition_models")),
    reason="dlib or its landmark files are not installed",
)


@pytest.fixture
def album(tmp_path: Path) -> Path:
    """Discs on grey, no two of one size."""
    folder = tmp_path / "album"
    folder.mkdir()
    y, x = np.mgrid[:16, :16]
    for number in range(COUNT):
        rng = np.random.default_rng(number)
        disc = np.hypot(x - rng.uniform(7, 8), y - 7.5) < rng.uniform(3, 6)
        levels = np.where(disc[..., None], rng.integers(100, 255, 3), 60) + rng.integers(0, 9, (16, 16, 1))
        Image.fromarray(levels.astype(np.uint8)).save(folder / f"{number:03}.png")
    return folder


class Discs:
    """Says where discs are; is not sure of those that are dark."""

    digest = "0" * 64

    def __call__(self, crops: np.ndarray) -> np.ndarray:
        angle = np.arange(12) * (np.pi / 6)
        ring = np.stack([np.cos(angle), np.sin(angle)], axis=1)
        out = []
        for crop in crops.astype(float):
            bright = crop.mean(axis=2) > 75
            place = np.argwhere(bright).mean(axis=0)[::-1]
            shape = place + np.sqrt(bright.sum() / np.pi) * ring
            out.append(shape if crop.max() > 140 else shape * np.nan)
        return np.array(out)


def test_a_model_its_card_and_what_was_left_out(album, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(landmarks, "Finder", lambda file: Discs())
    out = tmp_path / "model.safetensors"
    assert train("aam", album, "--out", out, *SMALL, "--landmarks-68", "package") == 0
    said = capsys.readouterr().out
    codec = load(out)
    assert isinstance(codec, AAM)
    settings = codec.card.settings
    kept = settings["images_with_landmarks"]
    assert 30 < kept < settings["images"] == COUNT - 2
    assert f"learned from {kept} of {COUNT - 2} images, those with sure landmarks" in said
    assert settings["landmark_file_sha256"] == "0" * 64
    assert "exclude commercial use" in (tmp_path / "model.card.md").read_text()
    assert codec.card.metrics["images"] == 2
    again = tmp_path / "again.safetensors"
    assert train("aam", album, "--out", again, *SMALL, "--landmarks-68", "package", "--json") == 0
    assert json.loads(capsys.readouterr().out)["trained"][0]["sha256"] in said
    assert again.read_bytes() == out.read_bytes()


@found
def test_the_file_of_five_landmarks_is_refused():
    from dpveil.faces.geometry.landmarks import model_path

    with pytest.raises(InvalidParameter, match="has 5 landmarks"):
        landmarks.Finder(str(model_path()))


@found
def test_landmarks_of_a_portrait_and_of_nothing():
    """The eyes of scikit-image's astronaut, aligned by five landmarks, are where the frame has eyes."""
    from skimage import data

    from dpveil import Photo
    from dpveil.faces.geometry.align import Frame
    from dpveil.faces.geometry.place import place

    frame = Frame(64)
    photo = Photo(data.astronaut())
    crop = place(photo, Box(168, 56, 112, 144), frame=frame).crop(photo)
    blank = np.full_like(crop, 90)
    seen = landmarks.Finder("package")(np.stack([crop, blank]))
    assert seen.shape == (2, 60, 2)
    assert np.isnan(seen[1]).all()
    eyes = np.stack([seen[0, 42:48].mean(axis=0), seen[0, 36:42].mean(axis=0)])
    assert np.allclose(eyes, frame.pixels(np.array([[0.683, 0.305], [0.3025, 0.304]])), atol=2)
