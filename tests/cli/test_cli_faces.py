"""`dpveil faces`, and the options for faces of `dpveil obfuscate`."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from skimage import data

import dpveil
from dpveil.cli import run
from dpveil.cli.review import EDGE
from dpveil.regions import Faces
from dpveil.regions.detectors.centerface import CenterFace

needs_centerface = pytest.mark.skipif(not CenterFace.installed(), reason="needs dpveil install faces")
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
    assert run(["faces", str(pair), "--json"]) == 0
    document, _ = spoken(capsys)
    assert list(document) == ["faces", "smallest", "doubtful"]
    boxes = [face["box"] for face in document["faces"]]
    expected = Faces().detect(dpveil.read(pair))
    assert boxes == [[f.box.x, f.box.y, f.box.w, f.box.h] for f in expected]
    assert [face["score"] for face in document["faces"]] == [f.score for f in expected]
    assert len(boxes) == 2
    assert boxes[0][0] < 250 < 550 < boxes[1][0]
    assert run(["faces", str(pair)]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith(f"face 2: {boxes[1][2]}×{boxes[1][3]} pixels at {boxes[1][0]},{boxes[1][1]}")


@needs_centerface
def test_settings_reach_the_detector(pair, capsys):
    assert run(["faces", str(pair), "--json", "--margin", "0"]) == 0
    small = spoken(capsys)[0]["faces"][0]["box"]
    assert run(["faces", str(pair), "--json", "--margin", "1", "--long-side", "640"]) == 0
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
    assert run(["faces", str(pair), "--preview", str(preview)]) == 0
    err = capsys.readouterr().err
    assert "keep it as private" in err
    assert "to see what dpveil obfuscate replaces by default, add --method attributes" in err
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
            run(["obfuscate", str(pair), "--out", str(out), *SPENDING, "--regions", "faces", option, number])
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
        assert f"  {stays}" in spoke.out  # of verify
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


@pytest.mark.parametrize(
    "options",
    [
        ["--only", "a"],
        ["--threshold", "2"],
        ["--min-face", "1.5"],
        ["--detector", "haar"],
        ["--detector", "yunet"],
    ],
    ids=" ".join,
)
def test_bad_settings_are_refused_before_a_photo_is_read(tmp_path, capsys, options):
    arguments = ["obfuscate", "missing.jpg", "--out", str(tmp_path / "out.png"), *SPENDING]
    assert run([*arguments, "--regions", "faces", *options]) == 2
    assert capsys.readouterr().err.startswith("dpveil: ")
