"""`dpveil faces`, and the options for faces of `dpveil obfuscate`."""

from __future__ import annotations

import json
import re
import shutil
from collections.abc import Callable
from fractions import Fraction
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from skimage import data

import dpveil
from dpveil.assets import trained_files
from dpveil.assets.model_cards import Card
from dpveil.assets.trained_files import save
from dpveil.cli import run
from dpveil.cli.review import EDGE
from dpveil.regions import Faces
from dpveil.regions import faces as faces_file
from dpveil.regions.detectors import Detector
from dpveil.regions.detectors.centerface import CenterFace
from dpveil_train import train_pca

needs_centerface = pytest.mark.skipif(not CenterFace.is_installed(), reason="needs dpveil install faces")
FILL = ["--method", "fill"]
SPENDING = ["--method", "dp-pix", "--epsilon", "20", "--block", "16", "--neighbourhood", "16"]


@pytest.fixture
def pair(tmp_path: Path) -> Path:
    """Return a photo of two faces."""
    canvas = np.hstack([data.astronaut()[:300], data.astronaut()[:300, ::-1]])
    path = tmp_path / "pair.png"
    Image.fromarray(canvas).save(path)
    return path


@pytest.fixture
def wall(tmp_path: Path) -> Path:
    path = tmp_path / "wall.png"
    Image.new("RGB", (90, 60), (120, 110, 100)).save(path)
    return path


def spoken(capsys) -> tuple[dict, str]:
    out, err = capsys.readouterr()
    return json.loads(out), err


@needs_centerface
def test_faces_as_json_and_in_words(pair, capsys):
    assert run(["faces", str(pair), *FILL, "--json"]) == 0
    document, _ = spoken(capsys)
    assert list(document) == ["faces", "smallest", "doubtful"]
    boxes = [face["box"] for face in document["faces"]]
    expected = Faces().detect(dpveil.read(pair))
    assert boxes == [[f.box.x, f.box.y, f.box.w, f.box.h] for f in expected]
    assert [face["score"] for face in document["faces"]] == [f.score for f in expected]
    assert len(boxes) == 2
    assert boxes[0][0] < 250 < 550 < boxes[1][0]
    assert run(["faces", str(pair), *FILL]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"face 2: {boxes[1][2]}×{boxes[1][3]} pixels at {boxes[1][0]},{boxes[1][1]}")


@needs_centerface
def test_settings_reach_the_detector(pair, capsys):
    assert run(["faces", str(pair), *FILL, "--json", "--margin", "0"]) == 0
    small = spoken(capsys)[0]["faces"][0]["box"]
    assert run(["faces", str(pair), *FILL, "--json", "--margin", "1", "--long-side", "640"]) == 0
    large = spoken(capsys)[0]["faces"][0]["box"]
    assert large[2] > 2 * small[2]
    assert run(["faces", str(pair), "--json", "--threshold", "0.99"]) == 1
    assert run(["faces", str(pair), "--json", "--min-face", "400"]) == 1


@needs_centerface
def test_no_face_is_exit_1_and_one_document(wall, tmp_path, capsys):
    preview = tmp_path / "out.png"
    assert run(["faces", str(wall), "--json", "--preview", str(preview)]) == 1
    document, err = spoken(capsys)
    assert document == {"faces": [], "smallest": 24, "doubtful": []}
    assert "no face was found" in err
    out = tmp_path / "private.png"
    assert run(["obfuscate", str(wall), "--out", str(out), *SPENDING, "--regions", "faces", "--json"]) == 1
    document, _ = spoken(capsys)
    assert [len(document[name]) for name in ("released", "failed", "no_region")] == [0, 0, 1]
    assert not out.exists()


@needs_centerface
def test_the_preview_shows_every_box_and_is_not_overwritten(pair, tmp_path, capsys):
    preview = tmp_path / "numbered.png"
    assert run(["faces", str(pair), *FILL, "--preview", str(preview)]) == 0
    err = capsys.readouterr().err
    assert "keep it as private" in err
    drawn = np.asarray(Image.open(preview))
    assert drawn.shape[:2] == (300, 1024)
    for face in Faces().detect(dpveil.read(pair)):
        bottom = drawn[face.box.y + face.box.h - 1, face.box.x : face.box.x + face.box.w]
        assert (bottom == EDGE).all(axis=1).mean() > 0.9
    assert run(["faces", str(pair), "--preview", str(preview)]) == 4
    assert run(["faces", str(pair), "--preview", str(preview), "--force"]) == 0
    assert run(["faces", str(pair), "--preview", str(tmp_path / "numbered.jpg")]) == 2


@needs_centerface
def test_only_and_except_release_those_faces(pair, tmp_path, capsys):
    photo = dpveil.read(pair)
    first, second = (face.box for face in Faces().detect(photo))
    for option, number, kept, freed in (("--only", "1", first, second), ("--except", "1", second, first)):
        out = tmp_path / f"{option}.png"
        assert (
            run(["obfuscate", str(pair), "-vo", str(out), *SPENDING, "--regions", "faces", option, number])
            == 0
        )
        released = dpveil.read(out).image
        assert (released[freed.slices] == photo.image[freed.slices]).all()
        assert (released[kept.slices] != photo.image[kept.slices]).any()
        assert run(["verify", str(out)]) == 0
        certificate = dpveil.verify(out).certificate
        assert certificate is not None
        assert certificate.request == (f"faces {option[2:]}=1",)
        stays = f"{'every face but' if option == '--only' else 'face'} 1 stays as it is, as was asked for"
        spoke = capsys.readouterr()
        assert stays in spoke.err.splitlines()  # of obfuscate
        assert f"; {stays}" in spoke.out  # of verify
    arguments = ["obfuscate", str(pair), "--out", str(tmp_path / "--only.png"), *SPENDING, "--json"]
    assert run([*arguments, "--regions", "faces", "--only", "1"]) == 0
    assert len(spoken(capsys)[0]["skipped"]) == 1
    assert run([*arguments, "--regions", "faces", "--only", "2"]) == 1
    assert len(spoken(capsys)[0]["failed"]) == 1
    arguments[3] = str(tmp_path / "new.png")
    assert run([*arguments, "--regions", "faces", "--only", "3"]) == 1
    assert "face 3 was chosen, and the photo has 2" in spoken(capsys)[0]["failed"][0]["error"]
    assert run([*arguments, "--regions", "faces", "--except", "1,2"]) == 1
    assert len(spoken(capsys)[0]["no_region"]) == 1


Shell = Callable[..., tuple[int, str, str]]


# What may be a face and is not hidden: every command that searches for faces says so, in one line.


FILL_FACES = ("--method", "fill", "--level", "200", "--regions", "faces", "--margin", "0")


class ByWidth(Detector):
    """Sees one face in every photo, and places that may be faces in those wider than 100 pixels."""

    name, smallest = "by-width", 8
    threshold = Fraction(3, 10)
    doubtful = Fraction(1, 10)

    @classmethod
    def is_installed(cls) -> bool:
        return True

    def __call__(self, image: np.ndarray, threshold: float) -> np.ndarray:
        rows = np.array([[10, 10, 20, 30, 0.9], [60, 20, 10, 12, 0.17], [40, 60, 6, 6, 0.1271]])
        rows = rows[: 1 if image.shape[1] <= 100 else 2 if image.shape[1] <= 120 else 3]
        return rows[(rows[:, 4] >= threshold) & (image.max() > 10)]


@pytest.fixture
def doubtful(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A folder "in" with photos of 100, 120 and 140 pixels, and a black one without a face."""
    monkeypatch.setattr(faces_file, "choose", lambda name: ByWidth())
    (tmp_path / "in").mkdir()
    for width, name in ((100, "a"), (120, "b"), (140, "c")):
        Image.new("RGB", (width, 80), (90, 120, 60)).save(tmp_path / "in" / f"{name}.png")
    Image.new("RGB", (90, 80), (0, 0, 0)).save(tmp_path / "dark.png")


@pytest.mark.usefixtures("doubtful")
def test_a_run_says_how_many_in_which_photos_and_how_to_replace_them(shell: Shell) -> None:
    code, out, err = shell("obfuscate", "in", "--out", "out", *FILL_FACES)
    assert (code, out.count("\n")) == (0, 1)
    (line,) = (line for line in err.splitlines() if "may show" in line)
    assert line.startswith("not hidden: 3 places that may show a face, in in/b.png and 1 more: --review")
    threshold = re.search(r"--threshold ([0-9.]+)", line)
    assert threshold
    _, out, err = shell("obfuscate", "in", "--out", "all", *FILL_FACES, "--threshold", threshold[1])
    assert out.startswith("6 faces replaced in 3 photos")
    assert "may show" not in err
    err = shell("obfuscate", "in/b.png", "--out", "one.png", *FILL_FACES)[2]
    assert "not hidden: one place that may show a face, in in/b.png" in err
    assert "may show" not in shell("obfuscate", "in/a.png", "--out", "none.png", *FILL_FACES)[2]


@pytest.mark.usefixtures("doubtful")
def test_faces_lists_and_draws_them(shell: Shell) -> None:
    code, out, err = shell("faces", "in/c.png", *FILL, "--margin", "0", "--preview", "p.png")
    assert (code, out) == (0, "face 1: 20×30 pixels at 10,10, score 0.90\n")
    assert "may be a face, and is not hidden: 10×12 pixels at 60,20, score 0.17" in err
    drawn = np.asarray(Image.open("p.png"))
    times = drawn.shape[1] // 140
    assert (drawn[20 * times : 32 * times, 60 * times] == EDGE).all(axis=1).mean() > 0.8
    document = json.loads(shell("faces", "in/c.png", *FILL, "--margin", "0", "--json")[1])
    assert document["doubtful"] == [
        {"box": [60, 20, 10, 12], "score": 0.17},
        {"box": [40, 60, 6, 6], "score": 0.1271},
    ]


# `dpveil obfuscate --method latent`: photos in, other faces out, and what is refused in one line.


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small codec of smooth random pictures."""
    coarse = np.random.default_rng(5).uniform(0, 255, (60, 4, 4, 3))
    crops = np.repeat(np.repeat(coarse, 8, axis=1), 8, axis=2).astype(np.uint8)
    card = Card("pca", data="made", terms="none", seed=1)
    path = tmp_path_factory.mktemp("model") / "model.safetensors"
    save(train_pca(lambda: iter([crops]), card=card, seed=1, length=8), path)
    return path


@pytest.fixture
def call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, model: Path) -> Any:
    """A command line in a folder with `astronaut.png`, `model.safetensors` and nothing else."""
    pytest.importorskip("dlib")
    monkeypatch.chdir(tmp_path)
    shutil.copy(model, "model.safetensors")
    Image.fromarray(data.astronaut()).save("astronaut.png")

    def said(*arguments: str) -> tuple[int, Any, str]:
        code = run(["obfuscate", *arguments, "--method", "latent", "--json"])
        captured = capsys.readouterr()
        return code, json.loads(captured.out), captured.err

    return said


GOOD = ("--epsilon", "50", "--codec", "model.safetensors")


def test_a_photo_is_released_with_another_face_and_verifies(call: Any, capsys: Any) -> None:
    code, document, err = call("astronaut.png", "--out", "out.png", *GOOD)
    assert code == 0
    assert [entry["output"] for entry in document["released"]] == ["out.png"]
    assert "PRACTICALLY NO PROMISE" in err
    certificate = json.loads(Path("out.png.certificate.json").read_text(encoding="utf-8"))
    assert certificate["request"] == ["faces margin=0"]
    assert certificate["guarantees"][0]["relation"] == {"name": "latent-cell"}
    assert certificate["parameters"]["codec"].startswith("pca 8 sha256:")
    Path("model.safetensors").unlink()
    assert run(["verify", "out.png"]) == 0
    assert "unmodified" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("--epsilon", "50", "--codec", "gone.safetensors"), 4, "no codec gone.safetensors"),
        (("--epsilon", "50", "--codec", "cut.safetensors"), 4, "damaged"),
        (("--codec", "model.safetensors"), 2, "epsilon"),
        ((*GOOD, "--guarantee", "metric", "--metric", "miles"), 2, "miles"),
        ((*GOOD, "--rho", "1"), 2, "rho"),
        ((*GOOD, "--regions", "faces", "--margin", "0.5"), 2, "margin"),
        ((*GOOD, "--regions", "400,400,80,90", "--placing", "landmarks"), 1, "landmarks"),
    ],
)
def test_what_is_wrong_is_one_line_and_nothing_is_written(
    call: Any, arguments: tuple[str, ...], code: int, words: str
) -> None:
    whole = Path("model.safetensors").read_bytes()
    Path("cut.safetensors").write_bytes(whole[: len(whole) // 2])
    Path("altered.safetensors").write_bytes(whole[:-1] + bytes([whole[-1] ^ 1]))
    got, document, err = call("astronaut.png", "--out", "out.png", *arguments)
    text = json.dumps(document) + err
    assert got == code
    assert words in text
    assert "Traceback" not in text
    assert not Path("out.png").exists()
    assert not Path("out.png.certificate.json").exists()


# Commands without a method: every face becomes a synthetic one, and a line says what that is worth.


@pytest.fixture
def photo(tmp_path):
    """Return a photo of two people, and one of nobody beside it."""
    if not CenterFace.is_installed() or not find_spec(trained_files.PACKAGE) or not find_spec("dlib"):
        pytest.skip("needs dpveil install faces, and dpveil-faces")
    one = data.astronaut()[:264, 92:356]
    Image.fromarray(np.concatenate([one, one[:, ::-1]], axis=1)).save(tmp_path / "two.png")
    Image.fromarray(data.coffee()).save(tmp_path / "nobody.png")
    return tmp_path / "two.png"


def test_every_face_becomes_a_synthetic_one_and_a_line_says_what_that_is_worth(shell, photo):
    code, out, err = shell("obfuscate", photo, "--out", "private.png")
    done = "2 faces replaced in 1 photo; nothing of them is kept (ε = 0)."
    clear = "Not hidden: everything else (missed faces and text too), and where the faces were."
    assert (code, out) == (0, f"{done} {clear} → private.png\n")
    stays, licence = err.splitlines()
    assert stays.startswith("warning: hair, ears, jaw and neck stay")
    assert licence.startswith("licence: for non-commercial research only")
    assert shell("obfuscate", photo, "--out", "private.png", "--force", "-q") == (0, "", "")
    err = shell("obfuscate", photo, "--out", "private.png", "--force", "-v")[2]
    assert "\nfaces below 24 pixels of height were not looked for" in err
    certificate = dpveil.verify("private.png", at_least="strong").certificate
    assert all(terms in err for terms in certificate.terms.values())
    assert certificate.parameters["gallery"] in certificate.terms
    assert (certificate.method, certificate.parameters["attributes"], len(certificate.regions)) == (
        "attributes",
        "none",
        2,
    )


@pytest.mark.parametrize("more", [("--if-none", "whole"), ("--if-none", "copy"), ("--seed", "1")])
def test_the_default_is_promised_only_where_it_holds(shell, photo, more):
    chosen = photo if more[0] == "--seed" else photo.with_name("nobody.png")
    code, out, _ = shell("obfuscate", chosen, "--out", "private.png", *more)
    assert (code, "nothing of it is kept" in out) == (0, more[1] == "whole")


def test_a_budget_goes_with_what_is_kept(shell, photo):
    code, out, _ = shell("obfuscate", photo, "--out", "a.png", "--attributes", "gender,age", "--epsilon", "2")
    assert (code, "limited to ε = 4 (weak)" in out) == (0, True)
    code, _, err = shell("obfuscate", photo, "--out", "b.png", "--epsilon", "2")
    assert (code, err.startswith("dpveil: --epsilon 2 is a budget, and nothing is kept: ")) == (2, True)
    err = shell("obfuscate", photo, "--out", "b.png", "--attributes", "gender,age")[2]
    assert "--epsilon is missing: give a total for what is kept, or each its own: gender=1,age=1" in err
    meant = {"30": "30-44", "59": "45-59", "90": "75+", "16": "18-29", "4": "", "30-44": ""}
    for age, band in meant.items():
        code, _, err = shell("explain", "--attributes", f"age={age}")
        told = err.partition("to show that age, write age=")[2]
        assert (code, told.partition(";")[0]) == (2 if band else 0, band)
    err = shell("explain", "--attributes", "age=25-30")[2]
    assert "age = '25-30' is neither a budget nor a value of this attribute: values are 18-29" in err
    assert shell("explain", "--attributes", "age", "--epsilon", "30")[0] == 0  # no age can be meant


def test_without_dpveil_faces_heads_are_shown_and_what_is_kept_needs_it(shell, photo, monkeypatch):
    monkeypatch.setattr(trained_files, "PACKAGE", "no_such_package_at_all")
    code, out, _ = shell("obfuscate", photo, "--out", "private.png")
    assert (code, "nothing of them is kept" in out) == (0, True)
    code, _, err = shell("explain", photo, "--attributes", "gender=1")
    assert (code, "pip install packages/dpveil-faces" in err) == (2, True)
