"""What models read, as hifd takes it: its schema, ids that tell nothing, and faces that are lost."""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import pytest
from skimage import data as pictures

from dpveil.attacks.base import installed
from dpveil.bench.data import load
from dpveil.bench.predictions import ORIGINALS, write
from dpveil.bench.settings import Setting
from dpveil.mechanisms.pixel import Fill, Mosaic

needs_faces = pytest.mark.skipif(
    not (installed("faces") and installed("models")), reason="needs dpveil install faces"
)
FILES = {
    "gender": "gender/dpveil-attributes.json",
    "landmark": "landmark/dlib5.json",
    "face_embedding": "face_embedding/dlib.json",
}
Shell = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two people: one whose photos show a face (public domain), and one whose photos show none."""
    root = tmp_path_factory.mktemp("data") / "secret-names"
    face = np.ascontiguousarray(pictures.astronaut()[:256, 100:356])
    for person, picture in (("Eileen", face), ("Nobody", np.full_like(face, 90))):
        (root / person).mkdir(parents=True)
        for number in range(3):
            shifted = np.roll(picture, 3 * number, axis=1)[..., ::-1]
            assert cv2.imwrite(str(root / person / f"photo-{number}.png"), np.ascontiguousarray(shifted))
    return root


SETTINGS = (Setting(None), Setting(Mosaic(block=2)), Setting(Fill()))


@pytest.fixture(scope="module")
def written(data: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[str]]:
    if not (installed("faces") and installed("models")):
        pytest.skip("needs dpveil install faces")
    out = tmp_path_factory.mktemp("out") / "hifd"
    notes = write([load(data)], SETTINGS, 0, out)
    return out / "secret-names", notes


def held(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))


def test_every_file_has_the_envelope_and_payload_of_the_schema(written: tuple[Path, list[str]]) -> None:
    root, _ = written
    for source, place in (("original", ORIGINALS), ("deid", "methods/0"), ("deid", "methods/1")):
        for task, name in FILES.items():
            found = held(root / place / name)
            assert (found["task"], found["source"], found["schema_version"]) == (task, source, "1.0")
            assert found["estimator"]
            (reading,) = found["predictions"].values()
            if task == "gender":
                assert found["class_names"] == ["male", "female"]
                assert len(reading["probs"]) == 2
                assert sum(reading["probs"]) == pytest.approx(1, abs=1e-6)
                assert all(0 <= one <= 1 for one in reading["probs"])
            elif task == "landmark":
                assert np.shape(reading["points"]) == (5, 2)
                assert reading["left_eye_center"][0] < reading["right_eye_center"][0] - 10
            else:
                assert np.shape(reading["embedding"]) == (128,)


def test_the_originals_are_read_of_the_photos_and_a_method_of_its_releases(
    written: tuple[Path, list[str]],
) -> None:
    """A sign of the probability is known: the model reads the astronaut as a woman, as utility.csv does."""
    root, _ = written
    for name in FILES.values():
        first, same, mosaic = (
            held(root / place / name)["predictions"] for place in (ORIGINALS, "methods/0", "methods/1")
        )
        assert first == same, "photos as they are"
        assert first.keys() == mosaic.keys()
        assert first != mosaic
    (likely,) = held(root / ORIGINALS / FILES["gender"])["predictions"].values()
    assert likely["probs"][1] > 0.5


def test_lost_faces_have_no_prediction_and_are_counted(written: tuple[Path, list[str]]) -> None:
    root, notes = written
    assert notes == [
        "secret-names: 0 nothing: 1 of 1 faces are found",
        "secret-names: 1 mosaic block 2: 1 of 1 faces are found",
        "secret-names: 2 fill: 0 of 1 faces are found",
        f"{root.parent} is private: private-originals says what the photos themselves show",
    ]
    assert not (root / "methods" / "2").exists(), "hifd refuses a pair of files without common ids"


def test_what_hifd_is_told_to_read_is_there_and_names_suit_its_tables(
    written: tuple[Path, list[str]],
) -> None:
    from dpveil.bench.beside import NAME

    root, _ = written
    methods, tasks = held(root / "methods.yaml"), held(root / "estimators.yaml")["tasks"]
    assert [one["base_path"] for one in methods["methods"]] == ["methods/0", "methods/1", "methods/2"]
    assert all(NAME.fullmatch(one["name"]) for one in methods["methods"])
    for task, name in FILES.items():
        (one,) = tasks[task]["estimators"]
        assert (one["orig_json"], one["deid_json"]) == (name, name)
        assert (root / methods["original"]["base_path"] / name).is_file()


def test_no_file_tells_a_name_or_a_path_and_all_are_the_users_own(
    written: tuple[Path, list[str]], data: Path
) -> None:
    root, _ = written
    files = [path for path in root.rglob("*") if path.is_file()]
    assert len(files) == 11
    for path in files:
        text = path.read_text(encoding="utf-8")
        for word in ("Eileen", "Nobody", "photo-", "secret-names", ".png", str(data.parent)):
            assert word not in text
        if os.name == "posix":
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for path in root.rglob("*.json"):
        assert all(len(name) == 6 and name.isdecimal() for name in held(path)["predictions"])


@needs_faces
def test_the_command_writes_them_and_says_that_they_are_private(
    data: Path, shell: Shell, tmp_path: Path
) -> None:
    few = ("--method", "fill", "--attack", "pixels", "--jobs", 1)
    line = ("evaluate", data, "--out", tmp_path / "out", *few, "--predictions", tmp_path / "hifd")
    code, _, err = shell(*line)
    assert (code, "private" in err, "fill: 0 of 1 faces are found" in err) == (0, True, True), err
    assert (tmp_path / "hifd" / "secret-names" / "methods.yaml").is_file()
    assert "private-originals" not in {path.name for path in (tmp_path / "out").rglob("*")}
    code, _, err = shell(*line)
    assert (code, "is there already" in err) == (4, True), "nothing is replaced"
    code, _, err = shell(*line[:-1], tmp_path / "out" / "hifd")
    assert (code, "lies in the results" in err) == (4, True), "results are published"


def test_data_without_faces_are_refused_before_anything_is_written(shell: Shell, tmp_path: Path) -> None:
    few = ("--method", "fill", "--attack", "pixels", "--jobs", 1, "--people", 3, "--photos", 3)
    line = ("evaluate", "drawn-eyes", "--out", tmp_path / "out", *few)
    code, _, err = shell(*line, "--predictions", tmp_path / "hifd")
    assert (code, "no data set shows faces" in err) == (2, True), err
    assert not (tmp_path / "out").exists()
    assert not (tmp_path / "hifd").exists()
