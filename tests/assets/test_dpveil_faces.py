"""The side package dpveil-faces: what it holds, that it stays small and apart, that its faces are faces."""

from __future__ import annotations

import tomllib
from pathlib import Path

import numpy as np
import pytest

from dpveil.assets import trained_files
from dpveil.assets.trained_files import card_path, default_path
from dpveil.errors import UsageError
from dpveil.faces.attribute_model import TONE, VALUES, AttributeModel
from dpveil.faces.face_gallery import DEFAULT, FaceGallery
from dpveil.faces.geometry.align import Frame, of_points
from dpveil.faces.geometry.landmarks import SEEN, Predictor
from dpveil.faces.geometry.tone import tones
from dpveil.faces.geometry.turn import STEP, yaw_of

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "packages" / "dpveil-faces"
FILES = PACKAGE / "src" / "dpveil_faces"
MODELS = sorted(FILES.glob("*.safetensors"))


@pytest.fixture(scope="module")
def gallery():
    return FaceGallery.load(FILES / "gallery.safetensors")


@pytest.mark.parametrize("path", MODELS, ids=lambda path: path.stem)
def test_every_file_has_its_card_and_terms(path):
    words = card_path(path).read_text(encoding="utf-8")
    assert words.startswith(f"# {path.name}\n")
    assert "UTKFace" in words
    assert "non-commercial" in words
    assert "/" not in words.replace("http", "").partition("## Making")[2].partition("## Measured")[0]


def test_its_licence_is_its_own_and_dpveils_distributions_do_not_contain_it():
    project, own = (
        tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8")) for folder in (ROOT, PACKAGE)
    )
    assert project["project"]["license"] == "Apache-2.0"
    assert own["project"]["license"] != "Apache-2.0"
    assert own["project"]["license-files"] == ["LICENSE-NOTICE"]
    assert "non-commercial" in (PACKAGE / "LICENSE-NOTICE").read_text(encoding="utf-8")
    targets = project["tool"]["hatch"]["build"]["targets"]
    assert targets["wheel"]["packages"] == ["src/dpveil"]
    assert "/packages" in targets["sdist"]["exclude"]
    assert [one.name for one in (ROOT / "src" / "dpveil").rglob("*.safetensors")] == ["heads.safetensors"]


def test_readings_are_what_the_model_reads_in_the_gallery(gallery):
    some = gallery.faces[::4]
    read = AttributeModel.load(FILES / "attributes.safetensors").read(some) | {TONE: tones(some)}
    assert all(np.array_equal(read[name], gallery.readings[name][::4]) for name in VALUES)
    yaws = [yaw_of(face, Frame(128)) for face in gallery.faces[::64]]
    assert np.abs(yaws - gallery.yaws[::64]).max() <= STEP / 2
    assert gallery.digest == DEFAULT


def test_defaults_are_found_where_it_is_installed(monkeypatch):
    monkeypatch.syspath_prepend(str(FILES.parent))
    for name in ("pca", "dictionary", "aam", "upconv", "gallery"):
        assert default_path(name).name == f"{name}.safetensors"
    with pytest.raises(UsageError, match="the default nonsense of faces is not installed"):
        default_path("nonsense")
    monkeypatch.setattr(trained_files, "PACKAGE", "no_such_package_at_all")
    with pytest.raises(UsageError) as refusal:
        default_path("pca")
    assert "pip install packages/dpveil-faces" in refusal.value.hint


def test_the_gallery_is_large_and_balanced(gallery):
    assert len(gallery) >= 1000
    shares = {
        name: np.bincount(gallery.labels[name], minlength=len(words)) / len(gallery)
        for name, words in gallery.values.items()
    }
    assert abs(shares["gender"][0] - 0.5) < 0.05
    assert shares["age"][:-1].min() > 0.08
    assert shares["age"][-1] > 0.05  # there are few people of 75 or more in UTKFace
    assert 0.2 < shares["beard"][1] < 0.3
    assert shares["perceived-race"].min() > 0.1
    assert shares["pose"].min() > 0.1


def test_its_faces_have_beards_or_none_and_no_glasses(gallery):
    """By the model that chose the contributors, but on the averages, which it has not seen."""
    read = AttributeModel.load(FILES / "attributes.safetensors").read(gallery.faces)
    assert not read["glasses"].any()
    assert (read["beard"] == gallery.labels["beard"]).mean() > 0.99
    assert not (gallery.labels["beard"] & gallery.labels["gender"]).any()


def test_its_faces_differ_and_are_faces(gallery):
    assert len({face.tobytes() for face in gallery.faces}) == len(gallery)
    landmarks = Predictor()
    for face in gallery.faces[5::64]:
        assert landmarks._score(face, of_points(Frame(128).points(), SEEN.points())) > 0.5
    chosen = gallery.distances(gallery.faces[::64]).argmin(axis=1)
    assert chosen.tolist() == list(range(0, len(gallery), 64))


def test_it_is_small_and_holds_no_code():
    assert {path.stem for path in MODELS} >= {"gallery", "pca"}
    assert sum(path.stat().st_size for path in FILES.iterdir() if path.is_file()) < 55_000_000
    assert [path.name for path in FILES.rglob("*.py")] == ["__init__.py"]
    assert "import " not in (FILES / "__init__.py").read_text(encoding="utf-8").replace("imported", "")
